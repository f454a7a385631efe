"""What clients were returned, beside what of it the partitions have lost; producers' epochs.

========================  ========================================================================
takes                     ``client_record`` rows, the folds of the partitions
keeps, by producer id     the epochs that were given out
yields                    ``ProducerSend``
========================  ========================================================================
"""

from __future__ import annotations

from minicluster.values import dataclass
from minicluster.verify.histories.traced_run import Row, TracedRun, history
from minicluster.verify.judging import Judge
from minicluster.verify.partition.clients import (
    ALL_REPLICAS,
    LastLeader,
    is_numbered,
)
from minicluster.verify.partition.driver import ended_partitions
from minicluster.verify.partition.event import Place
from minicluster.verify.partition.topic_names import topic_names


@dataclass(slots=True)
class Received:
    """A row of a response to a client, of a topic that is known.

    Shapes:  excuse: why nothing is promised of it; None: it is judged.
    """

    row: Row
    topic_id: str
    topic: str
    excuse: str | None = None

    @property
    def place(self) -> Place:
        """The partition."""
        return self.topic_id, self.row["part"]


def received(run: TracedRun) -> list[Received]:
    """Context: what clients were returned about topics that are known, in order.

    The rows of one response share their event: a partition's fetch comes before its records.
    """
    names, clients = run.context(topic_names), run.context(ended_partitions).clients
    rows: list[Received] = []
    for row in run.rows("client_record"):
        topic_id = row["topic_id"]
        topic = names.name_of(topic_id)
        if topic is not None:
            known = clients.get((topic_id, row["part"]))
            epoch = row["leader_epoch"] if row["f"] == "read" else None
            why = None if known is None else known.excuse_of(row["offset"], row["value"], epoch)
            rows.append(Received(row, topic_id, topic, why))
    rows.sort(key=in_response)
    return rows


def returned(run: TracedRun) -> list[Received]:
    """Context: what clients were returned and is not excused."""
    return [response for response in run.context(received) if response.excuse is None]


def in_response(received: Received) -> tuple[int, bool, int]:
    """The order of rows, also of those of one response."""
    row = received.row
    return row["seq"], row["f"] == "read", -1 if row["offset"] is None else row["offset"]


def last_leaders(run: TracedRun) -> dict[Place, LastLeader]:
    """Context: the last leader of each partition."""
    folds = run.context(ended_partitions).clients
    return {place: known.leader for place, known in folds.items() if known.leader is not None}


@dataclass(frozen=True, slots=True, kw_only=True)
class ProducerSend:
    """An acknowledged record of a producer whose id has had epochs by the time it was sent.

    Units:  fenced_below: the highest of these epochs.
    """

    broker: int
    offset: int
    epoch: int
    fenced_below: int


@history(ProducerSend, reads=("client_record",))
def producer_sends(run: TracedRun, judge: Judge) -> None:
    """Each acknowledged record of a producer, beside the epochs that were given out before."""
    given: dict[int, list[tuple[int, int]]] = {}  # producer id -> event, epoch; rising
    for row in run.rows("client_record"):
        producer_id, epoch = row["producer_id"], row["producer_epoch"]
        if producer_id is None or epoch is None:
            continue
        if row["f"] == "init":  # every lower epoch is fenced from now on
            epochs = given.setdefault(producer_id, [])
            if not epochs or epoch > epochs[-1][1]:
                seq = row["seq"] if row["resp_seq"] is None else row["resp_seq"]
                epochs.append((seq, epoch))
        elif row["f"] == "send" and row["acks"] == ALL_REPLICAS and is_numbered(row):
            sent = row["send_seq"]
            before = [known for event, known in given.get(producer_id, ()) if event < (sent or 0)]
            if before:
                step = ProducerSend(
                    broker=row["broker"], offset=row["offset"], epoch=epoch, fenced_below=before[-1]
                )
                judge.take(step, -1, row["topic"] or "", row["part"], row["seq"])
