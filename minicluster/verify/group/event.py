"""What the folds of groups and consumers take: a row of a response about a partition."""

from __future__ import annotations

from minicluster.verify.histories.clients import Received
from minicluster.verify.partition.event import Place

BEFORE_ALL = -1


class ClientEvent:
    """What a client got in a response about a partition; columns of ``client_record``.

    Shapes:  is_own: of the cluster's own clients, which do not seek. excuse: why nothing is
             promised of it. producer: id and epoch, of an offset in a transaction.
    Units:   sent, received: the events of its request and of the response at the client.
    """

    __slots__ = (
        "broker", "client", "excuse", "f", "fetch_offset", "generation", "group", "instance",
        "is_own", "member", "misled", "offset", "part", "place", "producer", "received", "request",
        "sent", "seq", "stable", "topic",
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
        self.stable: bool | None = row["stable"]
        self.producer = row["producer_id"], row["producer_epoch"]
        self.misled = bool(row["misled"])
        self.excuse = received.excuse
