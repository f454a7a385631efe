"""Large events in parts: other messages of the node come between them.

A request of Kafka's full size takes half a second of the processor: for its decision, for the bytes
of its records and to apply them. Kafka's quorum has a thread of its own meanwhile; here it is the
same actor, and a leader that does not handle fetches is deposed by its voters. So whatever loops
over what a request names is a generator. It yields the number of elements that it has done since;
the machine stops it after so many, and continues it when it is told to.

An element is a partition, a topic, a config or a record; one whose decision takes longer than most
(AlterPartition, a reassignment) counts twice. Whoever needs the result at once (a standby, a test)
takes it as a ``whole``.

Leaves out: UpdateFeatures, which decides few records.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeVar

from minicluster.effects import Parts, whole

__all__ = ["ELEMENTS_PER_PART", "Parts", "gathered", "whole"]

T = TypeVar("T")

ELEMENTS_PER_PART = 500  # some 25 ms of the processor


def gathered(items: Iterable[T]) -> Parts[list[T]]:
    """The items of a generator as a list."""
    taken = []
    for item in items:
        taken.append(item)
        yield 1
    return taken
