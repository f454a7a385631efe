"""The places that messages name, and errors in place of some items of a response."""

from __future__ import annotations

from uuid import UUID

import pytest

from minicluster.actors.answers.places import (
    Place,
    has_items,
    kept,
    places,
    with_errors,
)
from minicluster.protocol import ErrorCode, decode, encode
from minicluster.protocol import messages as m
from minicluster.protocol.api_keys import BY_NAME
from minicluster.protocol.error_responses import error_items, error_response
from tests.protocol.values import filled

ERROR = ErrorCode.KAFKA_STORAGE_ERROR
ID = UUID(int=7)
# Where a version of these has no error for each of its topics, the request has one alone.
OF_PARTITIONS = ("Produce", "Fetch", "ListOffsets", "OffsetCommit", "TxnOffsetCommit",
                 "DeleteRecords", "OffsetForLeaderEpoch")  # fmt: skip


def produce(**partitions: int) -> m.ProduceRequest:
    """A request with so many partitions of each topic."""
    kind = m.ProduceRequest
    return kind(
        topic_data=tuple(
            kind.TopicProduceData(
                name=name,
                partition_data=tuple(kind.PartitionProduceData(index=n) for n in range(count)),
            )
            for name, count in partitions.items()
        )
    )


def test_a_request_names_its_partitions_and_may_go_on_without_some() -> None:
    request = produce(alpha=2, beta=1)
    assert list(places(request)) == [
        Place("alpha", None, 0), Place("alpha", None, 1), Place("beta", None, 0),
    ]  # fmt: skip
    rest = kept(request, lambda place: place.topic != "beta" and place.partition != 0)
    assert list(places(rest)) == [Place("alpha", None, 1)]


def test_names_without_partitions_are_places_as_well() -> None:
    topic = m.MetadataRequest.MetadataRequestTopic
    request = m.MetadataRequest(topics=(topic(name="alpha"), topic(name=None, topic_id=ID)))
    assert list(places(request)) == [Place("alpha", None), Place(None, ID)]
    deleted = m.DeleteTopicsRequest(topic_names=("alpha", "beta"))
    assert kept(deleted, lambda place: place.topic == "beta").topic_names == ("beta",)


def test_where_a_new_topic_is_to_be_is_no_place_of_the_request() -> None:
    kind = m.CreateTopicsRequest
    replicas = kind.CreatableReplicaAssignment(partition_index=3, broker_ids=(1,))
    request = kind(topics=(kind.CreatableTopic(name="alpha", assignments=(replicas,)),))
    assert list(places(request)) == [Place("alpha", None)]


@pytest.mark.parametrize("name", OF_PARTITIONS)
def test_each_version_carries_the_error_of_one_partition(name: str) -> None:
    api = BY_NAME[name]
    for version in api.request.valid_versions:
        request = filled(api.request, version)
        errors = error_items(request, ERROR, version=version)
        assert has_items(errors), f"v{version}"
        again = decode(type(errors), encode(errors, version), version)
        assert list(places(again)) == list(places(request)), f"v{version}"
        assert getattr(again, "error_code", ErrorCode.NONE) == ErrorCode.NONE


def test_errors_come_in_place_of_the_items_of_the_same_partitions() -> None:
    own = error_response(produce(alpha=2, beta=1), ErrorCode.NONE, version=9)
    errors = error_items(produce(alpha=1, gamma=1), ERROR, version=9)
    merged = with_errors(own, errors)
    assert [
        (topic.name, data.index, data.error_code)
        for topic in merged.responses
        for data in topic.partition_responses
    ] == [("alpha", 0, ERROR), ("alpha", 1, 0), ("beta", 0, 0), ("gamma", 0, ERROR)]


def test_a_topic_that_was_asked_for_by_its_id_keeps_its_name() -> None:
    topic = m.MetadataResponse.MetadataResponseTopic
    own = m.MetadataResponse(topics=(topic(name="alpha", topic_id=ID), topic(name="beta")))
    asked = m.MetadataRequest(topics=(m.MetadataRequest.MetadataRequestTopic(topic_id=ID),))
    merged = with_errors(own, error_items(asked, ERROR, version=12))
    found = [(one.name, one.topic_id, one.error_code) for one in merged.topics]
    assert found == [("alpha", ID, ERROR), ("beta", UUID(int=0), 0)]
