"""Runs on ZooKeeper: the rules K1 to K13, live and afterwards, and the views."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from minicluster import MiniCluster
from minicluster.cli import run as run_command
from minicluster.metadata.inter_broker_protocol import InterBrokerProtocol
from minicluster.verify import Report, Verdict, verify
from minicluster.verify.judging import Judge
from minicluster.verify.live import LiveZnodeJudge
from minicluster.verify.model import Evidence
from minicluster.verify.rules.every import BY_ID, RULES
from minicluster.verify.rules.rule import Findings
from minicluster.verify.znodes import ZnodeLog
from tests.verify.check_run import check_znodes
from tests.verify.examples.by_rule import ZNODES_BAD, ZNODES_NEAR, by_name
from tests.verify.examples.znodes import k3_near, k6_bad, k6_near
from tests.verify.in_process import verified
from tests.verify.recordings import RECORDINGS, recorded

OF_ZNODES = [rule.id for rule in RULES if rule.evidence is Evidence.ZNODES]
K6 = BY_ID["K6"]
CASES = by_name(ZNODES_BAD, ZNODES_NEAR)


def log_lines(folder: Path) -> list[dict[str, Any]]:
    return list(map(json.loads, (folder / "zookeeper" / "log.jsonl").read_text().splitlines()))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("runs")
    for name, case in CASES.items():
        case().write(folder / name)
    for name in RECORDINGS:
        recorded(name, folder / name)
    return folder


@pytest.fixture(scope="module")
def report(folder: Path) -> Report:
    return verified(*(folder / name for name in (*CASES, *RECORDINGS)))


def verdicts(report: Report, run: str) -> dict[str, tuple[Verdict, int]]:
    return {
        rule.id: (word, looked)
        for rule in report.rules
        for name, word, looked in rule.by_run
        if name == run
    }


@pytest.mark.parametrize("name", by_name(ZNODES_NEAR))
def test_a_near_miss_of_one_rule_breaks_no_other(name: str, report: Report) -> None:
    assert not [finding for finding in report.findings if finding.run == name]


@pytest.mark.parametrize("name", RECORDINGS)
def test_nothing_is_found_in_the_log_of_a_real_cluster(name: str, report: Report) -> None:
    found = verdicts(report, name)
    assert not [finding for finding in report.findings if finding.run == name]
    assert found["K2"][1] >= 190
    assert {found[rule][0] for rule in OF_ZNODES} <= {Verdict.VALID, Verdict.NO_CASES}
    assert found["E10"] == (Verdict.NOT_APPLICABLE, 0)


@pytest.mark.parametrize("name", [*CASES, *RECORDINGS])
def test_a_growing_log_is_judged_as_afterwards(name: str, folder: Path, report: Report) -> None:
    live = check_znodes(folder / name)
    assert sorted(one for one in report.findings if one.run == name) == sorted(live.findings)
    cases = {rule: verdicts(report, name)[rule][1] for rule in OF_ZNODES}
    assert {rule: live.looked_at[rule] for rule in OF_ZNODES} == cases


def test_a_log_that_is_damaged_leaves_its_rules_unknown(tmp_path: Path) -> None:
    whole = k3_near().write(tmp_path / "whole")
    text = (whole / "zookeeper" / "log.jsonl").read_text()
    for name, damaged in (("cut", text[:-30]), ("other", text.replace('"zxid"', '"id"'))):
        folder = k3_near().write(tmp_path / name)
        (folder / "zookeeper" / "log.jsonl").write_text(damaged)
    folder = k3_near().write(tmp_path / "gone")
    (folder / "zookeeper" / "log.jsonl").unlink()
    report = verified(*(tmp_path / name for name in ("whole", "cut", "other", "gone")))
    assert verdicts(report, "whole")["K3"] == (Verdict.VALID, 2)
    for name, reason in (("cut", "is no JSON"), ("other", "line 1: "), ("gone", "No such")):
        assert verdicts(report, name)["K3"] == (Verdict.UNKNOWN, 0)
        assert any(name in why and reason in why for why in report.rule("K3").reasons)


def test_topics_that_are_left_out_are_not_judged() -> None:
    run = k6_bad()
    judge = Judge("online", [BY_ID[rule] for rule in OF_ZNODES])
    log = ZnodeLog(judge, InterBrokerProtocol.parse(run.protocol), left_out=("orders",))
    assert not [finding for line in run.lines for finding in log.on_line(line)]
    assert judge.tallies["K6"].looked_at == 0 < judge.tallies["K1"].looked_at


def test_a_rule_that_cannot_judge_is_said_while_the_log_grows(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The recorder keeps the problem beside the run, and the cluster continues."""

    def stumbles(step: object) -> Findings:
        raise ValueError("no such column")
        yield

    stumbles.__module__ = K6.parts[0][1].__module__
    monkeypatch.setattr(K6, "parts", [(step, stumbles) for step, _ in K6.parts])
    run = k6_near()
    live_judge = LiveZnodeJudge(InterBrokerProtocol.parse(run.protocol))
    with pytest.raises(
        RuntimeError, match="K6 could not judge: it crashed: ValueError: no such column"
    ):
        for line in run.lines:
            live_judge.on_line(line)


@pytest.mark.spark
def test_a_cluster_on_zookeeper_is_verified_and_has_views(
    tmp_path: Path, spark: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    with MiniCluster(mode="zookeeper", inter_broker_protocol="2.6", seed=1) as cluster:
        orders = cluster.create_topic("orders", partitions=2, replicas=3)
        cluster.kill(orders[0].followers[0])
        cluster.wait_until(lambda: len(orders[0].isr) == 2, within="60s")
        folder = cluster.save(tmp_path / "run")
    report = verify(folder)
    assert report.valid and report.rule("K3").looked_at
    assert "operations of ZooKeeper" in report.to_text()
    assert "orders-0" in report.to_html()

    from minicluster.verify import views

    shown = views(spark, folder)
    changes = shown["isr_changes"].where("topic = 'orders' and partition = 0").collect()
    assert [len(one.left) for one in changes] == [1]
    (last,) = shown["partition_states"].where("partition = 0 and to_offset is null").collect()
    assert sorted(last.isr) == sorted(changes[-1].isr)
    lines = log_lines(folder)
    assert shown["znode_operations"].count() == len(lines)
    epochs = [one.epoch for one in shown["controllers"].collect()]
    assert epochs == list(range(1, len(epochs) + 1))
    assert {one.broker for one in shown["brokers"].collect()} == {1, 2, 3}
    (topic,) = shown["topics"].collect()
    assert (topic.topic, topic.partitions, topic.deleted_at) == ("orders", 2, None)

    capsys.readouterr()
    assert run_command(["log", str(folder)]) == 0
    printed = capsys.readouterr().out.splitlines()
    assert len(printed) == len(lines)
    assert any("/brokers/topics/orders/partitions/0/state v1" in line for line in printed)


ABOUT_REPLICAS = ("B2", "B7", "B8", "E27", "F1", "F8", "F14", "F15", "F16")


@pytest.mark.parametrize(("faults", "broken"), [((), []), (("S32",), ["F8"])])
def test_rules_about_replicas_judge_the_trace_of_a_cluster_on_zookeeper(
    tmp_path: Path, faults: tuple[str, ...], broken: list[str]
) -> None:
    """A follower stops; acks=all waits for it, or does not (S32)."""
    config = {"replica.lag.time.max.ms": 4_000}
    with MiniCluster(
        mode="zookeeper", seed=1, config=config, faults=faults, online=False
    ) as cluster:
        orders = cluster.create_topic("orders", assignment=[[1, 2, 3]], min_isr=2)
        cluster.produce("orders", count=10)
        cluster.cut(3, 1, api="Fetch")
        cluster.produce("orders", count=5)
        cluster.wait_until(lambda: orders[0].isr == [1, 2], within="60s")
        cluster.heal()
        cluster.wait_until(orders.fully_in_sync, within="60s")
        cluster.produce("orders", count=5)
        report = verified(cluster.save(tmp_path / "run"))
    looked_at = {one.id: one.looked_at for one in report.rules}
    assert all(looked_at[rule] for rule in ABOUT_REPLICAS)
    assert [one.id for one in report.rules if one.verdict is Verdict.INVALID] == broken
