"""The tables that views read, made in this process by the functions that Spark's tasks run."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

from minicluster.log.format.limits import DEFAULT_LIMITS
from minicluster.protocol import records as r
from minicluster.verify.evidence.reading import read_run
from minicluster.verify.log_rows import Item
from minicluster.verify.rules.every import BY_ID
from minicluster.verify.shown.frames import rows_here
from minicluster.verify.shown.worker import CLIENT_OPERATIONS, RECORDS, CannotBeShown
from tests.verify.examples.by_rule import RUNS_BAD, RUNS_NEAR, Case
from tests.verify.handwritten.log import (
    OTHER_TOPIC,
    TOPIC,
    LogBuilder,
    change,
    cluster,
    partition,
)
from tests.verify.handwritten.run import RunBuilder, as_json
from tests.verify.in_process import judge_path

KAFKA_LOGS = Path(__file__).parents[1] / "data" / "kafka-logs"
Row = dict[str, Any]


def rows(table: str, path: Path) -> list[Row]:
    """The rows of a table."""
    batches = rows_here(table, [Item.at(path, "run")], DEFAULT_LIMITS)
    return [row for batch in batches for row in batch.to_pylist()]


def values(found: list[Row], *columns: str) -> list[tuple[Any, ...]]:
    return [tuple(row[name] for name in columns) for row in found]


def test_a_state_has_the_one_before_it(tmp_path: Path) -> None:
    log = cluster()
    shrunk = log.op(change((1, 2))).offset - 1
    grown = log.op(change((1, 2, 3))).offset - 1

    found = rows("partition_states", log.write(tmp_path))
    last = values(found, "offset", "isr", "isr_before", "ms")[-2:]

    assert last == [
        (shrunk, [1, 2], [1, 2, 3], 1000 + shrunk),
        (grown, [1, 2, 3], [1, 2], 1000 + grown),
    ]


def test_records_of_a_transaction_have_their_own_times(tmp_path: Path) -> None:
    """They take effect together, when the transaction ends."""
    log = cluster()
    log.op(r.BeginTransactionRecord(name="delete"))
    shrunk = log.op(change((1, 2))).offset - 1
    log.op(r.EndTransactionRecord())

    last = rows("partition_states", log.write(tmp_path))[-1]

    assert (last["offset"], last["ms"]) == (shrunk, 1000 + shrunk)


def test_a_broker_has_its_rack(tmp_path: Path) -> None:
    log = LogBuilder().op(r.RegisterBrokerRecord(broker_id=7, broker_epoch=2, rack="a"))

    assert values(rows("broker_states", log.write(tmp_path)), "broker", "rack") == [(7, "a")]


# --- configs --------------------------------------------------------------------------------------


def config(value: str | None, *, topic: str = "", broker: str = "") -> r.ConfigRecord:
    """min.insync.replicas of a topic, of a broker, or else of the cluster."""
    kind, name = (2, topic) if topic else (4, broker)
    return r.ConfigRecord(
        resource_type=kind, resource_name=name, name="min.insync.replicas", value=value
    )


def test_a_config_has_each_value_that_comes_into_effect(tmp_path: Path) -> None:
    log = cluster()
    of_topic = log.op(config("3", topic="orders")).offset - 1
    of_cluster = log.op(config("2")).offset - 1
    removed = log.op(config(None, topic="orders")).offset - 1
    other = log.op(config("1")).offset - 1
    gone = log.op(r.RemoveTopicRecord(topic_id=TOPIC)).offset - 1

    found = rows("config_states", log.write(tmp_path))

    cluster_wide = "DYNAMIC_DEFAULT_BROKER_CONFIG"
    assert values(found, "offset", "resource_type", "value", "effective", "source") == [
        (of_topic, "topic", "3", "3", "TOPIC_CONFIG"),
        (of_cluster, "cluster", "2", "2", cluster_wide),
        (removed, "topic", None, "2", cluster_wide),
        (other, "cluster", "1", "1", cluster_wide),
        (other, "topic", None, "1", cluster_wide),
        (gone, "topic", None, None, None),
    ]


def test_a_password_is_not_shown(tmp_path: Path) -> None:
    secret = r.ConfigRecord(
        resource_type=4, resource_name="", name="ssl.key.password", value="hunter2"
    )

    (found,) = rows("config_states", cluster().op(secret).write(tmp_path))

    assert (found["value"], found["effective"]) == ("[hidden]", "[hidden]")


def test_a_partition_is_under_min_isr_by_what_is_in_effect(tmp_path: Path) -> None:
    """The topic's own min.insync.replicas, else the leader's, else the cluster's; ISR [1, 2]."""
    log = cluster()
    log.op(change((1, 2)))
    by_cluster = log.op(config("3")).offset - 1
    by_leader = log.op(config("2", broker="1")).offset - 1
    by_topic = log.op(config("3", topic="orders")).offset - 1
    log.op(change((1,)))
    filled = log.op(change((1, 2, 3))).offset - 1

    found = rows("under_min_isr", log.write(tmp_path))
    shown = values(found, "offset", "to_offset", "min_isr", "isr", "fewest", "leader")

    assert shown == [
        (by_cluster, by_leader, 3, [1, 2], 2, 1),
        (by_topic, filled, 3, [1, 2], 1, 1),
    ]


def test_min_isr_is_at_most_the_replicas_and_ends_with_the_topic(tmp_path: Path) -> None:
    log = cluster().topic(partition((1,), topic_id=OTHER_TOPIC), name="other", topic_id=OTHER_TOPIC)
    log.op(config("9"))
    low = log.op(change((1, 2))).offset - 1
    gone = log.op(r.RemoveTopicRecord(topic_id=TOPIC)).offset - 1

    found = rows("under_min_isr", log.write(tmp_path))

    assert values(found, "topic", "offset", "to_offset", "min_isr") == [("orders", low, gone, 3)]


def test_the_brokers_of_a_run_have_configs_of_their_own(tmp_path: Path) -> None:
    log = cluster().op(change((1, 2)))
    run = RunBuilder(log, config={"min.insync.replicas": 3}).write(tmp_path / "run")

    assert values(rows("under_min_isr", run), "min_isr", "fewest") == [(3, 2)]


# --- clients --------------------------------------------------------------------------------------


@pytest.mark.parametrize("case", [*RUNS_BAD["F1"], *RUNS_NEAR["F1"]], ids=lambda case: case.name)
def test_a_record_is_lost_where_f1_accuses(case: Case, tmp_path: Path) -> None:
    path = case().write(tmp_path / "run")
    findings = judge_path(path, "run", [BY_ID["F1"]]).tallies["F1"].findings

    lost = [row for row in rows(CLIENT_OPERATIONS, path) if row["lost"]]

    accused = {(one.topic, one.partition, one.message.split(" offset ")[1]) for one in findings}
    assert {row["outcome"] for row in lost} <= {"acknowledged"}
    assert len({(row["topic"], row["partition"], row["offset"]) for row in lost}) == len(accused)


def test_a_produce_that_failed_or_was_lost_is_an_operation(tmp_path: Path) -> None:
    run = RunBuilder(cluster())
    request = {
        "acks": -1,
        "topicData": [{"name": "orders", "partitionData": [{"index": 0}, {"index": 1}]}],
    }
    refused = {
        "responses": [
            {
                "name": "orders",
                "partitionResponses": [{"index": 0, "errorCode": 0}, {"index": 1, "errorCode": 19}],
            }
        ]
    }
    sent = as_json(request)
    run.rpc("Produce", -1, request=sent, response=as_json(refused), client_id="app")
    run.rpc("Produce", -1, request=sent, response=None, client_id="app")
    run.rpc("Produce", -1, request=sent, response=None)  # the cluster's own client: see its history

    found = rows(CLIENT_OPERATIONS, run.write(tmp_path / "run"))

    assert values(found, "client", "partition", "outcome", "error", "acks") == [
        ("app", 1, "failed", "NOT_ENOUGH_REPLICAS", -1),
        ("app", 0, "unknown", None, -1),
        ("app", 1, "unknown", None, -1),
    ]


# --- evidence -------------------------------------------------------------------------------------


def test_a_log_has_no_trace() -> None:
    assert not rows("rpc", KAFKA_LOGS / "smoke")


def test_the_records_of_a_table_are_those_of_the_log() -> None:
    records = rows("records", KAFKA_LOGS / "trimmed")
    in_snapshots = rows("snapshot_records", KAFKA_LOGS / "trimmed")

    assert [row["offset"] for row in records] == sorted(row["offset"] for row in records)
    assert records[0]["offset"] > 0
    assert all(row["snapshot_end"] for row in in_snapshots)


def test_of_logs_of_which_one_is_damaged_the_others_are_shown(tmp_path: Path) -> None:
    """Of three controllers' logs two are a majority."""
    path = tmp_path / "divergent"
    shutil.copytree(KAFKA_LOGS / "divergent", path)
    segment = next((path / "controller-101").rglob("*.log"))
    content = bytearray(segment.read_bytes())
    content[len(content) // 2] ^= 0xFF
    segment.write_bytes(bytes(content))

    extent = read_run(path, "run").extent
    assert len(rows(RECORDS, path)) == extent.records > 0
    assert max(row["offset"] for row in rows("partition_states", path)) < extent.end_offset


def test_a_log_whose_first_state_is_not_recorded_says_so(tmp_path: Path) -> None:
    path = tmp_path / "trimmed"
    shutil.copytree(KAFKA_LOGS / "trimmed", path)
    for snapshot in path.rglob("*.checkpoint"):
        snapshot.unlink()

    assert rows(RECORDS, path)
    with pytest.raises(CannotBeShown, match=r"run: .*the log begins at offset"):
        rows("partition_states", path)
