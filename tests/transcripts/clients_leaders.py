"""The leaders of classic groups as a recording has them.

Kafka walks over members in the order of a hash map, so chance in their ids chooses among them. A
recording has names instead of ids; this order puts the member first that it made leader.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from minicluster.coordinator.group.classic.group import hash_order
from tests.transcripts.clients_forms import Names


@dataclass(frozen=True, slots=True)
class _Generation:
    step: int
    leader: str
    instances: Mapping[str, str]  # the instance id of a member's name


class RecordedLeaders:
    """The order of members for the steps that are still to be played."""

    def __init__(self, names: Names, lines: Sequence[Mapping[str, Any]]) -> None:
        self._names = names
        responses = [(line["n"], a) for line in lines for a in line["answers"] if "response" in a]
        joined = [(n, a["response"]) for n, a in responses if a["api"] == "JoinGroup"]
        instances = {
            member["memberId"]: member["groupInstanceId"]
            for _, response in joined
            for member in response["members"]
            if member.get("groupInstanceId")
        }
        self._generations = [
            _Generation(n, response["leader"], instances)
            for n, response in joined
            if response["errorCode"] == 0 and response["leader"]
        ]

    def begin(self, step: int) -> None:
        """Leaders of earlier steps are known."""
        while self._generations and self._generations[0].step < step:
            del self._generations[0]

    def order(self, member_ids: Collection[str]) -> Sequence[str]:
        """The next recorded leader among these members, then the others."""
        for generation in self._generations:
            leader = self._member(generation, member_ids)
            if leader is not None:
                return [leader, *(i for i in hash_order(member_ids) if i != leader)]
        return hash_order(member_ids)

    def _member(self, generation: _Generation, member_ids: Collection[str]) -> str | None:
        bound = self._names.values.get(generation.leader)
        if bound is not None:
            return bound if bound in member_ids else None
        instance = generation.instances.get(generation.leader)
        if instance is None:
            return None
        return next((i for i in member_ids if i.startswith(f"{instance}-")), None)
