"""Transcript bodies as messages, and messages as transcript bodies.

Two fields are written differently from Kafka's JSON form: the records of a Fetch response are
decoded batches, those of FetchSnapshot may be null.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any

from minicluster.log.batch import Record, RecordBatch
from minicluster.log.control import control_batch, control_records
from minicluster.log.records import Records
from minicluster.protocol import messages
from minicluster.protocol.json_form import from_json, to_json
from minicluster.protocol.records import (
    KRaftVersionRecord,
    LeaderChangeMessage,
    SnapshotFooterRecord,
    SnapshotHeaderRecord,
    VotersRecord,
)
from minicluster.values import replace

APIS = {
    "VOTE": "Vote",
    "BEGIN_QUORUM_EPOCH": "BeginQuorumEpoch",
    "END_QUORUM_EPOCH": "EndQuorumEpoch",
    "FETCH": "Fetch",
    "FETCH_SNAPSHOT": "FetchSnapshot",
    "DESCRIBE_QUORUM": "DescribeQuorum",
    "ADD_RAFT_VOTER": "AddRaftVoter",
    "REMOVE_RAFT_VOTER": "RemoveRaftVoter",
    "UPDATE_RAFT_VOTER": "UpdateRaftVoter",
    "API_VERSIONS": "ApiVersions",
}
_NAMES = {f"{name}{kind}": api for api, name in APIS.items() for kind in ("Request", "Response")}
_CONTROL_NAMES: dict[type, str] = {
    LeaderChangeMessage: "LEADER_CHANGE",
    SnapshotHeaderRecord: "SNAPSHOT_HEADER",
    SnapshotFooterRecord: "SNAPSHOT_FOOTER",
    KRaftVersionRecord: "KRAFT_VERSION",
    VotersRecord: "KRAFT_VOTERS",
}
_CONTROL_CLASSES = {name: cls for cls, name in _CONTROL_NAMES.items()}


def api_of(message: Any) -> str:
    """The transcript's name of a message's api."""
    return _NAMES[type(message).__name__]


# --- from the transcript ------------------------------------------------------------------------


def read_message(api: str, kind: str, version: int, body: dict[str, Any]) -> Any:
    """The request or response (``kind``) that a body describes."""
    cls = getattr(messages, APIS[api] + kind)
    if api == "FETCH" and kind == "Response":
        return _read_fetch(cls, version, body)
    if api == "FETCH_SNAPSHOT" and kind == "Response":
        body = _map_partitions(body, "topics", _plain_snapshot)
    return from_json(cls, body, version)


def _map_partitions(body: dict[str, Any], topics: str, change: Any) -> dict[str, Any]:
    return {
        **body,
        topics: [
            {**topic, "partitions": [change(dict(p)) for p in topic["partitions"]]}
            for topic in body[topics]
        ],
    }


def _plain_snapshot(partition: dict[str, Any]) -> dict[str, Any]:
    partition.pop("unalignedRecordsSizeInBytes", None)
    partition["unalignedRecords"] = partition.get("unalignedRecords") or ""
    return partition


def _read_fetch(cls: Any, version: int, body: dict[str, Any]) -> Any:
    batches: list[Records] = []

    def plain(partition: dict[str, Any]) -> dict[str, Any]:
        partition.pop("recordsSizeInBytes", None)
        batches.append(Records(tuple(read_batch(each) for each in partition.pop("records") or ())))
        return {**partition, "records": ""}

    message = from_json(cls, _map_partitions(body, "responses", plain), version)
    rest = iter(batches)
    return replace(
        message,
        responses=tuple(
            replace(
                topic, partitions=tuple(replace(p, records=next(rest)) for p in topic.partitions)
            )
            for topic in message.responses
        ),
    )


def read_batch(form: dict[str, Any]) -> RecordBatch:
    """A batch as decoded in a Fetch response."""
    base, epoch = form["base"], form["epoch"]
    if "control" in form:
        return control_batch(
            base,
            epoch,
            0,
            [
                _read_control(_CONTROL_CLASSES[record["type"]], record["data"])
                for record in form["control"]
            ],
        )
    return text_batch(base, epoch, form["records"])


def _read_control(cls: Any, form: dict[str, Any]) -> Any:
    # The newest form, whatever version the record itself names: so Kafka's own printer has it.
    return from_json(cls, form, cls.latest_version)


def text_batch(base: int, epoch: int, texts: Sequence[str]) -> RecordBatch:
    """A batch of data records."""
    records = [Record(base + i, 0, None, text.encode()) for i, text in enumerate(texts)]
    return RecordBatch.of(records, leader_epoch=epoch)


# --- to the transcript --------------------------------------------------------------------------


def write_message(message: Any, version: int) -> dict[str, Any]:
    """A message as a transcript shows it."""
    name = type(message).__name__
    if name == "FetchResponse":
        return _write_fetch(message, version)
    if name == "FetchSnapshotResponse":
        return _write_snapshot(message, version)
    return to_json(message, version)


def _write_fetch(message: Any, version: int) -> dict[str, Any]:
    form = to_json(message, version, records="blank")
    for topic, topic_form in zip(message.responses, form["responses"], strict=True):
        for partition, shown in zip(topic.partitions, topic_form["partitions"], strict=True):
            batches = Records.of(partition.records).batches
            shown["records"] = [write_batch(batch) for batch in batches]
            shown["recordsSizeInBytes"] = sum(batch.size for batch in batches)
    return form


def _write_snapshot(message: Any, version: int) -> dict[str, Any]:
    nulls = [p.unaligned_records is None for t in message.topics for p in t.partitions]
    whole = replace(
        message,
        topics=tuple(
            replace(
                topic,
                partitions=tuple(
                    replace(p, unaligned_records=p.unaligned_records or b"")
                    for p in topic.partitions
                ),
            )
            for topic in message.topics
        ),
    )
    form = to_json(whole, version)
    shown = [p for topic in form["topics"] for p in topic["partitions"]]
    for was_null, partition in zip(nulls, shown, strict=True):
        if was_null:
            partition["unalignedRecords"] = None
    return form


def write_batch(batch: RecordBatch) -> dict[str, Any]:
    """A batch as decoded in a Fetch response."""
    form: dict[str, Any] = {
        "base": batch.base_offset,
        "last": batch.last_offset,
        "epoch": batch.leader_epoch,
    }
    if batch.is_control:
        form["control"] = [
            {
                "type": _CONTROL_NAMES[type(record.message)],
                "data": to_json(record.message, type(record.message).latest_version),
            }
            for record in control_records(batch)
        ]
    else:
        form["records"] = [(record.value or b"").decode() for record in batch.records]
    return form


def control_names(batch: RecordBatch) -> list[str]:
    """The types of a control batch's records."""
    return [_CONTROL_NAMES[type(record.message)] for record in control_records(batch)]


_UNORDERED = ("currentVoters", "observers", "grantingVoters", "voters", "nodes")


def comparable(form: Any, name: str = "") -> Any:
    """A body without what may differ, and with what may come in any order sorted."""
    if isinstance(form, dict):
        return {
            key: comparable(value, key)
            for key, value in sorted(form.items())
            if key not in ("throttleTimeMs", "unalignedRecordsSizeInBytes")
            and not (key in ("size", "recordsSizeInBytes") and "unalignedRecords" not in form)
        }
    if name == "errorMessage" and form:
        return sorted(re.findall(r"[\w=]+", form))  # a set of voters has no order
    if isinstance(form, list):
        items = [comparable(item) for item in form]
        return sorted(items, key=repr) if name in _UNORDERED else items
    return form


def flatten(batches: Iterable[Any]) -> list[tuple[Any, ...]]:
    """The records of committed batches one by one, ours or a transcript's."""
    flat: list[tuple[Any, ...]] = []
    for batch in batches:
        if isinstance(batch, RecordBatch):
            base, epoch = batch.base_offset, batch.leader_epoch
            values = (
                control_names(batch)
                if batch.is_control
                else [(record.value or b"").decode() for record in batch.records]
            )
        else:
            base, epoch = batch["base"], batch["epoch"]
            values = batch.get("control") or batch["records"]
        flat.extend((base + i, epoch, value) for i, value in enumerate(values))
    return flat
