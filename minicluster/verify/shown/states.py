"""Tables of the committed states: rows as the histories make them, record by record.

=====================  ===========================================================================
table                  one row for
=====================  ===========================================================================
``broker_states``      each record about a broker
``partition_states``   each record about a partition
``topic_steps``        each record that creates or removes a topic, or creates a partition of it
``config_states``      each value of a config that comes into effect, null where its topic goes
``under_min_isr``      each period in which a partition had fewer in-sync replicas than it should
=====================  ===========================================================================

What a table keeps is bounded: by the partitions that are under their min ISR, by the configs that
were ever set. ``ms`` is when the record was written.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, ClassVar, NamedTuple
from uuid import UUID

import pyarrow as pa

from minicluster.configs.definitions import TOPIC_SYNONYMS, broker_configs, topic_configs
from minicluster.configs.effective import BrokerLevels, ConfigSource, effective_topic_config
from minicluster.metadata.image.configs import (
    BROKER,
    BROKER_LOGGER,
    CLIENT_METRICS,
    CLUSTER_DEFAULT,
    GROUP,
    MIN_ISR,
    TOPIC,
)
from minicluster.protocol.records import ConfigRecord
from minicluster.protocol.uuids import format_uuid
from minicluster.verify.histories.partitions import PARTITION, REMOVE_TOPIC, PartitionState
from minicluster.verify.histories.timeline import (
    CommittedBroker,
    CommittedPartition,
    CommittedStates,
    CommittedTopic,
)

Row = tuple[Any, ...]
_INTS, _TEXTS = pa.list_(pa.int32()), pa.list_(pa.string())


class ShownStates(CommittedStates):
    """Committed states as the rows of one table.

    Shapes:  schema: without ``run``. moments: when the records were written that have not all taken
             effect, by offset. static: configs of the run's brokers, by name. rows: those that are
             complete, for the driver to take.
    """

    schema: ClassVar[pa.Schema]

    def __init__(self, static: Mapping[str, str]) -> None:
        super().__init__()
        self.rows: list[Row] = []
        self.moments: dict[int, int] = {}
        self.static = static

    @property
    def ms(self) -> int | None:
        """When the current record was written; None if no record is known."""
        return self.moments.get(self.offset)

    def end(self) -> None:
        """The log ends: make the rows of what lasts."""


class ShownBrokers(ShownStates):
    """Each broker as of each record about it."""

    schema = pa.schema(
        {
            "offset": pa.int64(),
            "ms": pa.int64(),
            "kind": pa.string(),
            "broker": pa.int32(),
            "epoch": pa.int64(),
            "registered": pa.bool_(),
            "was_registered": pa.bool_(),
            "fenced": pa.bool_(),
            "was_fenced": pa.bool_(),
            "in_controlled_shutdown": pa.bool_(),
            "active": pa.bool_(),
            "rack": pa.string(),
            "log_dirs": _TEXTS,
            "metadata_version": pa.int32(),
        }
    )

    def take_broker(self, state: CommittedBroker) -> None:
        """A record has changed a broker."""
        others = {
            "ms": self.ms,
            "log_dirs": _texts(state.log_dirs),
            "metadata_version": state.level,
        }
        self.rows.append(
            tuple(
                others[name] if name in others else getattr(state, name)
                for name in self.schema.names
            )
        )


class ShownPartitions(ShownStates):
    """Each partition as of each record about it."""

    schema = pa.schema(
        {
            "topic": pa.string(),
            "partition": pa.int32(),
            "topic_id": pa.string(),
            "offset": pa.int64(),
            "ms": pa.int64(),
            "kind": pa.string(),
            "exists": pa.bool_(),
            "leader_epoch": pa.int64(),
            "partition_epoch": pa.int64(),
            "isr": _INTS,
            "leader": pa.int32(),
            "replicas": _INTS,
            "adding": _INTS,
            "removing": _INTS,
            "elr": _INTS,
            "last_known_elr": _INTS,
            "leader_recovery_state": pa.int32(),
            "directories": _TEXTS,
            "is_state": pa.bool_(),
            "is_change": pa.bool_(),
            "isr_before": _INTS,
            "leader_before": pa.int32(),
            "unclean": pa.bool_(),
        }
    )

    def take_partition(self, state: CommittedPartition) -> None:
        """A record has changed a partition."""
        step = state.step
        *fields, directories = step.after.fields
        self.rows.append(
            (
                state.topic or None,
                state.partition,
                state.topic_id,
                state.offset,
                self.ms,
                step.kind,
                step.after.alive,
                state.leader_epoch,
                state.partition_epoch,
                *fields,
                None if directories is None else _texts(directories),
                step.leaves_a_state,
                step.is_change,
                step.before.isr,
                step.before.leader,
                step.is_unclean,
            )
        )


class ShownTopics(ShownStates):
    """Each record that creates or removes a topic, or creates a partition of it."""

    schema = pa.schema(
        {
            "offset": pa.int64(),
            "ms": pa.int64(),
            "kind": pa.string(),
            "topic": pa.string(),
            "topic_id": pa.string(),
        }
    )

    def take_topic(self, topic: CommittedTopic) -> None:
        """A topic is created or removed."""
        self.rows.append((self.offset, self.ms, topic.kind, topic.name or None, topic.topic_id))

    def take_partition(self, state: CommittedPartition) -> None:
        """A record has changed a partition."""
        if state.step.kind == PARTITION:
            self.rows.append((self.offset, self.ms, PARTITION, state.topic or None, state.topic_id))


_KINDS = {
    TOPIC: "topic",
    BROKER: "broker",
    BROKER_LOGGER: "broker_logger",
    CLIENT_METRICS: "client_metrics",
    GROUP: "group",
}
_HIDDEN = "[hidden]"  # as Kafka shows a password
_Key = tuple[str, str, str]  # kind of resource, its name, the config
_BEHIND = {  # broker config -> the topic configs that it is behind
    broker: [topic for topic, names in TOPIC_SYNONYMS.items() if broker in names]
    for names in TOPIC_SYNONYMS.values()
    for broker in names
}


_Value = tuple[str | None, str | None, str]  # of the resource itself, in effect, from where


class ShownConfigs(ShownStates):
    """Each config of a resource that was ever set for it: the value in effect, over time.

    Where it is removed, what is behind it is in effect: the cluster's value, that of the brokers'
    own files as far as a run's header has it, Kafka's default.
    """

    schema = pa.schema(
        {
            "offset": pa.int64(),
            "ms": pa.int64(),
            "resource_type": pa.string(),
            "resource": pa.string(),
            "config": pa.string(),
            "value": pa.string(),
            "effective": pa.string(),
            "source": pa.string(),
        }
    )

    def __init__(self, static: Mapping[str, str]) -> None:
        super().__init__(static)
        self._own: dict[tuple[str, str], dict[str, str]] = {}
        self._values: dict[_Key, _Value] = {}

    def on_config(self, record: ConfigRecord) -> None:
        """A config is set or removed."""
        kind = _KINDS.get(record.resource_type, str(record.resource_type))
        resource, config = record.resource_name, record.name
        if kind == "broker" and resource == CLUSTER_DEFAULT:
            kind = "cluster"
        own = self._own.setdefault((kind, resource), {})
        if record.value is None:
            own.pop(config, None)
        else:
            own[config] = record.value
        self._put((kind, resource, config))
        if kind == "cluster":
            names = {config, *_BEHIND.get(config, ())}
            for key in [key for key in self._values if key[2] in names and key[0] != kind]:
                self._put(key)

    def take_topic(self, topic: CommittedTopic) -> None:
        """The configs of a topic are gone with it."""
        resource = ("topic", topic.name)
        if topic.kind == REMOVE_TOPIC and resource in self._own:
            del self._own[resource]
            for key in [key for key in self._values if key[:2] == resource]:
                del self._values[key]
                self.rows.append((self.offset, self.ms, *key, None, None, None))

    def _put(self, key: _Key) -> None:
        """The value of a config is another one from the current record on, or the same."""
        value = self._now(*key)
        if self._values.get(key) != value:
            self._values[key] = value
            self.rows.append((self.offset, self.ms, *key, *value))

    def _now(self, kind: str, resource: str, config: str) -> _Value:
        own = self._own.get((kind, resource), {})
        cluster = self._own.get(("cluster", CLUSTER_DEFAULT), {})
        value = own.get(config)
        if kind == "topic" and config in topic_configs().keys:
            levels = BrokerLevels({}, cluster, self.static)
            resolved = effective_topic_config(config, own, levels)
            return value, resolved.value, resolved.source.name
        if kind in ("broker", "cluster"):
            levels = BrokerLevels(own if kind == "broker" else {}, cluster, self.static)
            effective = levels.value(config)
            sources = (source for source, level in levels.levels() if config in level)
            source = next(sources, ConfigSource.DEFAULT_CONFIG)
            key = broker_configs().keys.get(config)
            if key is not None and key.is_sensitive:
                value, effective = value and _HIDDEN, effective and _HIDDEN
            return value, effective, source.name
        set_here = ConfigSource.DEFAULT_CONFIG if value is None else _SOURCES.get(kind)
        return value, value, (set_here or ConfigSource.UNKNOWN).name


_SOURCES = {
    "topic": ConfigSource.TOPIC_CONFIG,
    "broker_logger": ConfigSource.DYNAMIC_BROKER_LOGGER_CONFIG,
    "client_metrics": ConfigSource.CLIENT_METRICS_CONFIG,
    "group": ConfigSource.GROUP_CONFIG,
}


class _Low(NamedTuple):
    """A period that lasts."""

    offset: int
    ms: int | None
    leader: int
    isr: tuple[int, ...]
    fewest: int
    min_isr: int


class ShownUnderMinIsr(ShownStates):
    """Each period in which a partition had fewer in-sync replicas than its min.insync.replicas.

    That is its topic's, else its leader's own, else the cluster's, else that of the run's brokers,
    else Kafka's default; and at most its number of replicas, as Partition.effectiveMinIsr has it.
    """

    schema = pa.schema(
        {
            "topic": pa.string(),
            "partition": pa.int32(),
            "topic_id": pa.string(),
            "offset": pa.int64(),
            "ms": pa.int64(),
            "to_offset": pa.int64(),
            "to_ms": pa.int64(),
            "min_isr": pa.int32(),
            "isr": _INTS,
            "fewest": pa.int32(),
            "leader": pa.int32(),
        }
    )

    def __init__(self, static: Mapping[str, str]) -> None:
        super().__init__(static)
        self._of_topics: dict[str, int] = {}
        self._of_brokers: dict[str, int] = {}  # CLUSTER_DEFAULT: of all
        self._states: dict[tuple[str, int], tuple[str, PartitionState]] = {}
        self._low: dict[tuple[str, int], _Low] = {}
        default = self.static.get(MIN_ISR) or topic_configs().keys[MIN_ISR].default
        self._default = _number(default) or 1

    def on_config(self, record: ConfigRecord) -> None:
        """A config is set or removed."""
        if record.name != MIN_ISR or record.resource_type not in (TOPIC, BROKER):
            return
        of_topic = record.resource_type == TOPIC
        known = self._of_topics if of_topic else self._of_brokers
        value = _number(record.value)
        if value is None:
            known.pop(record.resource_name, None)
        else:
            known[record.resource_name] = value
        for key, (topic, state) in self._states.items():
            if not of_topic or topic == record.resource_name:
                self._look(key, topic, state)

    def take_topic(self, topic: CommittedTopic) -> None:
        """The config of a topic is gone with it."""
        if topic.kind == REMOVE_TOPIC:
            self._of_topics.pop(topic.name, None)

    def take_partition(self, state: CommittedPartition) -> None:
        """A record has changed a partition."""
        key = state.topic_id, state.partition
        if state.step.leaves_a_state:
            self._states[key] = state.topic, state.after
            self._look(key, state.topic, state.after)
        elif (known := self._states.pop(key, None)) is not None and key in self._low:
            self._close(key, known[0], self.offset, self.ms)

    def _look(self, key: tuple[str, int], topic: str, state: PartitionState) -> None:
        min_isr = self._min_isr(topic, state)
        low, size = self._low.get(key), len(state.isr)
        if size >= min_isr:
            if low is not None:
                self._close(key, topic, self.offset, self.ms)
        elif low is None:
            since = self.offset, self.ms
            self._low[key] = _Low(*since, state.leader, tuple(state.isr), size, min_isr)
        elif size < low.fewest:
            self._low[key] = low._replace(fewest=size)

    def _min_isr(self, topic: str, state: PartitionState) -> int:
        brokers = self._of_brokers
        value = self._of_topics.get(topic)
        if value is None:
            value = brokers.get(str(state.leader), brokers.get(CLUSTER_DEFAULT, self._default))
        return min(value, len(state.replicas))

    def _close(
        self, key: tuple[str, int], topic: str, to_offset: int | None, to_ms: int | None
    ) -> None:
        low = self._low.pop(key)
        since = low.offset, low.ms, to_offset, to_ms
        seen = low.min_isr, low.isr, low.fewest, low.leader
        self.rows.append((topic or None, key[1], key[0], *since, *seen))

    def end(self) -> None:
        """The periods that last."""
        for key in list(self._low):
            self._close(key, self._states[key][0], None, None)


STATE_TABLES: Mapping[str, type[ShownStates]] = {
    "broker_states": ShownBrokers,
    "partition_states": ShownPartitions,
    "topic_steps": ShownTopics,
    "config_states": ShownConfigs,
    "under_min_isr": ShownUnderMinIsr,
}


def _texts(ids: Iterable[UUID]) -> list[str]:
    return [format_uuid(id_) for id_ in ids]


def _number(text: str | None) -> int | None:
    return int(text) if text is not None and text.strip().isdecimal() else None
