"""The records that Kafka's controller wrote fold to the state that it held at the end."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from minicluster.metadata.image.metadata_image import MetadataImage, apply
from minicluster.metadata.snapshot import image_from_records, image_records
from minicluster.protocol.json_form import from_json
from minicluster.protocol.records import RECORD_CLASSES
from minicluster.protocol.uuids import format_uuid
from tests.metadata.records import feature, version

TRANSCRIPTS = sorted((Path(__file__).parents[1] / "data" / "controller-transcripts").glob("*.gz"))


def record_class(type_name: str) -> Any:
    wanted = type_name.replace("_", "").lower()
    return next(cls for cls in RECORD_CLASSES.values() if cls.__name__.lower() == wanted)


def fold(lines: list[dict[str, Any]]) -> MetadataImage:
    head, *operations, _ = lines
    image = apply(MetadataImage.EMPTY, version(head["metadata_version_level"]))
    if head.get("eligible_leader_replicas_version"):
        image = apply(image, feature("eligible.leader.replicas.version", 1))
    for operation in operations:
        for index, written in enumerate(operation.get("records", ())):
            cls = record_class(written["type"])
            record = from_json(cls, written["data"], written["version"])
            image = apply(image, record, offset=operation["base_offset"] + index)
    return image


def held(image: MetadataImage, sample: dict[str, Any]) -> dict[str, Any]:
    """The image in the form of a transcript's last line."""
    brokers = [
        {
            "broker_id": broker.id,
            "broker_epoch": broker.epoch,
            "incarnation_id": format_uuid(broker.incarnation_id),
            "fenced": broker.fenced,
            "in_controlled_shutdown": broker.in_controlled_shutdown,
            "rack": broker.rack,
            "log_dirs": [format_uuid(directory) for directory in broker.log_dirs],
            "cordoned_log_dirs": [format_uuid(d) for d in broker.cordoned_log_dirs or ()],
        }
        for broker in image.cluster.brokers.values()
    ]
    partitions = [
        {
            "topic": topic.name,
            "topic_id": format_uuid(topic.id),
            "partition_index": index,
            "leader": partition.leader,
            "leader_epoch": partition.leader_epoch,
            "partition_epoch": partition.partition_epoch,
            "leader_recovery_state": partition.leader_recovery_state,
            "replicas": list(partition.replicas),
            "directories": [format_uuid(directory) for directory in partition.directories],
            "isr": list(partition.isr),
            "adding_replicas": list(partition.adding_replicas),
            "removing_replicas": list(partition.removing_replicas),
            "eligible_leader_replicas": list(partition.elr),
            "last_known_elr": list(partition.last_known_elr),
        }
        for topic, index, partition in image.topics.partitions()
    ]
    return {
        "brokers": [
            {key: row[key] for key in sample["brokers"][0] if key in row} for row in brokers
        ],
        "partitions": [{key: row[key] for key in sample["partitions"][0]} for row in partitions],
    }


@pytest.mark.parametrize("path", TRANSCRIPTS, ids=lambda path: path.name.split(".jsonl")[0])
def test_the_fold_is_what_kafkas_controller_held(path: Path) -> None:
    lines = [json.loads(line) for line in gzip.decompress(path.read_bytes()).splitlines()]
    expected = lines[-1]["final_state"]
    image = fold(lines)
    assert held(image, expected) == {
        "brokers": expected["brokers"],
        "partitions": sorted(
            expected["partitions"], key=lambda row: (row["topic"], row["partition_index"])
        ),
    }
    assert image_from_records(image_records(image)) == image


def test_every_transcript_is_there() -> None:
    assert len(TRANSCRIPTS) == 28
