"""The assignors give what Kafka 4.3.0's own classes gave for the same groups.

A line of ``tests/data/assignors`` is one group over some assignments: members come and go, they
subscribe to other topics, and topics grow. Kafka's UniformAssignor and RangeAssignor wrote them for
random groups, each assignment with the one before as its input.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from minicluster.coordinator.group.consumer.assignors import (
    GroupSpec,
    MemberSpec,
    assign_ranges,
    assign_uniformly,
)
from minicluster.java_order import (
    hash_map_order,
    hash_set_order,
    java_set_order,
    string_hash,
    uuid_hash,
)
from minicluster.protocol.uuids import format_uuid, parse_uuid

CASES = Path(__file__).parents[1] / "data" / "assignors" / "kafka-4.3.0.jsonl.gz"
ASSIGNORS = {"uniform": assign_uniformly, "range": assign_ranges}


def cases() -> list[dict[str, Any]]:
    with gzip.open(CASES, "rt", encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


def assignments(case: dict[str, Any]) -> Iterator[tuple[Any, Any]]:
    """The assignment of each step of a case, here and by Kafka."""
    ids = [parse_uuid(text) for text, _ in case["topics"]]
    id_of = {name: topic_id for topic_id, (_, name) in zip(ids, case["topics"], strict=True)}
    before: dict[str, Any] = {}
    for step in case["steps"]:
        counts = dict(zip(ids, step["partitions"], strict=True))
        members = {}
        given = {member_id: rest for member_id, *rest in step["members"]}
        for member_id in hash_map_order(given, string_hash):
            instance_id, topics = given[member_id]
            names = hash_set_order(sorted(case["topics"][t][1] for t in topics), (), string_hash)
            members[member_id] = MemberSpec(
                instance_id, tuple(id_of[name] for name in names), before.get(member_id, {})
            )
        owners: dict[Any, dict[int, str]] = {}
        for member_id, partitions in before.items():
            for topic_id, indexes in partitions.items():
                if member_id in given:
                    owners.setdefault(topic_id, {}).update(dict.fromkeys(indexes, member_id))
        spec = GroupSpec(
            members=members,
            is_homogeneous=step["homogeneous"],
            owners=owners,
            partition_count=counts.get,
            topic_hash=uuid_hash,
        )
        made = ASSIGNORS[case["assignor"]](spec)
        before = {}
        for member_id in members:
            partitions = made.get(member_id, {})
            order = hash_map_order([t for t in partitions if partitions[t]], uuid_hash)
            before[member_id] = {t: frozenset(partitions[t]) for t in order}
        shown = [
            [member_id, [[format_uuid(t), java_set_order(sorted(p))] for t, p in held.items()]]
            for member_id, held in before.items()
        ]
        yield shown, step["assignment"]


@pytest.mark.parametrize("part", range(4))
def test_the_same_group_is_assigned_as_by_kafka(part: int) -> None:
    for case in cases()[part::4]:
        for number, (got, expected) in enumerate(assignments(case)):
            assert got == expected, (number, case)
