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

from collections.abc import Callable, Iterable, Mapping
from operator import attrgetter
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
    TOPIC,
)
from minicluster.protocol.records import ConfigRecord
from minicluster.protocol.uuids import format_uuid
from minicluster.verify.histories.min_isr import MinIsr
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


# Column: its type, and the attribute of a committed state.
_Columns = Mapping[str, tuple[pa.DataType, str]]
_OF_BROKERS: _Columns = {
    "offset": (pa.int64(), "offset"),
    "kind": (pa.string(), "kind"),
    "broker": (pa.int32(), "broker"),
    "epoch": (pa.int64(), "epoch"),
    "registered": (pa.bool_(), "registered"),
    "was_registered": (pa.bool_(), "was_registered"),
    "fenced": (pa.bool_(), "fenced"),
    "was_fenced": (pa.bool_(), "was_fenced"),
    "in_controlled_shutdown": (pa.bool_(), "in_controlled_shutdown"),
    "active": (pa.bool_(), "active"),
    "rack": (pa.string(), "rack"),
    "metadata_version": (pa.int32(), "level"),
}
_OF_PARTITIONS: _Columns = {
    "partition": (pa.int32(), "partition"),
    "topic_id": (pa.string(), "topic_id"),
    "offset": (pa.int64(), "offset"),
    "kind": (pa.string(), "step.kind"),
    "exists": (pa.bool_(), "step.after.alive"),
    "leader_epoch": (pa.int64(), "leader_epoch"),
    "partition_epoch": (pa.int64(), "partition_epoch"),
    "isr": (_INTS, "step.after.isr"),
    "leader": (pa.int32(), "step.after.leader"),
    "replicas": (_INTS, "step.after.replicas"),
    "adding": (_INTS, "step.after.adding"),
    "removing": (_INTS, "step.after.removing"),
    "elr": (_INTS, "step.after.elr"),
    "last_known_elr": (_INTS, "step.after.last_elr"),
    "leader_recovery_state": (pa.int32(), "step.after.recovery"),
    "is_state": (pa.bool_(), "step.leaves_a_state"),
    "is_change": (pa.bool_(), "step.is_change"),
    "isr_before": (_INTS, "step.before.isr"),
    "leader_before": (pa.int32(), "step.before.leader"),
    "unclean": (pa.bool_(), "step.is_unclean"),
}


def _types(columns: _Columns) -> dict[str, pa.DataType]:
    return {name: type_ for name, (type_, _) in columns.items()}


def _values(columns: _Columns) -> Callable[[Any], Row]:
    return attrgetter(*(attribute for _, attribute in columns.values()))


class ShownBrokers(ShownStates):
    """Each broker as of each record about it."""

    schema = pa.schema({"ms": pa.int64(), "log_dirs": _TEXTS, **_types(_OF_BROKERS)})
    _values = staticmethod(_values(_OF_BROKERS))

    def take_broker(self, state: CommittedBroker) -> None:
        """A record has changed a broker."""
        self.rows.append((self.ms, _texts(state.log_dirs), *self._values(state)))


class ShownPartitions(ShownStates):
    """Each partition as of each record about it."""

    schema = pa.schema(
        {
            "ms": pa.int64(),
            "topic": pa.string(),
            "directories": _TEXTS,
            **_types(_OF_PARTITIONS),
        }
    )
    _values = staticmethod(_values(_OF_PARTITIONS))

    def take_partition(self, state: CommittedPartition) -> None:
        """A record has changed a partition."""
        ids = state.after.directories
        directories = None if ids is None else _texts(ids)
        self.rows.append((self.ms, state.topic or None, directories, *self._values(state)))


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
    """Each period in which a partition had fewer in-sync replicas than its min.insync.replicas."""

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
        self._min_isr = MinIsr(static)
        self._states: dict[tuple[str, int], tuple[str, PartitionState]] = {}
        self._low: dict[tuple[str, int], _Low] = {}

    def on_config(self, record: ConfigRecord) -> None:
        """A config is set or removed."""
        if not self._min_isr.on_config(record):
            return
        for key, (topic, state) in self._states.items():
            if record.resource_type == BROKER or topic == record.resource_name:
                self._look(key, topic, state)

    def take_topic(self, topic: CommittedTopic) -> None:
        """The config of a topic is gone with it."""
        if topic.kind == REMOVE_TOPIC:
            self._min_isr.on_topic_removed(topic.name)

    def take_partition(self, state: CommittedPartition) -> None:
        """A record has changed a partition."""
        key = state.topic_id, state.partition
        if state.step.leaves_a_state:
            self._states[key] = state.topic, state.after
            self._look(key, state.topic, state.after)
        elif (known := self._states.pop(key, None)) is not None and key in self._low:
            self._close(key, known[0], self.offset, self.ms)

    def _look(self, key: tuple[str, int], topic: str, state: PartitionState) -> None:
        min_isr = self._min_isr.of(topic, state.leader, len(state.replicas))
        low, size = self._low.get(key), len(state.isr)
        if size >= min_isr:
            if low is not None:
                self._close(key, topic, self.offset, self.ms)
        elif low is None:
            since = self.offset, self.ms
            self._low[key] = _Low(*since, state.leader, tuple(state.isr), size, min_isr)
        elif size < low.fewest:
            self._low[key] = low._replace(fewest=size)

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
