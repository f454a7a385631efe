"""The order of topics in recorded assignments, which follows the hashes of drawn topic ids.

Kafka walks over topics by the hash codes of their ids, and what a member gets of them may hang on
that. A recording has names instead of ids. Here each topic has a hash code that puts it where the
recorded lists have it; two topics that are seen in both orders share a bin, where the order of
arrival decides.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations
from typing import Any
from uuid import UUID

from minicluster.java_order import uuid_hash
from minicluster.protocol.uuids import format_uuid
from tests.transcripts.clients_forms import Names, is_name

_LISTS = "topicPartitions"


class RecordedTopics:
    """The hash codes of the topics of a recording."""

    def __init__(self, names: Names, lines: Sequence[Mapping[str, Any]]) -> None:
        self._names = names
        self._codes = _codes({pair for line in lines for pair in _pairs(line["answers"])})

    def hash_of(self, topic_id: UUID) -> int:
        """The code of a topic; its own where the recording shows none."""
        text = format_uuid(topic_id)
        for name, code in self._codes.items():
            if self._names.values.get(name) == text:
                return code
        return uuid_hash(topic_id)


def _pairs(value: Any) -> Iterator[tuple[str, str]]:
    if isinstance(value, list):
        for item in value:
            yield from _pairs(item)
    elif isinstance(value, dict):
        listed = value.get(_LISTS) or ()
        ids = [item["topicId"] for item in listed if is_name(item.get("topicId"))]
        yield from combinations(ids, 2)
        for item in value.values():
            yield from _pairs(item)


def _codes(pairs: set[tuple[str, str]]) -> dict[str, int]:
    strict = {(first, second) for first, second in pairs if (second, first) not in pairs}
    names = sorted({name for pair in pairs for name in pair})
    codes = dict.fromkeys(names, 0)
    for _ in names:  # the longest chain of topics before each one
        for first, second in strict:
            codes[second] = max(codes[second], codes[first] + 1)
    for first, second in pairs - strict:
        codes[first] = codes[second] = max(codes[first], codes[second])
    return codes
