"""Acknowledged records that are gone, and the exemptions of the rules about them, in played runs.

The tests read verdicts, cases, reasons and headlines alone.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Callable
from heapq import merge
from operator import itemgetter
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from minicluster import MiniCluster
from minicluster.actors.cluster.actions.records import pause_load
from minicluster.actors.cluster.judged_at_end import findings_about_clients
from minicluster.actors.cluster.mini_cluster import inside
from minicluster.actors.play.campaign import outcome_of
from minicluster.actors.play.player import play
from minicluster.actors.recording.live_checks import InvariantViolated
from minicluster.actors.recording.tables import Tables
from minicluster.errors import counted
from minicluster.scenario import Scenario, load_scenario
from minicluster.values import replace
from minicluster.verify import LiveJudge, Report, Verdict, verify
from minicluster.verify.reporting.causes import Chains

LOST = 39
ABOUT_RECORDS = ("F1", "F2", "F4", "F5", "F9")
SAME_NAME = Path(__file__).resolve().parents[1] / "zoo" / "same_name.yaml"


def killed_leader(cluster: MiniCluster) -> None:
    """S32: a leader acknowledges what it alone has, and dies with it."""
    orders = cluster.create_topic("orders", assignment=[[1, 2, 3]], min_isr=2)
    cluster.wait_until(orders[0].fully_in_sync, within="30s")
    cluster.produce(orders, count=10)
    cluster.run_for("1s")
    cluster.cut(1, [2, 3], both=True)
    cluster.produce(orders, count=LOST)
    cluster.kill(1)
    cluster.wait_until(lambda: orders[0].leader not in (None, cluster.node(1)), within="60s")
    cluster.heal()
    cluster.produce(orders, count=LOST)
    cluster.restart(1)
    cluster.wait_until(orders[0].fully_in_sync, within="60s")


def clean_restart(cluster: MiniCluster) -> None:
    """All brokers restart while clients produce; no disk loses anything."""
    orders = cluster.create_topic("orders", assignment=[[1, 2, 3]], min_isr=2)
    cluster.wait_until(orders[0].fully_in_sync, within="30s")
    cluster.produce(orders, rate=50, lasting="60s")
    cluster.run_for("1s")
    cluster.cut([2, 3], 1, api="Fetch")  # so that 1 has a tail, which it truncates afterwards
    cluster.run_for("100ms")
    cluster.restart(cluster.brokers)
    cluster.heal()
    cluster.run_for("20s")
    cluster.wait_until(orders[0].fully_in_sync, within="60s")
    cluster.run_for("1s")
    pause_load(inside(cluster))
    cluster.run_for("1s")


def restart_then_loss(cluster: MiniCluster) -> None:
    """The election after the clean restart was unclean, which excuses no later loss."""
    orders = cluster.create_topic("orders", assignment=[[1, 2, 3]], min_isr=2)
    cluster.wait_until(orders[0].fully_in_sync, within="30s")
    cluster.produce(orders, count=10)
    cluster.run_for("1s")
    cluster.restart(cluster.brokers)
    cluster.run_for("20s")
    cluster.wait_until(orders[0].fully_in_sync, within="60s")
    killed_leader_of(cluster)


def killed_leader_of(cluster: MiniCluster) -> None:
    """S32: the leader acknowledges what it alone has, and dies."""
    orders = cluster.topic("orders")
    leader = orders[0].leader
    assert leader is not None
    others = [broker for broker in cluster.brokers if broker != leader]
    cluster.run_for("1s")
    cluster.cut(leader, others, both=True)
    cluster.produce(orders, count=LOST)
    cluster.kill(leader)
    cluster.wait_until(lambda: orders[0].leader not in (None, leader), within="60s")
    cluster.heal()
    cluster.run_for("1s")


def unclean_loss(cluster: MiniCluster) -> None:
    """The one replica that is elected lacks 5 records, rightly; 5 more are produced after."""
    orders = cluster.create_topic("orders", assignment=[[1, 2]], min_isr=1)
    cluster.produce(orders, count=3)
    cluster.cut(2, 1, api="Fetch")
    cluster.produce(orders, count=3, acks=1)
    cluster.wait_until(lambda: orders[0].isr == (cluster.node(1),), within="60s")
    cluster.produce(orders, count=5)
    cluster.kill(1)
    cluster.wait_until(lambda: orders[0].leader is None, within="30s")
    cluster.elect(["orders-0"], "UNCLEAN")
    cluster.wait_until(lambda: orders[0].leader == cluster.node(2), within="5s")
    cluster.produce(orders, count=5)
    cluster.heal()
    cluster.restart(1)
    cluster.wait_until(orders[0].fully_in_sync, within="60s")


def unclean_loss_then_more(cluster: MiniCluster) -> None:
    """The loss by an unclean election excuses none that follows it."""
    unclean_loss(cluster)
    killed_leader_of(cluster)


STORIES: dict[str, tuple[Callable[[MiniCluster], None], tuple[str, ...]]] = {
    "killed-leader": (killed_leader, ("S32",)),
    "clean-restart": (clean_restart, ()),
    "restart-then-loss": (restart_then_loss, ("S32",)),
    "unclean-loss": (unclean_loss, ()),
}


@pytest.fixture(scope="module")
def reports(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Report]:
    """The report on each story by name, and on a scenario.

    Nobody watches those that break promises; the live judge finds nothing in the others.
    """
    runs = tmp_path_factory.mktemp("runs")
    for name, (story, faults) in STORIES.items():
        with MiniCluster(seed=7, faults=faults, run_id=name, online=not faults) as cluster:
            story(cluster)
            cluster.save(runs / name)
    played = play(appends_nothing(), runs=runs)
    paths = [*(runs / name for name in STORIES), played.path]
    return dict(zip((*STORIES, "scenario"), verify(*paths, engine="process").each, strict=True))


def appends_nothing() -> Scenario:
    """S74: a leader acknowledges a batch, and appends nothing; no other rule sees it while the
    cluster runs."""
    return replace(load_scenario(SAME_NAME), faults=("S74",))


@pytest.mark.parametrize(
    ("run", "lost"), [("killed-leader", LOST), ("scenario", 2), ("restart-then-loss", LOST)]
)
def test_acknowledged_records_that_are_gone_are_the_headline(
    reports: dict[str, Report], run: str, lost: int
) -> None:
    report = reports[run]
    headline = f"{counted(lost, 'acknowledged record')} lost"

    assert report.rule("F1").verdict is Verdict.INVALID
    assert len(report.rule("F1").findings) == lost
    assert report.headline == headline
    assert report.to_text().startswith(f"INVALID {headline}\n")
    assert report.to_text(every_rule=False).startswith(f"INVALID {headline}\n")
    assert report.to_dict()["headline"] == headline
    assert f"<h1>invalid: {headline}</h1>" in report.to_html()


def test_two_values_at_one_offset_are_two_values_to_the_clusters_own_client(
    reports: dict[str, Report],
) -> None:
    assert reports["killed-leader"].rule("F9").verdict is Verdict.INVALID
    places = [finding.offset for finding in reports["killed-leader"].rule("F9").findings]
    assert len(places) == LOST


def test_a_clean_restart_of_all_brokers_excuses_nothing(reports: dict[str, Report]) -> None:
    report = reports["clean-restart"]

    for rule in ABOUT_RECORDS:
        result = report.rule(rule)
        assert (result.verdict, result.exempt) == (Verdict.VALID, {}), rule
        assert result.looked_at > 0
    assert report.headline is None
    assert report.valid


def test_what_an_unclean_election_loses_is_counted_as_exempt(reports: dict[str, Report]) -> None:
    result = reports["unclean-loss"].rule("F1")
    why = "an unclean election has lost records of the partition"

    assert (result.verdict, result.looked_at) == (Verdict.VALID, 8)
    assert result.exempt == {why: 5}
    assert reports["unclean-loss"].valid
    assert f"5 more cases of F1 exempted because {why}\n" in reports["unclean-loss"].to_text()


def test_every_rule_without_cases_has_a_reason(reports: dict[str, Report]) -> None:
    for report in reports.values():
        text, page = report.to_text(width=10_000), report.to_html()
        for result in report.rules:
            if result.looked_at == 0 and result.verdict is not Verdict.UNKNOWN:
                assert result.reasons, result.id
                assert report.to_dict()["rules"][report.rules.index(result)]["reasons"]
                for reason in result.reasons:
                    assert reason in text
                    assert reason in page


@pytest.mark.parametrize(("mode", "rule"), [("kraft", "F19"), ("zookeeper", "F1")])
def test_a_too_early_acknowledgement_does_not_hide_what_it_costs(mode: str, rule: str) -> None:
    """A running cluster continues after F8, until a leader lacks what was acknowledged; on
    ZooKeeper, where no log tells of elections, the records are missed at the end."""
    with (
        pytest.raises(InvariantViolated) as raised,
        MiniCluster(seed=7, mode=mode, faults=["S32"]) as cluster,
    ):
        killed_leader(cluster)
    assert raised.value.findings[0].rule == rule


def test_a_too_early_acknowledgement_is_told_at_the_end_where_nothing_was_lost() -> None:
    with (
        pytest.raises(InvariantViolated, match="rule F8 is broken in orders-0") as raised,
        MiniCluster(seed=7, faults=["S32"]) as cluster,
    ):
        orders = cluster.create_topic("orders", partitions=1, replicas=3)
        cluster.cut(orders[0].followers, orders[0].leader, api="Fetch")
        cluster.produce(orders, count=200)
        cluster.heal()
        cluster.wait_until(orders.fully_in_sync, within="90s")
    assert {finding.rule for finding in raised.value.findings} == {"F8"}
    assert len(raised.value.findings) == 100, "no more are kept"


@pytest.mark.parametrize("story", [killed_leader, restart_then_loss])
def test_the_live_judge_sees_the_election_that_loses_what_was_acknowledged(
    story: Callable[[MiniCluster], None],
) -> None:
    """An unclean election without loss, before it, excuses nothing."""
    with MiniCluster(seed=7, faults=["S32"], online=False) as cluster:
        story(cluster)
    judge = LiveJudge(rules=inside(cluster).rules)
    batches = deque(inside(cluster).committed.batches)
    tables = map(inside(cluster).recorder.table, ("raft_event", "partition_event"))
    for row in merge(*tables, key=itemgetter("seq")):
        if "part" in row:
            judge.on_partition_event(row)
        while row["kind"] == "hw" and "part" not in row and batches:
            if batches[0].base_offset >= row["offset"]:
                break
            judge.commit(batches.popleft())
    assert "F19" in {finding.rule for finding in judge.findings}


def test_a_long_run_is_judged_packed_and_says_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its rows went to disk, where each is a part of a column."""
    findings = []
    with MiniCluster(seed=7, faults=["S32"], online=False) as cluster:
        recorder = inside(cluster).recorder
        recorder.tables.rows_in_memory, recorder.tables.piece_rows = 20, 10
        killed_leader(cluster)
        assert all(recorder.tables[name].files for name in ("partition_event", "history"))
        for packed in (True, False):
            monkeypatch.setattr(Tables, "are_in_memory", not packed)
            findings.append(findings_about_clients(inside(cluster)))
    assert len([finding for finding in findings[0] if finding.rule == "F1"]) == LOST
    assert findings[0] == findings[1]


def test_a_lost_record_has_its_moment_and_what_led_to_the_loss(tmp_path: Path) -> None:
    """Its acknowledgement, with what disturbed the cluster then, and the election that lacks it."""
    with MiniCluster(seed=7, faults=["S32"], online=False) as cluster:
        killed_leader(cluster)
        report = verify(cluster.save(tmp_path / "run"), engine="process")
    lost = [finding for finding in report.findings if finding.rule == "F1"]
    run = report.sources[0].read()
    assert run is not None and len(lost) == LOST
    events = pq.read_table(run.trace["partition_event"]).to_pylist()
    [elected] = [
        row
        for row in events
        if (row["kind"], row["broker"], row["leo"]) == ("become_leader", lost[0].broker, 10)
    ]
    chains = Chains(run, lost)
    for finding in lost:
        assert chains.moment(finding) == elected["vt"]
        told = [cause.text for cause in chains.of(finding)]
        offset = re.search(r"offset (\d+)", finding.message)
        assert offset is not None
        acknowledged, election = (
            next(place for place, text in enumerate(told) if re.search(words, text))
            for words in (f"node 1 orders-0 ack .* offset={offset[1]}$", "become_leader .* leo=10")
        )
        assert acknowledged < told.index("kill 1") < election
        assert any(text.startswith("cut ") for text in told[:acknowledged])
        records = [text for _, text in report.around(finding)]
        # The leader dies and is fenced; both are in one batch, in Kafka's order.
        assert "PartitionChange orders-0" in records[-2] and "leader=" in records[-2]
        assert "BrokerRegistrationChange brokerId=1" in records[-1]


def test_the_failure_of_a_campaign_counts_the_lost_records() -> None:
    failure = outcome_of(appends_nothing()).failure

    assert failure is not None
    assert (failure.kind, failure.rule) == ("violated", "F1")
    assert failure.text.startswith("2 acknowledged records lost: ")


def test_what_brokers_on_zookeeper_acknowledged_is_judged_as_well() -> None:
    """Brokers on ZooKeeper: the leader acknowledges what it alone has, and dies."""
    with MiniCluster(seed=7, mode="zookeeper", faults=["S32"], online=False) as cluster:
        killed_leader(cluster)
        lost = [one for one in findings_about_clients(inside(cluster)) if one.rule == "F1"]
    assert len(lost) == LOST
