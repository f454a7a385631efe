"""The operations of clients: a row for each record that they produced or read.

Clients of Kafka's leave their responses in the trace (``client_record``; a Produce that failed, or
had no response, in ``rpc``), the cluster's own client has its ``history``. Whether a record is lost
is what rule F1 says of it.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

import pyarrow as pa

from minicluster.protocol.error_codes import ErrorCode
from minicluster.verify.histories.traced_run import TracedRun
from minicluster.verify.partition.clients import acknowledged_records_are_not_lost
from minicluster.verify.partition.driver import HISTORY, ended_partitions
from minicluster.verify.partition.topic_names import TopicNames, topic_names
from minicluster.verify.rules.rule import Broken, Exempt

TABLES = HISTORY.reads  # by which F1 is judged
SCHEMA = pa.schema(
    {
        "ms": pa.int64(),
        "client": pa.string(),
        "operation": pa.string(),
        "topic": pa.string(),
        "topic_id": pa.string(),
        "partition": pa.int32(),
        "offset": pa.int64(),
        "value": pa.string(),
        "acks": pa.int32(),
        "outcome": pa.string(),
        "error": pa.string(),
        "lost": pa.bool_(),
        "excuse": pa.string(),
    }
)
PRODUCE, READ = "produce", "read"
_OUTCOMES = {"ok": "acknowledged", "fail": "failed", "info": "unknown"}
_KINDS = {"send": PRODUCE, "poll": READ, "read": READ}

Row = tuple[Any, ...]
_Judged = tuple[bool, str | None]  # F1 calls it lost, or has a reason not to judge
_NOT_JUDGED = (None, None)


def client_operations(run: TracedRun) -> Iterator[Row]:
    """The operations of the clients of a run, in the order of their events."""
    rows = [*_of_responses(run), *_of_own_client(run), *_failed(run)]
    rows.sort(key=lambda row: row[0])
    return (row[1:] for row in rows)


def _judged(run: TracedRun) -> dict[Row, _Judged]:
    """Context: what F1 says of each acknowledged record, by its event and place."""
    judged: dict[Row, _Judged] = {}
    for (topic_id, part), clients in run.context(ended_partitions).clients.items():
        for record in clients.known:
            if clients.leader is None or not record.is_acknowledged:
                continue
            said = acknowledged_records_are_not_lost(record, clients.leader, clients)
            outcomes = [outcome for _, outcome in said]
            excuse = next((one.why for one in outcomes if isinstance(one, Exempt)), None)
            is_lost = any(isinstance(outcome, Broken) for outcome in outcomes)
            judged[record.seq, topic_id, part, record.offset, record.value] = is_lost, excuse
    return judged


def _of_responses(run: TracedRun) -> Iterator[Row]:
    """What clients of Kafka's were acknowledged and what they read; numbered by their events."""
    names, judged = run.context(topic_names), run.context(_judged)
    for row in run.rows("client_record"):
        operation = _KINDS.get(row["f"])
        if operation is None:
            continue
        topic_id = row["topic_id"]
        name = names.name_of(topic_id) or row["topic"]
        key = row["seq"], topic_id, row["part"], row["offset"], row["value"]
        yield (
            row["seq"], row["vt"], _client(row), operation, name, topic_id,
            row["part"], row["offset"], row["value"], row["acks"],
            READ if operation == READ else _OUTCOMES["ok"], None, *judged.get(key, _NOT_JUDGED),
        )  # fmt: skip


def _of_own_client(run: TracedRun) -> Iterator[Row]:
    names, judged = run.context(topic_names), run.context(_judged)
    by_name = {(key[0], names.name_of(key[1]), *key[2:]): (key[1], judged[key]) for key in judged}
    for row in run.rows("history"):
        operation, ended = _KINDS.get(row["f"]), _OUTCOMES.get(row["type"])
        if operation is None or ended is None:
            continue
        key = row["complete_seq"], row["topic"], row["part"], row["offset"], row["value"]
        topic_id, said = by_name.get(key, (_only(names, row["topic"]), _NOT_JUDGED))
        yield (
            row["seq"], row["vt"], row["process"], operation, row["topic"], topic_id, row["part"],
            row["offset"], row["value"], row["acks"],
            READ if operation == READ and ended == _OUTCOMES["ok"] else ended, row["error"], *said,
        )  # fmt: skip


def _failed(run: TracedRun) -> Iterator[Row]:
    """The partitions of a client's Produce that were rejected, or that no response came for.

    The trace has the bytes of such a request, and not its records.
    """
    names = run.context(topic_names)
    for row in run.rows("rpc"):
        if row["api"] != "Produce" or (row["client_id"] is None and row["connection"] is None):
            continue
        request = json.loads(row["request"])
        response = None if row["response"] is None else json.loads(row["response"])
        for topic, partition, error in _errors(request, response):
            topic_id = topic.get("topicId") or _only(names, topic.get("name"))
            name = topic.get("name") or (topic_id and names.name_of(topic_id))
            yield (
                row["seq"], row["vt"], _client(row), PRODUCE, name, topic_id, partition, None, None,
                request.get("acks"), _OUTCOMES["info" if error is None else "fail"], error,
                *_NOT_JUDGED,
            )  # fmt: skip


_Fields = Mapping[str, Any]


def _errors(
    request: _Fields, response: _Fields | None
) -> Iterator[tuple[_Fields, int, str | None]]:
    """Topic, partition and error; None: no response came."""
    if response is None:
        for topic in request.get("topicData") or ():
            for partition in topic.get("partitionData") or ():
                yield topic, partition["index"], None
        return
    for topic in response.get("responses") or ():
        for partition in topic.get("partitionResponses") or ():
            if partition["errorCode"]:
                yield topic, partition["index"], _name_of(partition["errorCode"])


def _name_of(code: int) -> str:
    try:
        return ErrorCode(code).name
    except ValueError:
        return str(code)


def _only(names: TopicNames, name: str | None) -> str | None:
    """The topic of a name that one topic alone has had."""
    ids = names.ids_of(name)
    return ids[0] if len(ids) == 1 else None


def _client(row: _Fields) -> str | None:
    """The client as it calls itself, else its connection."""
    if row["client_id"] or row["connection"] is None:
        return None if row["client_id"] is None else str(row["client_id"])
    return f"connection {row['connection']}"
