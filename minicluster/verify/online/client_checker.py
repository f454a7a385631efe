"""The rules about responses to clients in Python, while a cluster runs: F1, F6, F9, F18, H5, H7.

The rows are those of the trace, ``partition_event`` and ``client_record``, in the order of their
events. The state of a partition is of one size, whatever was produced and read. A partition that
has lost records, by an unclean election or with its last ISR member, promises nothing. A doubt is
decided for the cluster: Spark has the whole trace, with the log of the last leader.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import field
from typing import Any

from minicluster.lazy_dataclass import dataclass
from minicluster.protocol.uuids import parse_uuid
from minicluster.verify.online.findings import Findings
from minicluster.verify.online.log_state import LogState
from minicluster.verify.online.producer_epochs import ProducerEpochs
from minicluster.verify.rules.model import Finding
from minicluster.verify.rules.online import online_rule
from minicluster.verify.rules.trace.client_records import WATERMARKS_OF_CLIENTS

Row = Mapping[str, Any]
Place = tuple[str, int]  # topic id as the trace has it, partition

RULE_IDS = ("F1", "F6", "F9", "F18", "H5", "H7")
_OF_PARTITIONS = ("send", "read", "fetch", "list")
_TRACE_ONLY = -1  # the offset of a finding that no record of the metadata log shows
_SENT_BY_FENCED = 1  # the second check of H7
_FALL = online_rule("F18").checks.index(WATERMARKS_OF_CLIENTS)


@dataclass(slots=True)
class _Replica:
    """One replica as its broker's latest events have it."""

    high_watermark: int | None = None
    leads: bool = False
    leadership: tuple[str | None, int] | None = None  # incarnation, leader epoch
    returned: int | None = None  # the highest high watermark that clients received in it


@dataclass(slots=True)
class _Partition:
    """One partition: the marks below which every later leader must have the records."""

    topic: str
    acknowledged: int = -1  # the highest offset that acks=all has acknowledged
    high_watermark: int = 0  # the highest of a leader
    leader_epoch: int = -1
    may_have_lost: bool = False
    replicas: dict[int, _Replica] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class _ShortLog:
    """A new leader whose log ends below a mark, until its election is seen in the log."""

    broker: int
    leader_epoch: int
    log_end: int
    acknowledged: int


class ClientChecker:
    """Judges responses to clients beside the events of the replicas and the committed log.

    Shapes:  log: the fold of the committed log, which its owner keeps up to date; each method
             returns the new findings.
    """

    def __init__(self, run: str, log: LogState) -> None:
        counts = (dict.fromkeys(RULE_IDS, 0), dict.fromkeys(RULE_IDS, 0))
        self._new = Findings(run, log.findings.promises, _TRACE_ONLY, *counts)
        self.looked_at = self._new.looked_at
        self._log = log
        self._partitions: dict[Place, _Partition] = {}
        self._ids: dict[tuple[int, str, int], str] = {}  # broker, topic, partition -> topic id
        self._seen: set[tuple[int, Place]] = set()
        self._short: dict[Place, _ShortLog] = {}
        self._epochs = ProducerEpochs()

    def on_partition_event(self, row: Row) -> list[Finding]:
        """An event of a replica."""
        place, broker, kind = (row["topic_id"], row["part"]), row["broker"], row["kind"]
        partition = self._partitions.get(place)
        if partition is None:
            partition = self._partitions[place] = _Partition(row["topic"])
        replica = partition.replicas.get(broker)
        if replica is None:
            replica = self._first_of(partition, broker, place)
        if kind == "delete":
            del partition.replicas[broker]
            return []
        if row.get("hw_new") is not None:
            replica.high_watermark = row["hw_new"]
        if kind == "hw":
            if replica.leads and row["hw_new"] > partition.high_watermark:
                partition.high_watermark = row["hw_new"]
        elif kind in ("become_leader", "become_follower"):
            if kind == "become_follower" and self._stays_with_less(partition, replica, row):
                partition.may_have_lost = True
            leadership = (row.get("incarnation"), row["leader_epoch"])
            replica.leads = kind == "become_leader"
            if leadership != replica.leadership:
                replica.leadership, replica.returned = leadership, None
            if kind == "become_leader":
                self._on_leader(place, partition, row)
                return self._new.take_new()
        return []

    def _first_of(self, partition: _Partition, broker: int, place: Place) -> _Replica:
        """A replica that is made, perhaps once more."""
        if (broker, place) not in self._seen:
            self._seen.add((broker, place))
            self._ids[broker, partition.topic, place[1]] = place[0]
        replica = partition.replicas[broker] = _Replica()
        return replica

    def lost_records(self) -> list[Place]:
        """The partitions that may have lost records."""
        return [
            place
            for place, partition in self._partitions.items()
            if partition.may_have_lost or place in self._short or self._was_unclean(place)
        ]

    def on_commit(self) -> list[Finding]:
        """More of the metadata log is committed: elections that were not yet in it may be."""
        for place in list(self._short):
            self._judge_short_log(place)
        return self._new.take_new()

    def on_response(self, rows: Iterable[Row]) -> list[Finding]:
        """A response to a client; rows of whole batches name the last offset of each (F6, F18)."""
        for row in rows:
            if row["f"] == "init":
                self._epochs.on_init(row)
            partition = self._partition_of(row)
            if row["f"] not in _OF_PARTITIONS or partition is None or partition.may_have_lost:
                continue
            if row["f"] == "send":
                if row["acks"] == -1:
                    self._judge_epoch(partition, row)
                    partition.acknowledged = max(partition.acknowledged, row["offset"])
                continue
            if self._was_unclean(self._place_of(row)):
                continue
            self._judge_stable_offset(partition, row)
            replica = partition.replicas.get(row["broker"])
            if replica is not None:
                self._judge_returned(partition, replica, row)
        return self._new.take_new()

    def on_values(self, rows: Iterable[Row]) -> list[Finding]:
        """All records that clients read, with their values (F9).

        Acknowledgements are left to Spark: a batch with the sequence of an earlier one is
        acknowledged at that one's offset, whatever it holds (KIP-98).
        """
        values: dict[tuple[Place, int], str | None] = {}
        for row in rows:
            place, partition = self._place_of(row), self._partition_of(row)
            if row["f"] != "read" or place is None or partition is None:
                continue
            if partition.may_have_lost or place in self._short or self._was_unclean(place):
                continue
            self._new.look("F9", 0, None)
            if values.setdefault((place, row["offset"]), row["value"]) != row["value"]:
                self._find("F9", 0, partition, row["part"], row["broker"], row["offset"])
        return self._new.take_new()

    def _judge_epoch(self, partition: _Partition, row: Row) -> None:
        """An acknowledged record beside the epochs that were given out before it was sent (H7)."""
        is_of_fenced = self._epochs.is_of_fenced(row)
        if is_of_fenced is not None:
            self._new.look("H7", _SENT_BY_FENCED, None)
        if is_of_fenced:
            place = row["part"], row["broker"], row["offset"]
            self._find("H7", _SENT_BY_FENCED, partition, *place)

    def _judge_stable_offset(self, partition: _Partition, row: Row) -> None:
        """The last stable offset of a response beside its high watermark and records (H5)."""
        stable = row.get("last_stable_offset")
        if stable is None or stable < 0:
            return
        part, broker = row["part"], row["broker"]
        if row["f"] == "fetch":
            self._new.look("H5", 0, None)
            if stable > row["high_watermark"]:
                self._find("H5", 0, partition, part, broker, stable)
        elif row["isolation"] == 1:
            self._new.look("H5", 1, None)
            if row["offset"] >= stable:
                self._find("H5", 1, partition, part, broker, row["offset"])

    def _stays_with_less(self, partition: _Partition, replica: _Replica, row: Row) -> bool:
        """A new incarnation with a shorter log than its ISR, which it stays in before KIP-966."""
        known = None if replica.leadership is None else replica.leadership[0]
        return (
            known != row.get("incarnation")
            and (row.get("leo") or 0) < partition.high_watermark
            and self._log.level < self._new.promises.new_incarnation_leaves_from
        )

    def _judge_returned(self, partition: _Partition, replica: _Replica, row: Row) -> None:
        """Records and high watermarks beside those of the replica that responds (F6, F18)."""
        part, broker, returned = row["part"], row["broker"], row["high_watermark"]
        own = replica.high_watermark
        if row["f"] == "read":
            self._new.look("F6", 0, None)
            if own is not None and row["offset"] >= min(own, returned):
                self._find("F6", 0, partition, part, broker, row["offset"])
            return
        self._new.look("F6", 1, None)
        if own is not None and returned > own:
            self._find("F6", 1, partition, part, broker, returned)
        before = replica.returned
        if replica.leads and before is not None:
            self._new.looked_at["F18"] += 1
            if returned < before:
                self._find("F18", _FALL, partition, part, broker, returned)
        replica.returned = returned if before is None else max(before, returned)

    def _on_leader(self, place: Place, partition: _Partition, row: Row) -> None:
        """A broker leads: its log has what the leaders before it acknowledged (F1)."""
        epoch, log_end = row["leader_epoch"], row["leo"]
        is_new = epoch > partition.leader_epoch
        partition.leader_epoch = max(epoch, partition.leader_epoch)
        if partition.acknowledged >= 0 and is_new:
            self._new.look("F1", 0, None)
        if log_end >= max(partition.high_watermark, partition.acknowledged + 1):
            return
        if not is_new:  # started again in the epoch that it led, as the last ISR member may be
            partition.may_have_lost = True
            return
        self._short[place] = _ShortLog(row["broker"], epoch, log_end, partition.acknowledged)
        self._judge_short_log(place)

    def _judge_short_log(self, place: Place) -> None:
        """A leader's short log beside the election that made it the leader."""
        short, partition = self._short[place], self._partitions[place]
        elected = self._log.partitions.get((parse_uuid(place[0]), place[1]))
        if elected is None or elected.leader_epoch < short.leader_epoch:
            return
        del self._short[place]
        state = elected.situation.fields
        candidates = {*(state["isr"] or ()), *(state["elr"] or ())}
        is_clean = (
            elected.leader_epoch == short.leader_epoch
            and state["leader"] == short.broker
            and short.broker in candidates
            and len(candidates) > 1
            and not elected.was_unclean
            and self._log.level >= self._new.promises.new_incarnation_leaves_from
        )
        if not is_clean or short.log_end > short.acknowledged:
            partition.may_have_lost = True
        elif not partition.may_have_lost:
            self._find("F1", 0, partition, place[1], short.broker, short.acknowledged)

    def _was_unclean(self, place: Place | None) -> bool:
        """An unclean election of the partition is in the committed log."""
        found = place and self._log.partitions.get((parse_uuid(place[0]), place[1]))
        return bool(found and found.was_unclean)

    def _place_of(self, row: Row) -> Place | None:
        topic_id = row["topic_id"] or self._ids.get((row["broker"], row["topic"], row["part"]))
        return None if topic_id is None else (topic_id, row["part"])

    def _partition_of(self, row: Row) -> _Partition | None:
        place = self._place_of(row)
        return None if place is None else self._partitions.get(place)

    def _find(
        self, rule: str, check: int, partition: _Partition, part: int, broker: int, number: int
    ) -> None:
        self._new.find(rule, check, topic=partition.topic, part=part, broker=broker, number=number)
