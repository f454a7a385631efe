"""Which resources have configs (ListConfigResources), and which (DescribeConfigs).

Leaves out: loggers, of which a broker here has none.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property
from typing import Any

from minicluster.broker.api_state import ApiState
from minicluster.configs.config_def import ConfigKey, InvalidConfig, java_int
from minicluster.configs.definitions import (
    TOPIC_SYNONYMS,
    broker_configs,
    client_metrics_configs,
    group_configs,
    group_synonym,
    topic_configs,
)
from minicluster.configs.dynamic_broker import (
    broker_config_synonyms,
    described_key,
    is_dynamic,
)
from minicluster.configs.effective import (
    BrokerLevels,
    ConfigSource,
    EffectiveConfig,
    effective_topic_config,
    effective_topic_configs,
)
from minicluster.configs.validation import UNBOUND_GROUP_CONFIG
from minicluster.java_order import concurrent_map_order, persistent_map_order, string_hash
from minicluster.metadata.image.configs import (
    BROKER,
    BROKER_LOGGER,
    CLIENT_METRICS,
    GROUP,
    TOPIC,
)
from minicluster.protocol import ErrorCode
from minicluster.protocol.error_responses import error_response
from minicluster.protocol.messages import (
    DescribeConfigsRequest,
    DescribeConfigsResponse,
    ListConfigResourcesRequest,
    ListConfigResourcesResponse,
)
from minicluster.protocol.topics import invalid_name_reason

# DescribeConfigs (32): the configs of topics, brokers, groups and client metrics.
#
# Versions:  1-4; synonyms from 1 on, types and documentation from 3 on.

Result = DescribeConfigsResponse.DescribeConfigsResult
Entry = DescribeConfigsResponse.DescribeConfigsResourceResult
Synonym = DescribeConfigsResponse.DescribeConfigsSynonym

_TYPES = (
    "UNKNOWN", "BOOLEAN", "STRING", "INT", "SHORT", "LONG", "DOUBLE", "LIST", "CLASS", "PASSWORD",
)  # fmt: skip
_KINDS = (TOPIC, BROKER, BROKER_LOGGER, CLIENT_METRICS, GROUP)


def describe_configs(
    state: ApiState, request: DescribeConfigsRequest, version: int, now_ms: int
) -> DescribeConfigsResponse:
    """The configs of every resource, each with where its value comes from.

    Errors:  per resource; INVALID_REQUEST for all of them where one is of no known kind.
    Source:  ConfigHelper.handleDescribeConfigsRequest.
    """
    kinds = _KINDS if state.rules.groups_have_configs else _KINDS[:-1]
    if any(resource.resource_type not in kinds for resource in request.resources):
        rejection: DescribeConfigsResponse = error_response(
            request, ErrorCode.INVALID_REQUEST, version=version
        )
        return rejection
    describer = _Describer(state, request)
    return DescribeConfigsResponse(
        results=tuple(describer.result(resource) for resource in request.resources)
    )


class _Describer:
    """Describes the resources of one request, with no more than it includes.

    ``inherited`` has the entries of a topic without configs of its own. They are alike for all
    topics: made for each of 200 topics they took most of the time of a request for all of them.
    """

    def __init__(self, state: ApiState, request: DescribeConfigsRequest) -> None:
        self.state = state
        self.levels = state.broker_levels
        self._has_synonyms = request.include_synonyms
        self._has_documentation = request.include_documentation

    @cached_property
    def inherited(self) -> list[Entry]:
        """The entries of a topic without configs of its own, by their names."""
        return [
            self.topic_entry(config, {})
            for config in effective_topic_configs({}, self.levels)
            if not config.key.internal
        ]

    def result(self, resource: Any) -> Result:
        """A resource with the configs that the request names, or with all of them."""
        kind, name = resource.resource_type, resource.resource_name
        error, message, entries = ErrorCode.NONE, "", []
        try:
            entries = _ENTRIES[kind](self, name)
        except InvalidConfig as rejection:
            error, message = rejection.error or ErrorCode.INVALID_REQUEST, rejection.message
        wanted = resource.configuration_keys
        return Result(
            error_code=error,
            error_message=message,
            resource_type=kind,
            resource_name=name,
            configs=tuple(entry for entry in entries if not wanted or entry.name in wanted),
        )

    def entry(
        self,
        name: str,
        key: ConfigKey | None,
        value: str | None,
        synonyms: Sequence[Synonym],
        *,
        read_only: bool = False,
    ) -> Entry:
        """A config as the response has it; the first of its synonyms is where its value is from."""
        return Entry(
            name=name,
            value=None if _is_sensitive(key) else value,
            read_only=read_only,
            config_source=synonyms[0].source if synonyms else ConfigSource.DEFAULT_CONFIG,
            is_sensitive=_is_sensitive(key),
            synonyms=tuple(synonyms) if self._has_synonyms else (),
            config_type=0 if key is None else _TYPES.index(key.type_),
            documentation=key.documentation
            if key is not None and self._has_documentation
            else None,
        )

    def topic(self, name: str) -> list[Entry]:
        """The configs of a topic."""
        reason = invalid_name_reason(name)
        if reason is not None:
            invalid = ErrorCode.INVALID_TOPIC_EXCEPTION
            raise InvalidConfig(f"Topic name is invalid: {reason}", invalid)
        if self.state.image.topics.named(name) is None:
            raise InvalidConfig("", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        own = self.state.image.configs.of(TOPIC, name)
        return [
            self.topic_entry(effective_topic_config(entry.name, own, self.levels), own)
            if entry.name in own
            else entry
            for entry in self.inherited
        ]

    def topic_entry(self, config: EffectiveConfig, own: Mapping[str, str]) -> Entry:
        """A config of a topic that has these of its own."""
        name, value = config.key.name, config.key.normalized(config.value)
        synonyms = []
        if name in own:
            synonyms.append(Synonym(name=name, value=value, source=ConfigSource.TOPIC_CONFIG))
        if name in TOPIC_SYNONYMS:
            synonyms += _broker_synonyms(TOPIC_SYNONYMS[name][0], self.levels)
        return self.entry(name, topic_configs().keys[name], value, synonyms)

    def broker(self, name: str) -> list[Entry]:
        """The configs of this broker, or those of the whole cluster."""
        levels = self.levels
        if not name:
            return [self._default_entry(config) for config in levels.dynamic_default]
        if _broker_id(name) != self.state.config.broker_id:
            raise InvalidConfig(
                f"Unexpected broker id, expected {self.state.config.broker_id} or empty string, "
                f"but received {name}"
            )
        defined = {key.name: None for key in broker_configs() if not key.internal}
        custom = {name: None for _, level in levels.levels() for name in level}
        return [self._broker_entry(name) for name in defined | custom]

    def _broker_entry(self, name: str) -> Entry:
        key, value = described_key(name), self.levels.value(name)
        return self.entry(
            name,
            key,
            key.normalized(value) if key is not None and name in broker_configs().keys else value,
            _broker_synonyms(name, self.levels),
            read_only=not is_dynamic(name),
        )

    def _default_entry(self, name: str) -> Entry:
        """A config of the whole cluster: only its value for all brokers counts."""
        synonyms = [
            synonym
            for synonym in _broker_synonyms(name, self.levels)
            if synonym.source == ConfigSource.DYNAMIC_DEFAULT_BROKER_CONFIG
        ]
        return self.entry(
            name,
            described_key(name),
            self.levels.dynamic_default[name],
            synonyms,
            read_only=not is_dynamic(name),
        )

    def loggers(self, name: str) -> list[Entry]:
        """None: a broker here has no loggers."""
        if not name:
            raise InvalidConfig("Broker id must not be empty")
        if _broker_id(name) != self.state.config.broker_id:
            raise InvalidConfig(
                f"Unexpected broker id, expected {self.state.config.broker_id} but received {name}"
            )
        return []

    def client_metrics(self, name: str) -> list[Entry]:
        """The configs of a subscription to client metrics."""
        if not name:
            raise InvalidConfig("Client metrics subscription name must not be empty")
        own = self.state.image.configs.of(CLIENT_METRICS, name)
        source = ConfigSource.CLIENT_METRICS_CONFIG
        entries = []
        for key in client_metrics_configs():
            value = key.normalized(own.get(key.name, key.default))
            set_here = Synonym(name=key.name, value=value, source=source)
            entries.append(self.entry(key.name, key, value, [set_here] if key.name in own else []))
        return entries

    def group(self, name: str) -> list[Entry]:
        """The configs of a group."""
        if not name:
            raise InvalidConfig("Group name must not be empty")
        own = self.state.image.configs.of(GROUP, name)
        return [self._group_entry(key, own) for key in group_configs()]

    def _group_entry(self, key: ConfigKey, own: Mapping[str, str]) -> Entry:
        """A group's config; a broker's assignment interval does not count here, as in Kafka 4.3."""
        synonym = group_synonym(key.name)
        default = key.default
        if synonym is not None and not key.name.endswith(UNBOUND_GROUP_CONFIG):
            default = self.levels.value(synonym)
        value = key.normalized(own.get(key.name, default))
        synonyms = []
        if key.name in own:
            synonyms.append(Synonym(name=key.name, value=value, source=ConfigSource.GROUP_CONFIG))
        if synonym is not None:
            synonyms += _broker_synonyms(synonym, self.levels)
        elif key.default is not None:
            source = ConfigSource.DEFAULT_CONFIG
            synonyms.append(Synonym(name=key.name, value=key.default, source=source))
        return self.entry(key.name, key, value, synonyms)


_ENTRIES: Mapping[int, Callable[[_Describer, str], list[Entry]]] = {
    TOPIC: _Describer.topic,
    BROKER: _Describer.broker,
    BROKER_LOGGER: _Describer.loggers,
    CLIENT_METRICS: _Describer.client_metrics,
    GROUP: _Describer.group,
}


def _is_sensitive(key: ConfigKey | None) -> bool:
    """An unknown config may be a secret (KafkaConfig.maybeSensitive)."""
    return key is None or key.is_sensitive


def _broker_synonyms(name: str, levels: BrokerLevels) -> list[Synonym]:
    """All values of a broker config and of those behind it, from the strongest level down.

    Source:  ConfigHelper.configSynonyms.
    """
    names = broker_config_synonyms(name)
    keys = broker_configs().keys
    hidden = _is_sensitive(described_key(name))
    synonyms = [
        Synonym(name=other, value=None if hidden else level[other], source=source)
        for source, level in levels.levels()
        for other in names
        if other in level
    ]
    synonyms += [
        Synonym(name=other, value=None if hidden else default, source=ConfigSource.DEFAULT_CONFIG)
        for other in names
        if other in keys and (default := keys[other].default) is not None
    ]
    while synonyms and synonyms[0].name != name:
        synonyms.pop(0)
    return synonyms


def _broker_id(name: str) -> int:
    broker_id = java_int(name)
    if broker_id is None:
        raise InvalidConfig(f"Broker id must be an integer, but it is: {name}")
    return broker_id


# ListConfigResources (74): the resources that can have configs (KIP-1142).
#
# Versions:  0-1; 0 lists client metrics subscriptions only, 1 every kind.


KINDS = (GROUP, CLIENT_METRICS, BROKER_LOGGER, BROKER, TOPIC)
"""The kinds in the order of the response."""

_NAMES_KINDS = 1


def list_config_resources(
    state: ApiState, request: ListConfigResourcesRequest, version: int, now_ms: int
) -> ListConfigResourcesResponse:
    """Every resource of the requested kinds; no kind means all.

    Errors:  UNSUPPORTED_VERSION for a kind that there is not.
    Source:  KafkaApis.handleListConfigResources.
    """
    served = KINDS if version >= _NAMES_KINDS else (CLIENT_METRICS,)
    wanted = request.resource_types or served
    if any(kind not in served for kind in wanted):
        return ListConfigResourcesResponse(error_code=ErrorCode.UNSUPPORTED_VERSION)
    return ListConfigResourcesResponse(
        config_resources=tuple(
            ListConfigResourcesResponse.ConfigResource(resource_name=name, resource_type=kind)
            for kind in served
            if kind in wanted
            for name in _names(state, kind)
        )
    )


def _names(state: ApiState, kind: int) -> Iterable[str]:
    if kind == TOPIC:
        return persistent_map_order((topic.name for topic in state.image.topics), string_hash)
    if kind in (BROKER, BROKER_LOGGER):
        brokers = state.image.cluster.brokers.values()
        return [str(broker.id) for broker in brokers if state.endpoint(broker) is not None]
    names = (name for of_kind, name in state.image.configs.resources() if of_kind == kind)
    return concurrent_map_order(names, string_hash)
