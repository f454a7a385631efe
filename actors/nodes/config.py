"""A cluster's settings, under Kafka's names, with Kafka's defaults.

A setting that all nodes of a cluster have is a field here, which says which config it is. Any other
config of a broker is one of ``static`` where it is given, as in a broker's properties file.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import Any
from uuid import UUID

from minicluster.configs.config_def import InvalidConfig
from minicluster.configs.definitions import broker_configs
from minicluster.configs.dynamic_broker import check_cordoned
from minicluster.configs.effective import BrokerLevels
from minicluster.configs.views import broker_config, older_config, viewed_configs
from minicluster.configs.without_effect import reason_without_effect
from minicluster.durations import LONGEST_MS, parse_duration_ms
from minicluster.errors import UserError, instead
from minicluster.log.format.compression import Codec
from minicluster.metadata.supported_features import UNSTABLE
from minicluster.quorum.settings import FETCH_MAX_WAIT_MS
from minicluster.rules import Rules
from minicluster.scenario.checks.limits import (
    DIGITS_MAX,
    DIRECTORIES_MAX,
    PARTITIONS_MAX,
    REPLICAS_MAX,
    checked_text,
    shown,
    whole_number,
)
from minicluster.security.authorizer import ALLOW_EVERYONE, SUPER_USERS
from minicluster.values import dataclass, replace

COUNTS_MAX: Mapping[str, int] = {
    "default.replication.factor": REPLICAS_MAX,
    "metadata.max.retention.bytes": 2**63 - 1,
    "num.partitions": PARTITIONS_MAX,
}
# At zero, these would elect, expire or repeat at the same instant for ever.
ABOVE_ZERO = frozenset(
    {
        "broker.heartbeat.interval.ms",
        "broker.session.timeout.ms",
        "controller.quorum.election.timeout.ms",
        "controller.quorum.fetch.timeout.ms",
        "controller.quorum.request.timeout.ms",
        "replica.high.watermark.checkpoint.interval.ms",
        "replica.lag.time.max.ms",
        "request.timeout.ms",
        "unclean.leader.election.interval.ms",
    }
)
# Names divided by commas, as in Kafka; here they are names without paths.
LOG_DIRS = "log.dirs"
METADATA_LOG_DIR = "metadata.log.dir"
BROKER_RACK = "broker.rack"
CONTROLLED_SHUTDOWN = "controlled.shutdown.enable"
IMBALANCE_CHECK = "leader.imbalance.check.interval.seconds"
OFFSETS_CODEC = "offsets.topic.compression.codec"  # by number, which Kafka's table does not check
_BY_IDS = "broker_ids=[…] and controller_ids=[…] number the nodes"
_BY_LISTENERS = "listeners=True gives each node a port, ListenAddress(…) one that you name"
# Configs that the cluster itself sets for each node, and the arguments that decide them.
OWN: Mapping[str, str] = {
    "advertised.listeners": _BY_LISTENERS,
    "broker.id": _BY_IDS,
    "controller.listener.names": _BY_LISTENERS,
    "controller.quorum.voters": "controllers=3, controller_ids=[…] or quorum=… names them",
    "listeners": _BY_LISTENERS,
    "node.id": _BY_IDS,
    "process.roles": "a node in both broker_ids=[…] and controller_ids=[…] has both roles",
}
# No config of Kafka's table: its nodes hand the whole file to the authorizer.
_OF_LISTENER = re.compile(r"listener\.name\.[^.]+\.(.+)")
OF_AUTHORIZER = frozenset({ALLOW_EVERYONE, SUPER_USERS})


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterConfig:
    """Every setting of a cluster; each node has the same."""

    heartbeat_interval_ms: int = broker_config("broker.heartbeat.interval.ms")
    session_timeout_ms: int = broker_config("broker.session.timeout.ms")
    zookeeper_session_timeout_ms: int = older_config("zookeeper.session.timeout.ms", 18_000)
    zookeeper_tick_ms: int = 2_000  # tickTime, of ZooKeeper's own configs
    controlled_shutdown_attempts: int = older_config("controlled.shutdown.max.retries", 3)
    controlled_shutdown_backoff_ms: int = older_config(
        "controlled.shutdown.retry.backoff.ms", 5_000
    )
    leader_imbalance_percentage: int = older_config("leader.imbalance.per.broker.percentage", 10)
    append_linger_ms: int = broker_config("controller.quorum.append.linger.ms")
    election_backoff_max_ms: int = broker_config("controller.quorum.election.backoff.max.ms")
    election_timeout_ms: int = broker_config("controller.quorum.election.timeout.ms")
    fetch_timeout_ms: int = broker_config("controller.quorum.fetch.timeout.ms")
    quorum_request_timeout_ms: int = broker_config("controller.quorum.request.timeout.ms")
    quorum_fetch_wait_max_ms: int = FETCH_MAX_WAIT_MS
    retry_backoff_ms: int = broker_config("controller.quorum.retry.backoff.ms")
    initial_registration_timeout_ms: int = broker_config("initial.broker.registration.timeout.ms")
    log_dir_failure_timeout_ms: int = broker_config("log.dir.failure.timeout.ms")
    metadata_max_idle_interval_ms: int = broker_config("metadata.max.idle.interval.ms")
    replica_fetch_backoff_ms: int = broker_config("replica.fetch.backoff.ms")
    replica_fetch_wait_max_ms: int = broker_config("replica.fetch.wait.max.ms")
    high_watermark_checkpoint_interval_ms: int = broker_config(
        "replica.high.watermark.checkpoint.interval.ms"
    )
    replica_lag_time_max_ms: int = broker_config("replica.lag.time.max.ms")
    request_timeout_ms: int = broker_config("request.timeout.ms")
    unclean_election_interval_ms: int = broker_config("unclean.leader.election.interval.ms")
    default_replication_factor: int = broker_config("default.replication.factor")
    snapshot_bytes: int = broker_config("metadata.log.max.record.bytes.between.snapshots")
    snapshot_interval_ms: int = broker_config("metadata.log.max.snapshot.interval.ms")
    metadata_retention_bytes: int = broker_config("metadata.max.retention.bytes")
    metadata_retention_ms: int = broker_config("metadata.max.retention.ms")
    num_partitions: int = broker_config("num.partitions")
    log_dirs: tuple[str, ...] = ("d0",)  # each broker's directories by name
    metadata_log_dir: str | None = None  # None: one of its own (Kafka's default: the first)
    auto_leader_rebalance: bool = broker_config("auto.leader.rebalance.enable")
    # None: as the metadata.version has it.
    eligible_leader_replicas: bool | None = older_config("eligible.leader.replicas.enable", None)
    # 1: the voters are records of the log and can change (KIP-853).
    kraft_version: int = older_config("kraft.version", 0)
    # How many of the controllers vote at first; 0: all.
    initial_controllers: int = older_config("initial.controllers", 0)
    rack: str | None = None  # of one broker, before broker.rack
    # Controllers that do not vote become voters by themselves.
    auto_join: bool = broker_config("controller.quorum.auto.join.enable")
    static: Mapping[str, str] = field(default_factory=dict)

    def with_settings(self, given: Mapping[str, Any]) -> ClusterConfig:
        """These settings with some replaced, under Kafka's names.

        Units:   a number for a time is milliseconds, as in Kafka's files; or a text such as "10s".
        Errors:  UserError for a name that is not known or a value that does not fit.
        """
        values: dict[str, Any] = {}
        static = dict(self.static)
        for name, value in given.items():
            if name in DURATIONS:
                values[DURATIONS[name]] = _milliseconds(name, value)
            elif name in COUNTS:
                values[COUNTS[name]] = _count(name, value)
                if name in broker_configs():
                    static[name] = str(values[COUNTS[name]])
            elif name == LOG_DIRS:
                values["log_dirs"] = _directories(value)
            elif name == METADATA_LOG_DIR:
                values["metadata_log_dir"] = str(value).strip()
            elif name in SWITCHES:
                values[SWITCHES[name]] = _switch(name, value)
            elif name in OWN:
                raise UserError(f"config: {name} is not set as a config: {OWN[name]}")
            elif name in broker_configs():
                static[name] = _static(name, value)
            elif (of_listener := _OF_LISTENER.fullmatch(name)) is not None:
                base = of_listener[1]
                static[name] = _static(base, value) if base in broker_configs() else str(value)
            elif name in OF_AUTHORIZER:
                static[name] = str(value).lower() if isinstance(value, bool) else str(value)
            elif reason_without_effect(name) is None:
                names = [*DURATIONS, *COUNTS, *SWITCHES, *broker_configs().keys]
                hint = instead(name, names, "minicluster list configs shows all")
                raise UserError(f"config: {name!r} is not known here; {hint}")
        new = replace(self, static=static, **values)
        if new.metadata_log_dir is not None and new.metadata_log_dir not in new.log_dirs:
            raise UserError(
                f"config: {METADATA_LOG_DIR}: {new.metadata_log_dir!r} is none of {LOG_DIRS} "
                f"({', '.join(new.log_dirs)}); leave it out for a directory of its own"
            )
        return new

    def check_as_broker(self, rules: Rules) -> None:
        """Reject what a broker would not start with; a node that is a controller alone does.

        Errors:  UserError.
        """
        if not rules.cordoned_dirs_must_exist:
            return
        own = {**self.static, LOG_DIRS: ",".join(self.log_dirs)}
        try:
            check_cordoned(BrokerLevels({}, {}, own))
        except InvalidConfig as rejection:
            why = rejection.message.removeprefix("requirement failed: ")
            raise UserError(f"config: {why}") from None

    @property
    def imbalance_check_interval_ms(self) -> int:
        """The interval in which leaders go back to preferred replicas."""
        return 1_000 * int(self.text(IMBALANCE_CHECK))

    @property
    def unstable_feature_versions(self) -> bool:
        """True: levels of features that are for testing only are supported and offered."""
        return self.enables(UNSTABLE)

    def enables(self, name: str) -> bool:
        """A switch of Kafka's is on."""
        return self.text(name).lower() == "true"

    def text(self, name: str) -> str:
        """A config as the properties file has it, else Kafka's default."""
        return self.static.get(name, broker_configs().keys[name].default or "")

    def rack_of(self, broker_id: int) -> str | None:
        """The rack of a broker.

        Shapes:  broker.rack has one rack for all, or racks that the brokers take in turn: "a,b,c".
        """
        return self.rack if self.rack is not None else self.rack_at(broker_id - 1)

    def rack_at(self, index: int) -> str | None:
        """The rack of the broker at a place among all, counted from 0."""
        racks = [rack.strip() for rack in self.static.get(BROKER_RACK, "").split(",")]
        return racks[index % len(racks)] or None

    def metadata_directory(self, directory_ids: Sequence[UUID]) -> UUID | None:
        """The directory of a broker's metadata log among its log directories, None if apart."""
        if self.metadata_log_dir is None:
            return None
        return directory_ids[self.log_dirs.index(self.metadata_log_dir)]


def _fields_by_config(kind: str) -> dict[str, str]:
    """Kafka's name of a setting -> the field that holds it, of one kind of setting."""
    kinds = {"bool": "switch", "bool | None": "switch", "int": "count"}
    types = {name: str(type_) for name, type_ in ClusterConfig.__annotations__.items()}
    return {
        viewed.name: name
        for name, viewed in viewed_configs(ClusterConfig).items()
        if ("duration" if viewed.name.endswith(".ms") else kinds[types[name]]) == kind
    }


DURATIONS: Mapping[str, str] = _fields_by_config("duration")  # all of these in milliseconds
COUNTS: Mapping[str, str] = _fields_by_config("count")
SWITCHES: Mapping[str, str] = _fields_by_config("switch")

# Real time is expensive: a threaded cluster elects and registers quickly, at the cost of timeouts
# that a loaded machine may miss. The ratios between the timeouts are about Kafka's.
THREADED = ClusterConfig(
    append_linger_ms=0,
    election_timeout_ms=500,
    fetch_timeout_ms=1_000,
    election_backoff_max_ms=200,
    quorum_request_timeout_ms=1_000,
    heartbeat_interval_ms=500,
    session_timeout_ms=4_500,
    replica_lag_time_max_ms=5_000,
    replica_fetch_backoff_ms=100,
)


def _static(name: str, value: Any) -> str:
    """The text of a config in a broker's properties file."""
    text = str(value).lower() if isinstance(value, bool) else str(value).strip()
    key = broker_configs().keys[name]
    try:
        if name.endswith(".ms") and text[-1:].isalpha():
            text = str(parse_duration_ms(text, what=f"config: {name}"))
        key.parse(text)
        if name == OFFSETS_CODEC and int(text) not in tuple(Codec):
            codecs = ", ".join(f"{codec} ({codec.name.lower()})" for codec in Codec)
            raise UserError(f"config: {name}: {text} is none of {codecs}")
    except InvalidConfig as error:
        if key.limits is None:
            raise UserError(f"config: {error}") from None
        low, high = key.limits
        number = f"{shown(value)} is not a whole number from {low} to {high}"
        raise UserError(f"config: {name}: {number}") from None
    return text


def _milliseconds(name: str, value: Any) -> int:
    what = f"config: {name}"
    text = checked_text(value, what).strip() if isinstance(value, str) else ""
    if text.isdecimal() and text.isascii() and len(text) <= DIGITS_MAX:
        value = int(text)
    if isinstance(value, int) and not isinstance(value, bool):
        return whole_number(value, what, int(name in ABOVE_ZERO), LONGEST_MS)
    return whole_number(_with_unit(value, what), what, int(name in ABOVE_ZERO), LONGEST_MS)


def _with_unit(value: object, what: str) -> int:
    """A duration in place of milliseconds, which are what a number means in a config."""
    if isinstance(value, str) and value.strip()[-1:].isalpha():
        return parse_duration_ms(value, what=what)
    example = "milliseconds, or text with a unit, such as '10s'"
    raise UserError(f"{what}: {shown(value)} is not a duration; write {example}")


def _count(name: str, value: Any) -> int:
    what = f"config: {name}"
    text = value.strip() if isinstance(value, str) else ""
    if text.isdecimal() and text.isascii() and len(text) <= DIGITS_MAX:
        value = int(text)
    key = broker_configs().keys.get(name)
    low, _ = (key and key.limits) or (0, 0)
    return whole_number(value, what, max(0, low), COUNTS_MAX.get(name, 2**31 - 1))


def _directories(value: Any) -> tuple[str, ...]:
    if not isinstance(value, str):
        what = "names with commas between them; write 'd0,d1' for two directories"
        raise UserError(f"config: {LOG_DIRS}: {value!r} is not {what}")
    names = [name.strip() for name in value.split(",")]
    whole_number(len(names), f"config: {LOG_DIRS}: how many", 1, DIRECTORIES_MAX)
    if not all(names) or len(set(names)) < len(names):
        raise UserError(f"config: {LOG_DIRS}: {value!r} is not a list of different names: d0,d1")
    return tuple(names)


def _switch(name: str, value: Any) -> bool:
    text = str(value).strip().lower()
    if text not in ("true", "false"):
        raise UserError(f"config: {name}: {value!r} is neither true nor false")
    return text == "true"
