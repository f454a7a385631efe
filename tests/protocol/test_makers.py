"""Makers of messages: the same message, made without the detour of a class's call."""

from __future__ import annotations

from minicluster.protocol import decode, encode
from minicluster.protocol.messages import FetchRequest, FetchResponse
from minicluster.protocol.messages import fetch as makers
from minicluster.protocol.schema import maker


def test_a_maker_makes_what_the_class_makes() -> None:
    data = {"partition": 3, "fetch_offset": 7, "current_leader_epoch": 2}
    for _ in "compiled at the first call", "and called again":
        made = makers.new_fetch_partition(**data)
        assert made == FetchRequest.FetchPartition(**data)
        assert type(made) is FetchRequest.FetchPartition
        assert made.last_fetched_epoch == -1


def test_defaults_that_are_structures_are_those_of_the_class() -> None:
    assert maker(FetchResponse.PartitionData)() == FetchResponse.PartitionData()
    request = makers.new_fetch_request(replica_state=makers.replica_state(1, 5))
    assert decode(FetchRequest, encode(request, 17), 17) == request
