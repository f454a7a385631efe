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

from minicluster.effects import Effect
from minicluster.log import Log, Record, RecordBatch
from minicluster.metadata.image.directory_id import MIGRATING
from minicluster.metadata.image.partition import PartitionRegistration
from minicluster.protocol import ErrorCode, parse_uuid
from minicluster.replica.broker_view import BrokerView
from minicluster.replica.errors import ReplicaError
from minicluster.replica.partition.isr_state import (
    RECOVERED,
    RECOVERING,
    AlterPartitionAnswer,
    PendingExpand,
    PendingShrink,
    ProposalItem,
)
from minicluster.replica.partition.partition import Partition
from minicluster.replica.partition.steps import (
    CheckWaiting,
    CheckWaitingProduces,
    FetchResult,
    ProposalNotAttempted,
    SubmitProposal,
)
from minicluster.rules import Rules
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


@dataclass(frozen=True, slots=True)
class _Waiting:
    kind: str  # produce, delete_records
    offset: int


class PartitionPlayer:
    """One partition with what Kafka keeps around it: image, purgatories, one log on disk."""

    def __init__(self, header: Mapping[str, Any], rules: Rules) -> None:
        self._header = header
        self._rules = rules
        self._log = Log()
        self._brokers: dict[int, _Broker] = {}
        self._broker_epoch: int = header["broker_epoch"]
        self._min_isr: int = header["min_insync_replicas"]
        self._proposal_ids = itertools.count(1)
        self._counts = (0, 0, 0)
        self._started = False
        self._waiting: dict[int, _Waiting] = {}
        self._submitted: list[Json] = []
        self._completed: list[Json] = []
        self._checks = 0
        self._now_ms = 0
        self._index = 0
        self._partition = self._new_partition(0)

    def play(self, line: Mapping[str, Any]) -> Json:
        """Play one event; what came of it has the form of the transcript's line."""
        event = line["event"]
        self._now_ms, self._index = line["now_ms"], line["i"]
        self._submitted, self._completed, self._checks = [], [], 0
        handler: Callable[[Json], Json] | None = getattr(self, f"_on_{event['kind']}", None)
        if handler is None:
            raise NotBuilt(f"there is no {event['kind']}")
        try:
            result = handler(event)
        except ReplicaError as refusal:
            result = {"error": refusal.kafka_name}
        return {
            "result": result,
            "alter_partition": self._submitted,
            "completed": self._completed,
            "completion_checks": self._checks,
            "state": self._state(),
        }

    # --- around the partition -----------------------------------------------------------------

    def _new_partition(self, high_watermark_checkpoint: int) -> Partition:
        header = self._header
        return Partition(
            broker_id=header["broker_id"],
            topic="transcript",
            topic_id=parse_uuid(header["topic_id"]),
            partition=0,
            log=self._log,
            high_watermark_checkpoint=high_watermark_checkpoint,
            rules=self._rules,
            replica_lag_time_max_ms=header["replica_lag_time_max_ms"],
            min_insync_replicas=self._min_isr,
            proposal_ids=self._proposal_ids,
        )

    @property
    def _view(self) -> BrokerView:
        return BrokerView(self._broker_epoch, self._brokers)

    def _carry_out(self, effects: list[Effect]) -> None:
        for effect in effects:
            if isinstance(effect, SubmitProposal):
                self._submitted.append(_proposal_json(effect.item, accepted=True))
            elif isinstance(effect, ProposalNotAttempted):
                self._submitted.append(_proposal_json(effect.item, accepted=False))
            elif isinstance(effect, CheckWaiting):
                self._checks += 1
                self._look("produce", "delete_records")
            elif isinstance(effect, CheckWaitingProduces):
                self._look("produce")

    def _look(self, *kinds: str) -> None:
        for index, waiting in list(self._waiting.items()):
            if waiting.kind not in kinds:
                continue
            error = self._outcome(waiting)
            if error is not None:
                del self._waiting[index]
                self._completed.append({waiting.kind: index, "error": error.name})

    def _outcome(self, waiting: _Waiting) -> ErrorCode | None:
        if waiting.kind == "produce":
            enough = self._partition.check_enough_replicas(waiting.offset)
            return enough.error if enough.reached or enough.error else None
        if not self._partition.is_leader:
            return ErrorCode.NOT_LEADER_OR_FOLLOWER
        done = self._partition.low_watermark(self._view) >= waiting.offset
        return ErrorCode.NONE if done else None

    def _waits(self, kind: str) -> int:
        return sum(waiting.kind == kind for waiting in self._waiting.values())

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
        step = self._partition.make_leader(self._now_ms, self._view, _registration(event))
        self._carry_out(step.effects)
        return {"new_leader": step.result}

    def _on_become_follower(self, event: Json) -> Json:
        self._started = True
        step = self._partition.make_follower(self._now_ms, _registration(event))
        self._carry_out(step.effects)
        return {"new_leader_epoch": step.result}

    def _on_restart(self, event: Json) -> Json:
        changes = self._partition.isr_changes
        counts = (changes.expands, changes.shrinks, changes.failures)
        self._broker_epoch = event["broker_epoch"]
        self._waiting.clear()
        self._partition = self._new_partition(event["high_watermark_checkpoint"])
        changes = self._partition.isr_changes
        changes.expands, changes.shrinks, changes.failures = counts
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
        step = self._partition.append_as_leader(self._now_ms, self._view, batch, acks=event["acks"])
        self._carry_out(step.effects)
        if step.result.high_watermark_increased:
            self._look("produce", "delete_records")
        if event["acks"] == -1:
            self._wait("produce", step.result.last_offset + 1)
        return {
            "first_offset": step.result.first_offset,
            "last_offset": step.result.last_offset,
            "log_start_offset": step.result.log_start_offset,
            "high_watermark_increased": step.result.high_watermark_increased,
        }

    def _wait(self, kind: str, offset: int) -> None:
        waiting = _Waiting(kind, offset)
        error = self._outcome(waiting)
        if error is None:
            self._waiting[self._index] = waiting
        else:
            self._completed.append({kind: self._index, "error": error.name})

    def _on_fetch(self, event: Json) -> Json:
        step = self._partition.fetch(
            self._now_ms,
            self._view,
            replica_id=event["replica"],
            broker_epoch=event["broker_epoch"],
            fetch_offset=event["fetch_offset"],
            log_start_offset=event["log_start_offset"],
            current_leader_epoch=event["current_leader_epoch"],
            last_fetched_epoch=event["last_fetched_epoch"],
            max_bytes=event["max_bytes"],
            deletes_wait=self._waits("delete_records") > 0,
        )
        self._carry_out(step.effects)
        return _fetch_json(step.result)

    def _on_consumer_fetch(self, event: Json) -> Json:
        step = self._partition.consumer_fetch(
            fetch_offset=event["fetch_offset"],
            any_replica=event["any_replica"],
            current_leader_epoch=event["current_leader_epoch"],
            last_fetched_epoch=event["last_fetched_epoch"],
            max_bytes=event["max_bytes"],
        )
        self._carry_out(step.effects)
        return _fetch_json(step.result)

    def _on_maybe_shrink_isr(self, event: Json) -> Json:
        self._carry_out(self._partition.maybe_shrink_isr(self._now_ms, self._view))
        return {}

    def _on_alter_partition_response(self, event: Json) -> Json:
        error = ErrorCode[event["error"]]
        answer = AlterPartitionAnswer(error=error)
        if error == ErrorCode.NONE:
            answer = AlterPartitionAnswer(
                leader=event["leader"],
                leader_epoch=event["leader_epoch"],
                isr=tuple(event["isr"]),
                recovery_state=_RECOVERY_STATES[event["recovery_state"]],
                partition_epoch=event["partition_epoch"],
            )
        self._carry_out(
            self._partition.on_alter_partition(self._now_ms, self._view, event["id"], answer)
        )
        return {}

    def _on_delete_records(self, event: Json) -> Json:
        result = self._partition.delete_records(self._view, event["offset"])
        if result.low_watermark < result.requested_offset:
            self._wait("delete_records", result.requested_offset)
        return {
            "requested_offset": result.requested_offset,
            "low_watermark": result.low_watermark,
        }

    def _on_list_offsets(self, event: Json) -> Json:
        found = self._partition.list_offsets(
            timestamp=event["timestamp"],
            from_replica=event["isolation"] is None,
            current_leader_epoch=event["current_leader_epoch"],
            leader_only=event["only_leader"],
        )
        assert found is not None
        return {"offset": found.offset, "leader_epoch": found.leader_epoch}

    def _on_last_offset_for_leader_epoch(self, event: Json) -> Json:
        answer = self._partition.last_offset_for_leader_epoch(
            event["leader_epoch"],
            current_leader_epoch=event["current_leader_epoch"],
            leader_only=event["only_leader"],
        )
        return {
            "error": answer.error.name,
            "leader_epoch": answer.leader_epoch,
            "end_offset": answer.end_offset,
        }

    def _on_check_enough_replicas(self, event: Json) -> Json:
        enough = self._partition.check_enough_replicas(event["required_offset"])
        return {"reached": enough.reached, "error": enough.error.name}

    def _on_append_as_follower(self, event: Json) -> Json:
        step = self._partition.append_as_follower(
            [_batch(base, last, epoch, self._now_ms) for base, last, epoch in event["batches"]],
            partition_leader_epoch=event["partition_leader_epoch"],
            leader_high_watermark=event["leader_high_watermark"],
            leader_log_start_offset=event["leader_log_start_offset"],
        )
        self._carry_out(step.effects)
        return {
            "last_offset": step.result.last_offset,
            "high_watermark_changed": step.result.high_watermark_changed,
            "log_start_offset_changed": step.result.log_start_offset_changed,
        }

    def _on_truncate(self, event: Json) -> Json:
        self._carry_out(self._partition.truncate(event["offset"]))
        return {}

    def _on_truncate_fully(self, event: Json) -> Json:
        self._carry_out(self._partition.truncate_fully(event["offset"]))
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
            "in_flight": partition.in_flight.id if partition.in_flight else None,
            "under_min_isr": partition.is_under_min_isr,
            "at_min_isr": partition.is_at_min_isr,
            "under_replicated": partition.is_under_replicated,
            "low_watermark": partition.low_watermark(self._view) if leads else None,
            "followers": {
                str(broker): {
                    "log_start_offset": follower.log_start_offset,
                    "log_end_offset": follower.log_end_offset,
                    "last_fetch_leader_log_end_offset": follower.leader_end_at_last_fetch,
                    "last_fetch_ms": follower.last_fetch_ms,
                    "last_caught_up_ms": follower.last_caught_up_ms,
                    "broker_epoch": follower.broker_epoch,
                }
                for broker, follower in partition.followers.items()
            },
            "waiting_produce": self._waits("produce"),
            "waiting_delete_records": self._waits("delete_records"),
            "isr_expands": partition.isr_changes.expands,
            "isr_shrinks": partition.isr_changes.shrinks,
            "isr_failures": partition.isr_changes.failures,
        }
        if isinstance(state, PendingExpand):
            found |= {"kind": "pending_expand", "expanding": state.joining}
        elif isinstance(state, PendingShrink):
            found |= {"kind": "pending_shrink", "shrinking": list(state.leaving)}
        if self._started:
            found |= {
                "log_start_offset": partition.log_start_offset,
                "high_watermark": partition.high_watermark,
                "log_end_offset": partition.log_end_offset,
                "epochs": [list(entry) for entry in partition.log.epochs.entries],
            }
        return found


def compare_partition(line: Mapping[str, Any], found: Json) -> list[str]:
    """What differs between a transcript's line and what was found, one sentence each."""
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


def _fetch_json(result: FetchResult) -> Json:
    diverging = result.diverging_epoch
    return {
        "batches": [[b.base_offset, b.last_offset, b.leader_epoch] for b in result.batches],
        "high_watermark": result.high_watermark,
        "log_start_offset": result.log_start_offset,
        "log_end_offset": result.log_end_offset,
        "last_stable_offset": result.last_stable_offset,
        "diverging_epoch": None
        if diverging is None
        else {"epoch": diverging.epoch, "end_offset": diverging.end_offset},
    }


def _proposal_json(item: ProposalItem, *, accepted: bool) -> Json:
    proposal = item.proposal
    return {
        "id": item.id,
        "accepted": accepted,
        "leader": proposal.leader,
        "leader_epoch": proposal.leader_epoch,
        "partition_epoch": proposal.partition_epoch,
        "isr": [list(member) for member in proposal.isr],
        "recovery_state": _RECOVERY_NAMES[proposal.recovery_state],
    }


def _sorted_isr(proposal: Json) -> Json:
    return {**proposal, "isr": sorted(proposal["isr"])}
