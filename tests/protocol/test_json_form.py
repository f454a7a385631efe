"""Kafka's JSON form, and what is refused in it."""

from __future__ import annotations

import json
import uuid
from typing import Any

import pytest

from minicluster.protocol import ProtocolError, UnsupportedVersion
from minicluster.protocol.json_form import from_json, to_json, to_json_text
from minicluster.protocol.messages import FetchResponse, VoteRequest
from minicluster.protocol.records import PartitionChangeRecord, PartitionRecord, TopicRecord

TOPIC = uuid.UUID("00112233-4455-6677-8899-aabbccddeeff")
TOPIC_TEXT = "ABEiM0RVZneImaq7zN3u_w"


def test_names_are_camel_case_and_uuids_kafkas() -> None:
    record = TopicRecord(name="orders", topic_id=TOPIC)
    assert to_json(record, 0) == {"name": "orders", "topicId": TOPIC_TEXT}
    assert from_json(TopicRecord, {"name": "orders", "topicId": TOPIC_TEXT}, 0) == record


def test_its_text_has_numbers_of_any_class_and_characters_as_they_are() -> None:
    class Milliseconds(int):
        """Of an argument of a scenario."""

    record = TopicRecord(name="Bücher", topic_id=TOPIC)
    assert to_json_text(record, 0) == f'{{"name":"Bücher","topicId":"{TOPIC_TEXT}"}}'
    change = PartitionChangeRecord(partition_id=Milliseconds(5), topic_id=TOPIC)
    assert json.loads(to_json_text(change, 0)) == to_json(change, 0)


def test_tagged_fields_at_their_default_are_left_out_unless_requested() -> None:
    change = PartitionChangeRecord(partition_id=1, topic_id=TOPIC, leader=2)
    short = {"partitionId": 1, "topicId": TOPIC_TEXT, "leader": 2}
    assert to_json(change, 0) == short
    full = to_json(change, 0, defaults=True)
    assert full["isr"] is None and full["leaderRecoveryState"] == -1
    assert from_json(PartitionChangeRecord, short, 0) == change
    assert from_json(PartitionChangeRecord, full, 0) == change


def test_the_form_follows_the_version() -> None:
    record = PartitionRecord(directories=(TOPIC,))
    assert to_json(record, 1)["directories"] == [TOPIC_TEXT]
    assert "directories" not in to_json(PartitionRecord(), 0)
    with pytest.raises(UnsupportedVersion, match="directories"):
        to_json(record, 0)
    with pytest.raises(UnsupportedVersion, match="no such version"):
        to_json(record, 7)


def test_record_batches_are_shown_whole_blank_or_by_size() -> None:
    partition = FetchResponse.PartitionData(records=b"\x00\x01")
    topic = FetchResponse.FetchableTopicResponse(partitions=(partition,))
    response = FetchResponse(responses=(topic,))

    def shown(**how: Any) -> dict[str, Any]:
        found: dict[str, Any] = to_json(response, 12, **how)["responses"][0]["partitions"][0]
        return found

    assert shown()["records"] == "AAE="
    assert shown(records="blank")["records"] == ""
    assert shown(records="size")["recordsSizeInBytes"] == 2
    assert from_json(FetchResponse, to_json(response, 12), 12) == response
    json.dumps(shown(records="size"))


def test_the_names_of_earlier_releases_are_read() -> None:
    old = {"partitionIndex": 0, "candidateEpoch": 4, "candidateId": 2}
    old |= {"lastOffsetEpoch": 1, "lastOffset": 9}
    value = {"clusterId": None, "topics": [{"topicName": "t", "partitions": [old]}]}
    partition = from_json(VoteRequest, value, 0).topics[0].partitions[0]
    assert (partition.replica_epoch, partition.replica_id) == (4, 2)


@pytest.mark.parametrize(
    ("value", "why"),
    [
        ({"name": "a"}, "field topic_id: topicId is missing"),
        ({"name": "a", "topicId": TOPIC_TEXT, "x": 1}, "field x: there is no such field"),
        ({"name": None, "topicId": TOPIC_TEXT}, "field name: it must not be null"),
        ({"name": 4, "topicId": TOPIC_TEXT}, "field name: 4 is no string"),
        ({"name": "a", "topicId": "?"}, "is not a uuid"),
        ({"name": "a", "topicId": "AAAA"}, "it holds 3 bytes, not 16"),
        ([], "is not a JSON object"),
    ],
)
def test_a_wrong_form_names_the_field(value: Any, why: str) -> None:
    with pytest.raises(ProtocolError, match=why):
        from_json(TopicRecord, value, 0)


@pytest.mark.parametrize("bad", [True, "1", 1.5, None, [1]])
def test_a_number_must_be_a_number(bad: Any) -> None:
    value = to_json(PartitionRecord(), 0) | {"leaderEpoch": bad}
    with pytest.raises(ProtocolError, match="leader_epoch"):
        from_json(PartitionRecord, value, 0)


def test_a_null_where_none_may_be_is_not_shown() -> None:
    with pytest.raises(ProtocolError, match="field name: it must not be null"):
        to_json(TopicRecord(name=None), 0)  # type: ignore[arg-type]
    with pytest.raises(ProtocolError, match="field replicas"):
        to_json(PartitionRecord(replicas=None), 0)  # type: ignore[arg-type]
