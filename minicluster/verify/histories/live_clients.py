"""What clients are returned while the cluster runs, beside the committed log as far as it goes.

========================  ========================================================================
takes                     ``partition_event`` rows, the rows of each response to a client, and word
                          that more of the metadata log is committed
keeps, by partition       the highest offset that was acknowledged for all in-sync replicas, the
                          highest high watermark of a leader, up to which leader epoch each new
                          leader had all of it, a new leader whose election is not yet in the log
keeps besides             what ``ServedToClients``, ``ValuesAtOffsets`` and ``ProducerEpochs`` keep
yields                    ``LeaderBeside``, ``LeaderLacks``, and the steps of these three
========================  ========================================================================

The state of a partition is of one size, whatever was produced and read, and goes some time after
its last replica is deleted: responses with its records may still be on their way. What is
acknowledged to whom is seen where the leader acknowledges it. A partition that may have lost
records promises nothing from there on: a doubt is decided for the cluster, since the whole trace,
with the log of the last leader, is judged afterwards.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import field
from uuid import UUID

from minicluster.protocol.uuids import parse_uuid
from minicluster.values import dataclass
from minicluster.verify.histories.clients import (
    ALL_REPLICAS,
    SERVED,
    Place,
    ProducerEpochs,
    Received,
    ServedToClients,
    ValueAtOffset,
    ValuesAtOffsets,
    is_numbered,
)
from minicluster.verify.histories.committed_log import CommittedLog
from minicluster.verify.histories.partitions import Partition
from minicluster.verify.histories.traced_run import Row
from minicluster.verify.judging import Judge
from minicluster.verify.promises import Promises

VALUES_MAX = 50_000  # digests that are remembered, some 10 MB
_GONE_MAX = 1_000  # partitions without replicas that are kept
MAY_HAVE_LOST = "the partition may have lost records"


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaderBeside:
    """A broker begins to lead a partition of which records were acknowledged before."""

    broker: int


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaderLacks:
    """The log of a cleanly elected leader ends at or below a record that was acknowledged.

    Units:  acknowledged: the highest such offset.
    """

    broker: int
    acknowledged: int


@dataclass(slots=True)
class _Replica:
    """A replica as its broker's latest events have it."""

    incarnation: str | None = None
    leader_epoch: int | None = None
    leads: bool = False


@dataclass(slots=True)
class _LeaderWithLess:
    """A new leader with less than was committed, until its election is seen in the log."""

    broker: int
    leader_epoch: int
    log_end: int
    acknowledged: int
    whole_epoch: int


@dataclass(slots=True)
class _Partition:
    """One partition: the marks below which every later leader must have the records.

    Units:  whole_epoch: up to it each new leader had all that was committed.
    """

    topic: str
    topic_id: UUID
    number: int
    acknowledged: int = -1
    high_watermark: int = 0
    leader_epoch: int = -1
    whole_epoch: int = -1
    may_have_lost: bool = False
    with_less: _LeaderWithLess | None = None
    replicas: dict[int, _Replica] = field(default_factory=dict)


class LiveClients:
    """Gives the judge the steps of clients as they come.

    Shapes:  log: the fold of the committed log, which its owner keeps up to date. kept_by: of a new
             leader's event up to which offset its log has the committed records, None: all of them;
             the owner of the replicas' logs gives them each event before. Without it any unclean
             election may have lost records. window: as in ``ValuesAtOffsets``.
    """

    def __init__(
        self,
        judge: Judge,
        log: CommittedLog,
        promises: Promises,
        *,
        kept_by: Callable[[Row], int | None] | None = None,
        window: int = VALUES_MAX,
    ) -> None:
        self._judge, self._log, self._kept_by = judge, log, kept_by
        self._leaves_from = promises.new_incarnation_leaves_from
        self._served = ServedToClients(judge)
        self._values = ValuesAtOffsets(window)
        self._epochs = ProducerEpochs(judge)
        self._partitions: dict[Place, _Partition] = {}
        self._with_less: dict[Place, _Partition] = {}  # those that wait for an election
        self._gone: dict[Place, None] = {}  # those without replicas

    def on_partition_event(self, row: Row) -> None:
        """An event of a replica."""
        self._served.on_partition_event(row)
        place, broker, kind = (row["topic_id"], row["part"]), row["broker"], row["kind"]
        partition = self._partitions.get(place)
        if kind == "delete":
            if partition is not None:
                self._on_delete(place, partition, broker)
            return
        if partition is None:
            partition = _Partition(row["topic"], parse_uuid(place[0]), place[1])
            self._partitions[place] = partition
        self._gone.pop(place, None)
        replica = partition.replicas.get(broker)
        if replica is None:
            replica = partition.replicas[broker] = _Replica()
        if kind == "hw" or kind == "ack":
            if replica.leads:
                marks = (row["offset"] + 1, 0) if kind == "ack" else (0, row["hw_new"])
                self._on_commitment(partition, row["leader_epoch"], *marks)
        elif kind == "become_leader" or kind == "become_follower":
            if kind == "become_follower" and self._stays_with_less(partition, replica, row):
                partition.may_have_lost = True
            replica.incarnation, replica.leader_epoch = row.get("incarnation"), row["leader_epoch"]
            replica.leads = kind == "become_leader"
            if replica.leads:
                self._on_leader(place, partition, row)

    def on_commit(self) -> None:
        """More of the metadata log is committed: elections that were not yet in it may be."""
        for place, partition in list(self._with_less.items()):
            self._judge_leader_with_less(place, partition)

    def on_response(self, rows: Iterable[Row]) -> None:
        """The rows of a response to a client; of whole batches their last offsets are enough."""
        for row in rows:
            if row["f"] == "init":
                self._epochs.on_init(row)
                continue
            partition = self._partition_of(row)
            if partition is None:
                continue
            if row["f"] == "send":
                if row["acks"] == ALL_REPLICAS and not partition.may_have_lost:
                    self._epochs.on_acknowledged(row, partition.topic)
                    self._on_acknowledged(partition, row)
            elif row["f"] in SERVED:
                why = self._why_lost(partition)
                response = Received(row, row["topic_id"], partition.topic, why)
                self._served.on_received(response)
            self._on_value(partition, row)

    def _on_delete(self, place: Place, partition: _Partition, broker: int) -> None:
        partition.replicas.pop(broker, None)
        if partition.replicas or self._why_lost(partition) is not None:
            return
        self._gone[place] = None
        if len(self._gone) > _GONE_MAX:
            oldest = next(iter(self._gone))
            del self._gone[oldest], self._partitions[oldest]
            self._with_less.pop(oldest, None)

    def _on_value(self, partition: _Partition, row: Row) -> None:
        """A value is known at an offset; not where a repeated send has the offset of another."""
        value, offset = row.get("value"), row["offset"]
        is_first = row["f"] == "send" and row["acks"] == ALL_REPLICAS and not is_numbered(row)
        if value is None or not (row["f"] == "read" or is_first):
            return
        why = MAY_HAVE_LOST if partition.with_less is not None else self._why_lost(partition)
        place = row["topic_id"], row["part"]
        is_beyond = self._values.is_beyond(*place, offset)
        step = ValueAtOffset(
            broker=row["broker"],
            offset=offset,
            differs=why is None and self._values.add(*place, offset, value),
            is_beyond=is_beyond,
            excuse=why,
        )
        self._judge.take(step, -1, partition.topic, partition.number, row.get("seq", -1))

    def _on_acknowledged(self, partition: _Partition, row: Row) -> None:
        """A response has the offset of a record, perhaps of one that was sent before."""
        replica = partition.replicas.get(row["broker"])
        if replica is not None and replica.leader_epoch is not None:
            self._on_commitment(partition, replica.leader_epoch, row["offset"] + 1, 0)

    def _on_commitment(
        self, partition: _Partition, epoch: int, acknowledged: int, committed: int
    ) -> None:
        """A leader commits or acknowledges records, which every later leader must have.

        One that an unclean election has deposed may do so by itself until it is told.
        """
        if epoch < partition.leader_epoch and epoch < self._unclean_epoch(partition):
            partition.may_have_lost = True
            return
        partition.acknowledged = max(partition.acknowledged, acknowledged - 1)
        partition.high_watermark = max(partition.high_watermark, committed)

    def _stays_with_less(self, partition: _Partition, replica: _Replica, row: Row) -> bool:
        """A new incarnation with a shorter log than its ISR, which it stays in before KIP-966."""
        return (
            replica.incarnation != row.get("incarnation")
            and (row.get("leo") or 0) < partition.high_watermark
            and self._log.cluster.level < self._leaves_from
        )

    def _on_leader(self, place: Place, partition: _Partition, row: Row) -> None:
        """A broker leads: its log has what the leaders before it acknowledged."""
        epoch, log_end, before = row["leader_epoch"], row["leo"], partition.leader_epoch
        is_new = epoch > before
        partition.leader_epoch = max(epoch, before)
        if partition.acknowledged >= 0 and is_new:
            step = LeaderBeside(broker=row["broker"])
            self._judge.take(step, -1, partition.topic, partition.number)
        if log_end >= max(partition.high_watermark, partition.acknowledged + 1):
            is_whole = self._kept_by is not None and self._kept_by(row) is None
            if is_whole and partition.whole_epoch == before:
                partition.whole_epoch = partition.leader_epoch
            return
        if not is_new:  # started again in the epoch that it led, as the last ISR member may be
            partition.may_have_lost = True
            return
        partition.with_less = _LeaderWithLess(
            row["broker"], epoch, log_end, partition.acknowledged, partition.whole_epoch
        )
        self._with_less[place] = partition
        self._judge_leader_with_less(place, partition)

    def _judge_leader_with_less(self, place: Place, partition: _Partition) -> None:
        """A leader with less than was committed beside the election that made it the leader.

        Only a clean one among several candidates proves that acknowledged records are lost.
        """
        leader, elected = partition.with_less, self._committed(partition)
        if leader is None or elected is None or elected.leader_epoch < leader.leader_epoch:
            return
        partition.with_less = None
        del self._with_less[place]
        state = elected.state
        candidates = {*(state.isr or ()), *(state.elr or ())}
        is_clean = (
            elected.leader_epoch == leader.leader_epoch
            and state.leader == leader.broker
            and leader.broker in candidates
            and len(candidates) > 1
            and elected.unclean_epoch <= leader.whole_epoch
            and self._log.cluster.level >= self._leaves_from
        )
        if not is_clean or leader.log_end > leader.acknowledged:
            partition.may_have_lost = True
        elif not partition.may_have_lost:
            step = LeaderLacks(broker=leader.broker, acknowledged=leader.acknowledged)
            self._judge.take(step, -1, partition.topic, partition.number)

    def _why_lost(self, partition: _Partition) -> str | None:
        """Why nothing is promised: records are lost, or a leader by an unclean election has less.

        Only in the committed log is seen whether an election was unclean.
        """
        if partition.may_have_lost or self._unclean_epoch(partition) > partition.whole_epoch:
            return MAY_HAVE_LOST
        return None

    def _unclean_epoch(self, partition: _Partition) -> int:
        """The leader epoch of the partition's last unclean election, -1 where there was none."""
        committed = self._committed(partition)
        return -1 if committed is None else committed.unclean_epoch

    def _committed(self, partition: _Partition) -> Partition | None:
        return self._log.partitions.get(partition.topic_id, partition.number)

    def _partition_of(self, row: Row) -> _Partition | None:
        topic_id = row["topic_id"]
        return None if topic_id is None else self._partitions.get((topic_id, row["part"]))
