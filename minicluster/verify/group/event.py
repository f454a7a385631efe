"""The event of the folds of groups, consumers and producers: a response about a partition."""

from __future__ import annotations

from typing import Any

from minicluster.verify.histories.traced_run import Row
from minicluster.verify.partition.event import Place

BEFORE_ALL = -1


class ClientEvent:
    """A part of a response, about one partition; columns of ``client_record``.

    Shapes:  is_known: of a topic of which some broker had a replica. is_own: of the cluster's own
             clients, which do not seek. excuse: why nothing is promised of it. producer: id and
             epoch, of a record, of an offset in a transaction.
    Units:   sent, responded, received: the events of its request, and of the response at the
             broker and at the client.
    """

    __slots__ = (
        "acks", "at_ms", "batch_offset", "broker", "client", "committed", "excuse", "f",
        "fetch_offset", "generation", "group", "instance", "is_known", "is_own", "member", "misled",
        "offset", "part", "place", "producer", "read_committed", "received", "request", "responded",
        "sent", "seq", "sequence", "stable", "topic", "value", "visible",
    )  # fmt: skip

    def __init__(self, row: Row, topic: str | None, excuse: str | None) -> None:
        self.seq: int = row["seq"]
        self.at_ms: int = row["vt"]
        self.broker: int = row["broker"]
        self.is_known = topic is not None
        self.topic: str = topic or row["topic"] or ""
        self.part: int = row["part"]
        self.place: Place = (row["topic_id"], row["part"])
        self.f: str = row["f"]
        self.request: int = row["rpc"]
        self.acks: int | None = row["acks"]
        self.client: str = row["client_id"]
        self.is_own = row["connection"] is None
        self.offset: Any = row["offset"]  # None: of what has none, such as an assignment
        self.fetch_offset: int | None = row["fetch_offset"]
        self.sent: int | None = row["send_seq"]
        self.responded: int = row["resp_seq"]
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
        self.committed: bool | None = row["committed"]
        self.misled = bool(row["misled"])
        self.excuse = excuse


def in_response(event: ClientEvent) -> tuple[int, bool, int]:
    """The order of events: of one response a partition's fetch comes before its records."""
    return event.seq, event.f == "read", -1 if event.offset is None else event.offset
