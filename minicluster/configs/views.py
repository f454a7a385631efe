"""Typed views of Kafka's configs: dataclasses whose fields say which config they are.

    @dataclass(frozen=True, slots=True, kw_only=True)
    class FetcherConfig:
        max_wait_ms: int = broker_config("replica.fetch.wait.max.ms")

A default stands in the table of Kafka's configs (``definitions``) and nowhere else. A room takes
what it obeys as a view: code reads a typed field, and the name of the config is beside it. A test
compares the default of each view with the table, and finds views that repeat a number
(tests/configs/test_views.py).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import field, fields
from typing import Any

from minicluster.configs.config_def import ConfigDef, parse_type
from minicluster.configs.definitions import broker_configs, topic_configs
from minicluster.values import Value

_CONFIG = "config"


class ViewedConfig(Value):
    """The config that a field of a view shows.

    Shapes:  default is the text in Kafka's table; None where Kafka's is null. read: from a text to
             the field's value.
    """

    name: str
    default: str | None
    read: Callable[[str | None], Any]


def broker_config(name: str, read: Callable[[str | None], Any] | None = None) -> Any:
    """A field of a view: a config of brokers and controllers, by default as its type is read.

    Errors:  KeyError for a config that Kafka 4.3.0 does not have.
    """
    return _field(broker_configs(), name, read)


def topic_config(name: str, read: Callable[[str | None], Any] | None = None) -> Any:
    """A field of a view: a config of topics.

    Errors:  KeyError for a config that Kafka 4.3.0 does not have.
    """
    return _field(topic_configs(), name, read)


def older_config(name: str, default: Any) -> Any:
    """A field of a view: a config that Kafka 4.3.0 does not have (any more), with its default."""
    return field(default=default, metadata={_CONFIG: ViewedConfig(name, None, lambda _: default)})


def broker_default(name: str) -> Any:
    """Kafka's default of a broker's config, as its type is read.

    Errors:  KeyError for a config that Kafka 4.3.0 does not have.
    """
    key = broker_configs().keys[name]
    return parse_type(name, key.default, key.type_)


def topic_default(name: str) -> Any:
    """Kafka's default of a topic's config, as its type is read.

    Errors:  KeyError for a config that Kafka 4.3.0 does not have.
    """
    key = topic_configs().keys[name]
    return parse_type(name, key.default, key.type_)


def _field(table: ConfigDef, name: str, read: Callable[[str | None], Any] | None) -> Any:
    key = table.keys[name]

    def as_typed(text: str | None) -> Any:
        return parse_type(name, text, key.type_)

    viewed = ViewedConfig(name, key.default, read or as_typed)
    return field(default=viewed.read(key.default), metadata={_CONFIG: viewed})


def viewed_configs(view: type[Any]) -> dict[str, ViewedConfig]:
    """The fields of a view that show a config."""
    return {
        shown.name: shown.metadata[_CONFIG] for shown in fields(view) if _CONFIG in shown.metadata
    }


def values_of(view: type[Any], text_of: Callable[[str], str | None]) -> dict[str, Any]:
    """All values of a view, by field, from what gives the text of a config."""
    return {
        name: viewed.read(text_of(viewed.name)) for name, viewed in viewed_configs(view).items()
    }


def given_values(view: type[Any], properties: Mapping[str, str]) -> dict[str, Any]:
    """The values of a view that a properties file has, by field."""
    return {
        name: viewed.read(properties[viewed.name])
        for name, viewed in viewed_configs(view).items()
        if viewed.name in properties
    }
