"""The checks of new configs of topics, groups and client metrics.

Source:  ControllerConfigurationValidator, LogConfig.validate, GroupConfig.validate,
         ClientMetricsConfigs.validate.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from minicluster.configs.config_def import InvalidConfig, Value
from minicluster.configs.definitions import (
    broker_configs,
    client_metrics_configs,
    group_configs,
    group_synonym,
    topic_configs,
)
from minicluster.configs.effective import BrokerLevels, effective_topic_configs
from minicluster.java_order import hash_map_order, string_hash
from minicluster.protocol.error_codes import ErrorCode

_INTERVAL_MS = range(100, 3_600_001)
_MATCHES = frozenset(
    {
        "client_instance_id", "client_id", "client_software_name", "client_software_version",
        "client_source_address", "client_source_port",
    }
)  # fmt: skip

UNBOUND_GROUP_CONFIG = ".assignment.interval.ms"
"""The end of a config's name whose default in a group is not the broker's."""

_BOUNDED = (
    "consumer.heartbeat.interval.ms",
    "consumer.session.timeout.ms",
    "consumer.assignment.interval.ms",
    "share.heartbeat.interval.ms",
    "share.session.timeout.ms",
    "share.record.lock.duration.ms",
    "share.delivery.count.limit",
    "share.partition.max.record.locks",
    "share.assignment.interval.ms",
    "streams.heartbeat.interval.ms",
    "streams.session.timeout.ms",
    "streams.num.standby.replicas",
    "streams.assignment.interval.ms",
)
"""Configs of groups that brokers bound, in the order of the checks."""


class TopicConfigChecks:
    """The checks of all configs that topics are to have, on one broker's levels.

    A topic has 33 configs and most set two, so what topics leave to the broker is read once for all
    topics of a request: a request may name tens of thousands.
    """

    def __init__(self, broker: BrokerLevels) -> None:
        self._of_broker: dict[str, Value] = {}
        self._bad: dict[str, InvalidConfig] = {}  # the broker's, of which no topic may have one
        texts = {config.key.name: config.value for config in effective_topic_configs({}, broker)}
        for key in topic_configs():
            try:
                self._of_broker[key.name] = (
                    key.parse(texts[key.name]) if key.name in texts else key.default_value
                )
            except InvalidConfig as refusal:
                self._bad[key.name] = refusal

    def validate(self, new: Mapping[str, str], existing: Mapping[str, str]) -> None:
        """Check all configs that a topic is to have.

        Errors:  InvalidConfig; a name that is not known before any value, then the first bad
                 value, then what does not go together.
        """
        known = topic_configs()
        for name in new:
            if name not in known:
                raise _rejected(f"Unknown topic config name: {name}")
        values = self._of_broker
        if new or self._bad:
            values = {**values}
            for key in known:
                if key.name in new:
                    values[key.name] = key.parse(new[key.name])
                elif key.name in self._bad:
                    refusal = self._bad[key.name]
                    # A copy: an exception that is raised again keeps the traceback of each time.
                    raise InvalidConfig(refusal.message, refusal.error)
        _validate_together(values, existing)


def validate_topic_configs(
    new: Mapping[str, str], existing: Mapping[str, str], broker: BrokerLevels
) -> None:
    """Check all configs that one topic is to have.

    Errors:  InvalidConfig, as ``TopicConfigChecks``.
    """
    TopicConfigChecks(broker).validate(new, existing)


def _validate_together(values: Mapping[str, Value], existing: Mapping[str, str]) -> None:
    shortest, longest = values["min.compaction.lag.ms"], values["max.compaction.lag.ms"]
    if _number(shortest) > _number(longest):
        raise _rejected(
            f"conflict topic config setting min.compaction.lag.ms ({shortest}) > "
            f"max.compaction.lag.ms ({longest})"
        )
    if values["remote.storage.enable"]:
        raise InvalidConfig(
            "Tiered Storage functionality is disabled in the broker. Topic cannot be configured "
            "with remote log storage."
        )
    was_remote = existing.get("remote.storage.enable", "false").lower() == "true"
    if was_remote and not values["remote.log.delete.on.disable"]:
        raise _rejected(
            "It is invalid to disable remote storage without deleting remote data. If you want to "
            "keep the remote data and turn to read only, please set "
            "`remote.storage.enable=true,remote.log.copy.disable=true`. If you want to disable "
            "remote storage and delete all remote data, please set "
            "`remote.storage.enable=false,remote.log.delete.on.disable=true`."
        )


def validate_group_configs(new: Mapping[str, str], broker: BrokerLevels) -> None:
    """Check all configs that a group is to have, within the bounds that the broker sets.

    Errors:  InvalidConfig.
    """
    texts: dict[str, str | None] = {
        key.name: broker.value(synonym)
        for key in group_configs()
        if (synonym := group_synonym(key.name)) is not None
    }
    # Which of several unknown names is in the response depends on the order of Kafka's map, and
    # that on everything in it: the broker's defaults are there besides the new configs.
    bound = [name for name in texts if not name.endswith(UNBOUND_GROUP_CONFIG)]
    for name in hash_map_order(dict.fromkeys((*bound, *new)), string_hash):
        if name not in group_configs():
            raise _rejected(f"Unknown group config name: {name}")
    values = group_configs().parse({**texts, **new})
    for name in _BOUNDED:
        kind, rest = name.split(".", 1)
        _within(name, values[name], f"group.{kind}.min.{rest}", broker, "greater")
        # The one upper bound without the config's whole name in it.
        rest = "standby.replicas" if rest == "num.standby.replicas" else rest
        _within(name, values[name], f"group.{kind}.max.{rest}", broker, "less")
    for kind in ("consumer", "share", "streams"):
        session, interval = f"{kind}.session.timeout.ms", f"{kind}.heartbeat.interval.ms"
        if _number(values[session]) <= _number(values[interval]):
            raise _rejected(f"{session} must be greater than {interval}")


def _within(name: str, value: Value, bound: str, broker: BrokerLevels, side: str) -> None:
    if bound not in broker_configs():
        return
    limit = _number(broker_configs().keys[bound].parse(broker.value(bound)))
    if _number(value) < limit if side == "greater" else _number(value) > limit:
        raise _rejected(f"{name} must be {side} than or equal to {bound}")


def validate_client_metrics_configs(subscription: str, new: Mapping[str, str]) -> None:
    """Check all configs that a client metrics subscription is to have.

    Errors:  InvalidConfig.
    """
    if not subscription:
        raise _bad_request("Subscription name can't be empty")
    for name in new:
        if name not in client_metrics_configs():
            raise _bad_request(f"Unknown client metrics configuration: {name}")
    values = client_metrics_configs().parse(new)
    if "interval.ms" in new and values["interval.ms"] not in _INTERVAL_MS:
        raise _bad_request(
            f"Invalid value {values['interval.ms']} for interval.ms, interval must be between "
            f"{_INTERVAL_MS.start} and {_INTERVAL_MS.stop - 1} (1 hour)"
        )
    if "match" in new:
        patterns = values["match"]
        assert isinstance(patterns, list)
        for pattern in patterns:
            _check_match(pattern)


def _check_match(pattern: str) -> None:
    name, equals, expression = pattern.partition("=")
    legal = bool(equals and expression) and "=" not in expression and name.strip() in _MATCHES
    if legal:
        try:
            re.compile(expression.strip())
        except re.error:
            legal = False
    if not legal:
        raise _rejected(f"Illegal client matching pattern: {pattern}")


def _number(value: Value) -> float:
    assert isinstance(value, (int, float))
    return value


def _rejected(message: str) -> InvalidConfig:
    return InvalidConfig(message, ErrorCode.INVALID_CONFIG)


def _bad_request(message: str) -> InvalidConfig:
    return InvalidConfig(message, ErrorCode.INVALID_REQUEST)
