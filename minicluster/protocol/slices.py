"""Large requests in slices: the elements of some requests mean nothing to each other.

A node takes one request after the other, and one may name tens of thousands of topics, partitions
or groups. Kafka has more threads for that; here the clients of other connections would wait for all
of it. So a node cuts such a request, takes one slice at a time, and joins their responses.

The joined response has the elements of the slices one behind the other: Kafka's own order, that of
a hash map in many APIs, holds in a slice, and so does what an API says of one that comes twice.

A machine that has to see a request whole carries it out in parts itself (``effects.Continue``):
Fetch has one session and one limit of bytes (replica/requests/fetch.py), Metadata one image
(broker/requests/metadata.py), a request to the controller is one event of its queue and one batch
of the log (controller/parts.py), and one to a coordinator is one event of its shard and one batch
(coordinator/runtime/runtime.py).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from operator import attrgetter
from typing import Any

from minicluster.protocol import messages as m
from minicluster.protocol.schema import Message, Struct


@dataclass(frozen=True, slots=True)
class Sliced:
    """How a request is cut, and its response joined.

    Shapes:  elements: the request's array, and, where that is of topics, the array in each;
             results: the same of the response.
    Units:   size is in elements; they take a few milliseconds of the processor.
    """

    elements: tuple[str, ...]
    results: tuple[str, ...]
    size: int = 1_000

    def count(self, request: Any) -> int:
        """The number of elements; 0 where null stands for all that there are."""
        outer = getattr(request, self.elements[0]) or ()
        if len(self.elements) == 1:
            return len(outer)
        return sum(len(getattr(topic, self.elements[1])) for topic in outer)

    def cut(self, request: Any) -> Iterator[Any]:
        """The slices of a request, one after the other."""
        part: list[Any] = []
        count = 0
        for piece, length in self._pieces(request):
            if part and count + length > self.size:
                yield replace(request, **{self.elements[0]: tuple(part)})
                part, count = [], 0
            part.append(piece)
            count += length
        yield replace(request, **{self.elements[0]: tuple(part)})

    def _pieces(self, request: Any) -> Iterator[tuple[Any, int]]:
        """What is not cut again, with its number of elements: a large topic is several pieces."""
        for outer in getattr(request, self.elements[0]):
            if len(self.elements) == 1:
                yield outer, 1
                continue
            name = self.elements[1]
            inner = getattr(outer, name)
            if len(inner) <= self.size:
                yield outer, len(inner)
                continue
            for begin in range(0, len(inner), self.size):
                piece = inner[begin : begin + self.size]
                yield replace(outer, **{name: piece}), len(piece)

    def join(self, responses: Sequence[Any]) -> Any:
        """The response to the whole request; None where the slices get none."""
        first = responses[0]
        if first is None:
            return None
        joined: dict[str, Any] = {}
        for spec in type(first).schema:
            if spec.type_ == "array" and spec.name != self.results[0]:
                # Of the cluster, such as its brokers: most slices have the same ones.
                own = (item for response in responses for item in getattr(response, spec.name))
                joined[spec.name] = tuple(dict.fromkeys(own))
        results = [item for response in responses for item in getattr(response, self.results[0])]
        if len(self.results) == 2:
            results = _whole_topics(results, self.results[1])
        return replace(first, **joined, **{self.results[0]: tuple(results)})


def _whole_topics(topics: Sequence[Any], name: str) -> list[Any]:
    """Topics of which several slices have some partitions are one again."""
    if not topics:
        return []
    kind: type[Struct] = type(topics[0])
    identity = _identity(kind, name)
    parts: dict[Any, list[Any]] = {}
    for topic in topics:
        parts.setdefault(identity(topic), []).append(topic)
    return [
        of_topic[0]
        if len(of_topic) == 1
        else replace(
            of_topic[0], **{name: tuple(item for part in of_topic for item in getattr(part, name))}
        )
        for of_topic in parts.values()
    ]


def _identity(kind: type[Struct], name: str) -> Callable[[Any], Any]:
    """What a topic is told by: all of its fields but its partitions."""
    return attrgetter(*(spec.name for spec in kind.schema if spec.name != name))


_TOPICS = ("topics", "partitions")
SLICED: Mapping[type[Message], Sliced] = {
    # A topic or a resource has tens of partitions or configs.
    m.MetadataRequest: Sliced(("topics",), ("topics",), 200),
    m.DescribeConfigsRequest: Sliced(("resources",), ("results",), 25),
    m.ListOffsetsRequest: Sliced(_TOPICS, _TOPICS),
    m.OffsetForLeaderEpochRequest: Sliced(_TOPICS, _TOPICS),
    m.DeleteRecordsRequest: Sliced(_TOPICS, _TOPICS),
    m.ProduceRequest: Sliced(
        ("topic_data", "partition_data"), ("responses", "partition_responses")
    ),
    m.DescribeProducersRequest: Sliced(("topics", "partition_indexes"), _TOPICS),
    m.DescribeGroupsRequest: Sliced(("groups",), ("groups",)),
    m.ConsumerGroupDescribeRequest: Sliced(("group_ids",), ("groups",)),
    m.DescribeTransactionsRequest: Sliced(("transactional_ids",), ("transaction_states",)),
}
"""The requests that are cut, by type."""
