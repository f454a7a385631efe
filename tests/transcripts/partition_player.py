"""Partition transcripts: one partition, or the AlterPartition manager, event by event.

What is compared: every field of the state, the proposals, errors, offsets and epochs of results,
and how often waiting operations were to be looked at. ``completed`` counts as a set; ``bytes`` is
left out, and a read of fewer than 100,000 bytes may find a prefix of what Kafka found, or more.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from minicluster.log import Log, Record, RecordBatch
from minicluster.metadata.image.directory_id import MIGRATING
from minicluster.metadata.image.partition import RECOVERED, RECOVERING, PartitionRegistration
from minicluster.protocol import ErrorCode, parse_uuid
from minicluster.replica.broker_context import (
    AlterPartitionItem,
    AlterPartitionResult,
    BrokerContext,
    BrokerView,
    OnAlterPartition,
)
from minicluster.replica.config import ReplicaManagerConfig
from minicluster.replica.errors import OffsetsOutOfOrder, ReplicaError, UnexpectedAppendOffset
from minicluster.replica.partition.follower_log import (
    append_records_to_follower,
    truncate,
    truncate_fully,
)
from minicluster.replica.partition.high_watermark import low_watermark
from minicluster.replica.partition.isr import run_isr_task
from minicluster.replica.partition.leader_log import (
    append_records_to_leader,
    check_enough_replicas,
    delete_records_on_leader,
)
from minicluster.replica.partition.leadership import make_follower, make_leader
from minicluster.replica.partition.partition import Partition, PendingExpandIsr, PendingShrinkIsr
from minicluster.replica.partition.reads import (
    LogReadInfo,
    consumer_fetch_records,
    fetch_records,
    last_offset_for_leader_epoch,
    list_offsets,
)
from minicluster.replica.requests.purgatory import DelayedOperation, DelayedOperations, Key
from minicluster.rules import Rules
from tests.replica.partition_kit import is_at_min_isr, is_under_replicated
from tests.transcripts.report import NotBuilt

Json = dict[str, Any]

_RECOVERY_NAMES = {RECOVERED: "RECOVERED", RECOVERING: "RECOVERING"}
_RECOVERY_STATES = {name: state for state, name in _RECOVERY_NAMES.items()}
_SMALL_READ = 100_000


@dataclass(frozen=True, slots=True)
class _Broker:
    epoch: int
    fenced: bool
    in_controlled_shutdown: bool


class _Waiting(DelayedOperation):
    """A produce (acks=all) or a deletion of records that waits for an offset."""

    deadline_ms = 1 << 62

    def __init__(self, player: PartitionPlayer, kind: str, offset: int) -> None:
        self.player, self.kind, self.offset, self.index = player, kind, offset, player.index

    def try_complete(self, now_ms: int) -> bool:
        self.error = self.player.outcome(self)
        return self.error is not None

    def on_complete(self, now_ms: int) -> None:
        assert self.error is not None
        self.player.completed.append({self.kind: self.index, "error": self.error.name})


class _Delayed(DelayedOperations):
    """Counts how often all operations of the partition were tried."""

    checks = 0

    def check_and_complete_all(self, key: Key, now_ms: int) -> None:
        self.checks += 1
        super().check_and_complete_all(key, now_ms)


class _HeldBack:
    """Kafka's MockAlterPartitionManager: one item is in flight until the transcript responds."""

    def __init__(self) -> None:
        self.in_flight: tuple[int, OnAlterPartition] | None = None
        self.submitted: list[Json] = []
        self._ids = itertools.count(1)

    def submit(self, item: AlterPartitionItem, on_complete: OnAlterPartition, now_ms: int) -> None:
        number, accepted = next(self._ids), self.in_flight is None
        self.submitted.append(_item_json(number, item, accepted=accepted))
        if accepted:
            self.in_flight = (number, on_complete)
        else:
            on_complete(AlterPartitionResult(error=ErrorCode.OPERATION_NOT_ATTEMPTED), now_ms)

    def complete(self, number: int, result: AlterPartitionResult, now_ms: int) -> None:
        if self.in_flight is not None and self.in_flight[0] == number:
            (_, on_complete), self.in_flight = self.in_flight, None
            on_complete(result, now_ms)


class PartitionPlayer:
    """One partition with what Kafka keeps around it: image, purgatories, one log on disk."""

    def __init__(self, header: Mapping[str, Any], rules: Rules) -> None:
        self._header = header
        self._log = Log()
        self._brokers: dict[int, _Broker] = {}
        self._min_isr: int = header["min_insync_replicas"]
        self._manager = _HeldBack()
        config = ReplicaManagerConfig(
            broker_id=header["broker_id"],
            replica_lag_time_max_ms=header["replica_lag_time_max_ms"],
            traced=False,
        )
        self._context = BrokerContext(config, rules=rules)
        self._context.alter_partition_manager = self._manager
        self._context.view = BrokerView(header["broker_epoch"], self._brokers)
        self._started = False
        self._now_ms = 0
        self.index = 0
        self._begin(0)

    def play(self, line: Mapping[str, Any]) -> Json:
        """Play one event; what came of it has the form of the transcript's line."""
        event = line["event"]
        self._now_ms, self.index = line["now_ms"], line["i"]
        self._manager.submitted, self.completed, self._delayed.checks = [], [], 0
        handler: Callable[[Json], Json] | None = getattr(self, f"_on_{event['kind']}", None)
        if handler is None:
            raise NotBuilt(f"there is no {event['kind']}")
        try:
            result = handler(event)
        except ReplicaError as refusal:
            result = {"error": _kafka_name(refusal)}
        return {
            "result": result,
            "alter_partition": self._manager.submitted,
            "completed": self.completed,
            "completion_checks": self._delayed.checks,
            "state": self._state(),
        }

    # --- around the partition -----------------------------------------------------------------

    def _begin(self, high_watermark_checkpoint: int) -> None:
        """Start an incarnation over the log."""
        context = self._context
        context.delayed = self._delayed = _Delayed(context.effects)
        self.completed = []
        self._partition = Partition(
            context,
            topic="transcript",
            topic_id=parse_uuid(self._header["topic_id"]),
            partition=0,
            log=self._log,
            high_watermark_checkpoint=high_watermark_checkpoint,
            min_insync_replicas=self._min_isr,
        )

    def outcome(self, waiting: _Waiting) -> ErrorCode | None:
        """The outcome of an operation; None while it waits."""
        if waiting.kind == "produce":
            enough = check_enough_replicas(self._partition, waiting.offset)
            return enough.error if enough.reached or enough.error else None
        if not self._partition.is_leader:
            return ErrorCode.NOT_LEADER_OR_FOLLOWER
        done = low_watermark(self._partition) >= waiting.offset
        return ErrorCode.NONE if done else None

    # --- events -------------------------------------------------------------------------------

    def _on_metadata_changed(self, event: Json) -> Json:
        for broker in event["brokers"]:
            if broker["epoch"] is None:
                self._brokers.pop(broker["id"], None)
            else:
                self._brokers[broker["id"]] = _Broker(
                    broker["epoch"], broker["fenced"], broker["in_controlled_shutdown"]
                )
        return {}

    def _on_become_leader(self, event: Json) -> Json:
        self._started = True
        return {"new_leader": make_leader(self._partition, _registration(event), self._now_ms)}

    def _on_become_follower(self, event: Json) -> Json:
        self._started = True
        is_new = make_follower(self._partition, _registration(event))
        if is_new:
            self._delayed.complete_when_not_leader(self._partition.key, self._now_ms)
        return {"new_leader_epoch": is_new}

    def _on_restart(self, event: Json) -> Json:
        before = self._partition
        self._context.view = BrokerView(event["broker_epoch"], self._brokers)
        self._manager.in_flight = None
        self._begin(event["high_watermark_checkpoint"])
        self._partition.isr_expands = before.isr_expands
        self._partition.isr_shrinks = before.isr_shrinks
        self._partition.failed_isr_updates = before.failed_isr_updates
        self._started = False
        return {}

    def _on_config_changed(self, event: Json) -> Json:
        self._min_isr = self._partition.min_insync_replicas = event["min_insync_replicas"]
        return {}

    def _on_advance(self, event: Json) -> Json:
        return {}

    def _on_append(self, event: Json) -> Json:
        value = bytes(event["value_bytes"])
        batch = _batch(0, event["count"] - 1, -1, self._now_ms, value)
        appended = append_records_to_leader(self._partition, batch, event["acks"], self._now_ms)
        if appended.high_watermark_increased:
            for purgatory in self._delayed.all:
                purgatory.check_and_complete(self._partition.key, self._now_ms)
        if event["acks"] == -1:
            self._wait("produce", appended.last_offset + 1)
        return {
            "first_offset": appended.first_offset,
            "last_offset": appended.last_offset,
            "log_start_offset": appended.log_start_offset,
            "high_watermark_increased": appended.high_watermark_increased,
        }

    def _wait(self, kind: str, offset: int) -> None:
        waiting = _Waiting(self, kind, offset)
        if waiting.try_complete(self._now_ms):
            waiting.on_complete(self._now_ms)
        elif kind == "produce":
            self._delayed.produces.watch(waiting, [self._partition.key])
        else:
            self._delayed.deletes.watch(waiting, [self._partition.key])

    def _on_fetch(self, event: Json) -> Json:
        info = fetch_records(
            self._partition,
            replica_id=event["replica"],
            broker_epoch=event["broker_epoch"],
            fetch_offset=event["fetch_offset"],
            log_start_offset=event["log_start_offset"],
            current_leader_epoch=event["current_leader_epoch"],
            last_fetched_epoch=event["last_fetched_epoch"],
            max_bytes=event["max_bytes"],
            now_ms=self._now_ms,
        )
        return _fetch_json(info)

    def _on_consumer_fetch(self, event: Json) -> Json:
        info = consumer_fetch_records(
            self._partition,
            fetch_offset=event["fetch_offset"],
            any_replica=event["any_replica"],
            current_leader_epoch=event["current_leader_epoch"],
            last_fetched_epoch=event["last_fetched_epoch"],
            max_bytes=event["max_bytes"],
        )
        return _fetch_json(info)

    def _on_maybe_shrink_isr(self, event: Json) -> Json:
        run_isr_task(self._partition, self._now_ms)
        return {}

    def _on_alter_partition_response(self, event: Json) -> Json:
        error = ErrorCode[event["error"]]
        result = AlterPartitionResult(error=error)
        if error == ErrorCode.NONE:
            result = AlterPartitionResult(
                leader=event["leader"],
                leader_epoch=event["leader_epoch"],
                isr=tuple(event["isr"]),
                recovery_state=_RECOVERY_STATES[event["recovery_state"]],
                partition_epoch=event["partition_epoch"],
            )
        self._manager.complete(event["id"], result, self._now_ms)
        return {}

    def _on_delete_records(self, event: Json) -> Json:
        result = delete_records_on_leader(self._partition, event["offset"])
        if result.low_watermark < result.requested_offset:
            self._wait("delete_records", result.requested_offset)
        return {
            "requested_offset": result.requested_offset,
            "low_watermark": result.low_watermark,
        }

    def _on_list_offsets(self, event: Json) -> Json:
        found = list_offsets(
            self._partition,
            timestamp=event["timestamp"],
            from_replica=event["isolation"] is None,
            current_leader_epoch=event["current_leader_epoch"],
            leader_only=event["only_leader"],
        )
        assert found is not None
        return {"offset": found.offset, "leader_epoch": found.leader_epoch}

    def _on_last_offset_for_leader_epoch(self, event: Json) -> Json:
        try:
            found = last_offset_for_leader_epoch(
                self._partition,
                event["leader_epoch"],
                current_leader_epoch=event["current_leader_epoch"],
                leader_only=event["only_leader"],
            )
        except ReplicaError as refusal:
            return {"error": _kafka_name(refusal), "leader_epoch": -1, "end_offset": -1}
        return {"error": "NONE", "leader_epoch": found.epoch, "end_offset": found.end_offset}

    def _on_check_enough_replicas(self, event: Json) -> Json:
        enough = check_enough_replicas(self._partition, event["required_offset"])
        return {"reached": enough.reached, "error": enough.error.name}

    def _on_append_as_follower(self, event: Json) -> Json:
        appended = append_records_to_follower(
            self._partition,
            [_batch(base, last, epoch, self._now_ms) for base, last, epoch in event["batches"]],
            partition_leader_epoch=event["partition_leader_epoch"],
            leader_high_watermark=event["leader_high_watermark"],
            leader_log_start_offset=event["leader_log_start_offset"],
            now_ms=self._now_ms,
        )
        return {
            "last_offset": appended.last_offset,
            "high_watermark_changed": appended.high_watermark_changed,
            "log_start_offset_changed": appended.log_start_offset_changed,
        }

    def _on_truncate(self, event: Json) -> Json:
        truncate(self._partition, event["offset"])
        return {}

    def _on_truncate_fully(self, event: Json) -> Json:
        truncate_fully(self._partition, event["offset"])
        return {}

    # --- state --------------------------------------------------------------------------------

    def _state(self) -> Json:
        partition = self._partition
        state = partition.isr_state
        leads = partition.is_leader
        found: Json = {
            "role": "leader" if leads else "follower" if self._started else "none",
            "leader": partition.leader,
            "leader_epoch": partition.leader_epoch,
            "leader_epoch_start_offset": partition.leader_epoch_start_offset,
            "partition_epoch": partition.partition_epoch,
            "replicas": list(partition.replicas),
            "adding": list(partition.adding_replicas),
            "removing": list(partition.removing_replicas),
            "kind": "committed",
            "isr": list(state.isr),
            "maximal_isr": list(state.maximal_isr),
            "recovery_state": _RECOVERY_NAMES[state.recovery_state],
            "in_flight": self._manager.in_flight[0] if self._manager.in_flight else None,
            "under_min_isr": partition.is_under_min_isr,
            "at_min_isr": is_at_min_isr(partition),
            "under_replicated": is_under_replicated(partition),
            "low_watermark": low_watermark(partition) if leads else None,
            "followers": {
                str(broker): {
                    "log_start_offset": follower.log_start_offset,
                    "log_end_offset": follower.log_end_offset,
                    "last_fetch_leader_log_end_offset": follower.last_fetch_leader_log_end_offset,
                    "last_fetch_ms": follower.last_fetch_ms,
                    "last_caught_up_ms": follower.last_caught_up_ms,
                    "broker_epoch": follower.broker_epoch,
                }
                for broker, follower in partition.remote_replicas.items()
            },
            "waiting_produce": len(self._delayed.produces),
            "waiting_delete_records": len(self._delayed.deletes),
            "isr_expands": partition.isr_expands,
            "isr_shrinks": partition.isr_shrinks,
            "isr_failures": partition.failed_isr_updates,
        }
        if isinstance(state, PendingExpandIsr):
            found |= {"kind": "pending_expand", "expanding": state.new_in_sync_replica}
        elif isinstance(state, PendingShrinkIsr):
            found |= {"kind": "pending_shrink", "shrinking": list(state.out_of_sync_replicas)}
        if self._started:
            found |= {
                "log_start_offset": partition.log_start_offset,
                "high_watermark": partition.high_watermark,
                "log_end_offset": partition.log_end_offset,
                "epochs": [list(entry) for entry in partition.log.epochs.entries],
            }
        return found


def compare_partition(line: Mapping[str, Any], found: Json) -> list[str]:
    """Differences between a transcript's line and the result, one sentence each."""
    wanted = dict(line)
    wanted["result"] = {k: v for k, v in line["result"].items() if k != "bytes"}
    wanted["alter_partition"] = [_sorted_isr(proposal) for proposal in line["alter_partition"]]
    wanted["completed"] = sorted(map(str, line["completed"]))
    found = {**found, "completed": sorted(map(str, found["completed"]))}
    if line["event"].get("max_bytes", _SMALL_READ) < _SMALL_READ and "batches" in found["result"]:
        ours, theirs = found["result"]["batches"], wanted["result"].get("batches", [])
        shared = min(len(ours), len(theirs))
        if ours[:shared] == theirs[:shared] and bool(ours) == bool(theirs):
            found["result"] = {**found["result"], "batches": theirs}
    different = []
    for name in ("result", "alter_partition", "completed", "completion_checks"):
        if wanted[name] != found[name]:
            different.append(f"{name}: Kafka {wanted[name]}, here {found[name]}")
    theirs, ours = wanted["state"], found["state"]
    for name in [*theirs, *(name for name in ours if name not in theirs)]:
        if theirs.get(name, "absent") != ours.get(name, "absent"):
            different.append(
                f"state.{name}: Kafka {theirs.get(name, 'absent')}, here {ours.get(name, 'absent')}"
            )
    return different


def _kafka_name(refusal: ReplicaError) -> str:
    """The name of the error code, or of Kafka's exception where there is no code."""
    match refusal:
        case OffsetsOutOfOrder():
            return "OffsetsOutOfOrderException"
        case UnexpectedAppendOffset():
            return "UnexpectedAppendOffsetException"
    return refusal.error.name


def _registration(event: Json) -> PartitionRegistration:
    return PartitionRegistration(
        replicas=tuple(event["replicas"]),
        directories=(MIGRATING,) * len(event["replicas"]),
        isr=tuple(event["isr"]),
        adding_replicas=tuple(event["adding"]),
        removing_replicas=tuple(event["removing"]),
        leader=event["leader"],
        leader_recovery_state=_RECOVERY_STATES[event["recovery_state"]],
        leader_epoch=event["leader_epoch"],
        partition_epoch=event["partition_epoch"],
    )


def _batch(base: int, last: int, epoch: int, now_ms: int, value: bytes = b"") -> RecordBatch:
    records = [Record(offset, now_ms, None, value) for offset in range(base, last + 1)]
    return RecordBatch.of(records, leader_epoch=epoch)


def _fetch_json(result: LogReadInfo) -> Json:
    diverging = result.diverging_epoch
    return {
        "batches": [[b.base_offset, b.last_offset, b.leader_epoch] for b in result.records.batches],
        "high_watermark": result.high_watermark,
        "log_start_offset": result.log_start_offset,
        "log_end_offset": result.log_end_offset,
        "last_stable_offset": result.last_stable_offset,
        "diverging_epoch": None
        if diverging is None
        else {"epoch": diverging.epoch, "end_offset": diverging.end_offset},
    }


def _item_json(number: int, item: AlterPartitionItem, *, accepted: bool) -> Json:
    return {
        "id": number,
        "accepted": accepted,
        "leader": item.leader,
        "leader_epoch": item.leader_epoch,
        "partition_epoch": item.partition_epoch,
        "isr": [list(member) for member in item.isr],
        "recovery_state": _RECOVERY_NAMES[item.recovery_state],
    }


def _sorted_isr(proposal: Json) -> Json:
    return {**proposal, "isr": sorted(proposal["isr"])}
