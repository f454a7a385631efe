"""Which value of a config holds, and where it comes from.

Source:  KafkaConfigSchema.resolveEffectiveTopicConfig, DynamicBrokerConfig.brokerConfigSynonyms,
         KafkaConfig.extractLogConfigMap.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from enum import IntEnum
from functools import cache

from minicluster.configs.config_def import ConfigKey
from minicluster.configs.definitions import (
    TOPIC_SYNONYMS,
    broker_configs,
    in_topic_units,
    topic_configs,
)
from minicluster.values import Value


class ConfigSource(IntEnum):
    """Where a value comes from, by the numbers of DescribeConfigsResponse.ConfigSource."""

    UNKNOWN = 0
    TOPIC_CONFIG = 1
    DYNAMIC_BROKER_CONFIG = 2
    DYNAMIC_DEFAULT_BROKER_CONFIG = 3
    STATIC_BROKER_CONFIG = 4
    DEFAULT_CONFIG = 5
    DYNAMIC_BROKER_LOGGER_CONFIG = 6
    CLIENT_METRICS_CONFIG = 7
    GROUP_CONFIG = 8


class BrokerLevels(Value):
    """The configs of one broker, the strongest first: its own, the cluster's, its static ones."""

    dynamic: Mapping[str, str]
    dynamic_default: Mapping[str, str]
    static: Mapping[str, str]

    def levels(self) -> Iterator[tuple[ConfigSource, Mapping[str, str]]]:
        """Each level with the source that it is."""
        yield ConfigSource.DYNAMIC_BROKER_CONFIG, self.dynamic
        yield ConfigSource.DYNAMIC_DEFAULT_BROKER_CONFIG, self.dynamic_default
        yield ConfigSource.STATIC_BROKER_CONFIG, self.static

    def configured(self, name: str) -> str | None:
        """The value that is set, None where none is."""
        return next((level[name] for _, level in self.levels() if name in level), None)

    def value(self, name: str) -> str | None:
        """The value that holds, the default where none is set."""
        configured = self.configured(name)
        if configured is not None:
            return configured
        key = broker_configs().keys.get(name)
        return None if key is None else key.default


class EffectiveConfig(Value):
    """A topic's config as it holds."""

    key: ConfigKey
    value: str | None
    source: ConfigSource


def effective_topic_config(
    name: str, of_topic: Mapping[str, str], broker: BrokerLevels
) -> EffectiveConfig:
    """The value of one config of a topic: its own, else a broker's, else the default."""
    key = topic_configs().keys[name]
    if name in of_topic:
        return EffectiveConfig(key, of_topic[name], ConfigSource.TOPIC_CONFIG)
    synonyms = TOPIC_SYNONYMS.get(name)
    if synonyms is not None:
        for source, level in broker.levels():
            for synonym in synonyms:
                if synonym in level:
                    return EffectiveConfig(key, in_topic_units(synonym, level[synonym]), source)
    return EffectiveConfig(key, key.default, ConfigSource.DEFAULT_CONFIG)


def effective_topic_configs(
    of_topic: Mapping[str, str], broker: BrokerLevels
) -> list[EffectiveConfig]:
    """Every config of a topic in the order of their names; internal ones only where set."""
    return [
        effective_topic_config(key.name, of_topic, broker)
        for key in _by_name()
        if not key.internal or key.name in of_topic
    ]


@cache
def _by_name() -> tuple[ConfigKey, ...]:
    return tuple(sorted(topic_configs(), key=lambda key: key.name))
