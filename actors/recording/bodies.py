"""Messages without their record batches, which a recorder must not keep for ever."""

from __future__ import annotations

from functools import cache
from typing import Any

from msgspec.structs import replace

from minicluster.protocol.messages import FetchResponse, ProduceRequest
from minicluster.protocol.schema import FieldSpec


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
    if type(message) is ProduceRequest:
        topics = tuple(
            replace(topic, partition_data=_stripped(topic.partition_data))
            for topic in message.topic_data
        )
        return replace(message, topic_data=topics)
    if type(message) is FetchResponse and any(
        data.records for topic in message.responses for data in topic.partitions
    ):
        responses = tuple(
            replace(topic, partitions=_stripped(topic.partitions)) for topic in message.responses
        )
        return replace(message, responses=responses)
    return message


def _stripped(partitions: tuple[Any, ...]) -> tuple[Any, ...]:
    return tuple(
        replace(data, records=OmittedRecords(len(data.records)))
        if data.records is not None
        else data
        for data in partitions
    )


def bytes_of_producer(message: Any) -> int:
    """The bytes that a client's Produce holds; batches from inside the process count as none."""
    if type(message) is not ProduceRequest:
        return 0
    return sum(
        len(data.records)
        for topic in message.topic_data
        for data in topic.partition_data
        if isinstance(data.records, bytes)
    )


_LOOKED_AT = 200  # elements of a longer list, from which the others are estimated
_ELEMENT_BYTES = 300  # of a struct in a list, with its fields, as Python has it


def bytes_about(message: Any) -> int:
    """About how much memory a message takes, by what its lists, texts and bytes have.

    A list that stands at several places is one: each of ten thousand new topics has the same
    configs in its response.
    """
    return _bytes_about(message, set())


def _bytes_about(message: Any, seen: set[int]) -> int:
    names = _fields_with_a_length(message.__class__)
    if names is None:
        return _ELEMENT_BYTES
    size = 0
    for name in names:
        value = getattr(message, name)
        kind = value.__class__
        if kind is tuple:
            if value and id(value) not in seen:
                seen.add(id(value))
                size += _bytes_of_list(value, seen)
        elif kind is bytes or kind is str:
            size += len(value)
    return size


def _bytes_of_list(values: tuple[Any, ...], seen: set[int]) -> int:
    kind = values[0].__class__
    if kind is bytes or kind is str:
        return sum(map(len, values))
    if not hasattr(kind, "schema"):
        return 8 * len(values)
    size = len(values) * _ELEMENT_BYTES
    # Partitions of most requests are numbers alone, and one may have tens of thousands.
    if not _fields_with_a_length(kind):
        return size
    some = values if len(values) <= _LOOKED_AT else values[:: len(values) // _LOOKED_AT]
    return size + sum(_bytes_about(value, seen) for value in some) * len(values) // len(some)


@cache
def _fields_with_a_length(kind: type) -> tuple[str, ...] | None:
    """The fields of a structure whose values differ in length; None for those of ZooKeeper."""
    schema: tuple[FieldSpec, ...] | None = getattr(kind, "schema", None)
    if schema is None:
        return None
    return tuple(spec.name for spec in schema if spec.type_ in _WITH_A_LENGTH)


_WITH_A_LENGTH = frozenset({"string", "bytes", "records", "array"})
