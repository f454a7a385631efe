"""What the folds of groups, consumers and producers take: a row of a response about a partition."""

from __future__ import annotations

from minicluster.verify.histories.clients import Received, received
from minicluster.verify.histories.traced_run import TracedRun
from minicluster.verify.partition.event import Place

BEFORE_ALL = -1


class ClientEvent:
    """What a client got in a response about a partition; columns of ``client_record``.

    Shapes:  is_own: of the cluster's own clients, which do not seek. excuse: why nothing is
             promised of it. producer: id and epoch, of a record, of an offset in a transaction.
    Units:   sent, received: the events of its request and of the response at the client.
    """

    __slots__ = (
        "batch_offset", "broker", "client", "excuse", "f", "fetch_offset", "generation", "group",
        "instance", "is_own", "member", "misled", "offset", "part", "place", "producer",
        "read_committed", "received", "request", "sent", "seq", "sequence", "stable", "topic",
        "value", "visible",
    )  # fmt: skip

    def __init__(self, received: Received) -> None:
        row = received.row
        self.seq: int = row["seq"]
        self.broker: int = row["broker"]
        self.topic = received.topic
        self.part: int = row["part"]
        self.place: Place = received.place
        self.f: str = row["f"]
        self.request: int = row["rpc"]
        self.client: str = row["client_id"]
        self.is_own = row["connection"] is None
        self.offset: int | None = row["offset"]
        self.fetch_offset: int | None = row["fetch_offset"]
        self.sent: int | None = row["send_seq"]
        self.received: int | None = row["received_seq"]
        self.group: str | None = row["group_id"]
        self.member: str | None = row["member_id"]
        self.instance: str | None = row["instance_id"]
        self.generation: int | None = row["generation"]
        self.value: str | None = row["value"]
        self.visible: bool | None = row["visible"]
        self.sequence: int | None = row["sequence"]
        self.batch_offset: int | None = row["batch_offset"]
        self.read_committed = row["isolation"] == 1
        self.stable: bool | None = row["stable"]
        self.producer = row["producer_id"], row["producer_epoch"]
        self.misled = bool(row["misled"])
        self.excuse = received.excuse


def client_events(run: TracedRun) -> list[ClientEvent]:
    """Context: what clients got about partitions of a run, in order."""
    return [ClientEvent(response) for response in run.context(received)]
