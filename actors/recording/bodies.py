"""Messages without their record batches, which a recorder must not keep for ever."""

from __future__ import annotations

from typing import Any

from msgspec.msgpack import Encoder

from minicluster.protocol.messages import FetchResponse, ProduceRequest
from minicluster.values import replace


class OmittedRecords:
    """The size of record batches, in their place."""

    __slots__ = ("size",)

    def __init__(self, size: int) -> None:
        self.size = size

    def __len__(self) -> int:
        return self.size

    def __repr__(self) -> str:
        return f"<{self.size} bytes>"


def without_records(message: Any) -> Any:
    """The same message, its record batches replaced by their sizes."""
    if message.__class__ is ProduceRequest:
        topics = tuple(
            replace(topic, partition_data=_stripped(topic.partition_data))
            for topic in message.topic_data
        )
        return replace(message, topic_data=topics)
    if message.__class__ is FetchResponse and _has_records(message):
        responses = tuple(
            replace(topic, partitions=_stripped(topic.partitions)) for topic in message.responses
        )
        return replace(message, responses=responses)
    return message


def _has_records(response: FetchResponse) -> bool:
    for topic in response.responses:
        for data in topic.partitions:
            if data.records:
                return True
    return False


def _stripped(partitions: tuple[Any, ...]) -> tuple[Any, ...]:
    return tuple(
        replace(data, records=OmittedRecords(len(data.records)))
        if data.records is not None
        else data
        for data in partitions
    )


def bytes_about(message: Any) -> int:
    """About how much memory a message takes: as many bytes as its form in MessagePack, which has
    the name of each field.
    """
    return len(_packed(message))


_packed = Encoder(enc_hook=lambda records: None).encode
