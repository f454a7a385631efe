"""ZooKeeper's log, judged whole after the run and line by line while it grows."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from minicluster.metadata.inter_broker_protocol import InterBrokerProtocol
from minicluster.verify.evidence.reading import read_run
from minicluster.verify.judging import Judge
from minicluster.verify.live import LiveZnodeJudge
from minicluster.verify.model import Evidence, Finding
from minicluster.verify.rules.every import BY_ID, RULES
from minicluster.verify.rules.rule import Findings
from minicluster.verify.whole import judge_run
from minicluster.verify.znodes import ZnodeLog
from tests.verify.examples.by_rule import ZNODES_BAD, ZNODES_NEAR, Case, by_name, each
from tests.verify.examples.znodes import k6_bad, k6_near
from tests.verify.recordings import RECORDINGS, recorded

K6 = BY_ID["K6"]
OF_ZNODES = [rule for rule in RULES if rule.evidence is Evidence.ZNODES]
CASES = by_name(ZNODES_BAD, ZNODES_NEAR)


def whole(folder: Path) -> Judge:
    return judge_run(read_run(folder, "online"), OF_ZNODES, {})


def live(folder: Path) -> tuple[Judge, list[Finding]]:
    """The judge of a growing log, and the findings as they came."""
    header = json.loads((folder / "run.json").read_text())
    judge = Judge("online", OF_ZNODES)
    log = ZnodeLog(
        judge,
        InterBrokerProtocol.parse(header["inter_broker_protocol"]),
        members_checked=header.get("ineligible_members_refused", True),
    )
    findings: list[Finding] = []
    for line in (folder / "zookeeper" / "log.jsonl").read_text().splitlines():
        findings += log.on_line(json.loads(line))
    return judge, findings + log.end(header["ended_at_ms"])


def counts(judge: Judge) -> dict[str, tuple[int, list[Finding]]]:
    assert not judge.crashes, judge.crashes
    return {rule: (tally.looked_at, tally.findings) for rule, tally in judge.tallies.items()}


@pytest.mark.parametrize(("rule", "case"), each(ZNODES_BAD))
def test_a_log_that_breaks_a_rule_is_found(rule: str, case: Case, tmp_path: Path) -> None:
    assert whole(case().write(tmp_path / "run")).tallies[rule].findings


@pytest.mark.parametrize(("rule", "case"), each(ZNODES_NEAR))
def test_a_near_miss_is_a_case_without_a_finding(rule: str, case: Case, tmp_path: Path) -> None:
    judge = whole(case().write(tmp_path / "run"))
    assert judge.tallies[rule].looked_at
    assert not [finding for tally in judge.tallies.values() for finding in tally.findings]


@pytest.mark.parametrize("name", [*CASES, *RECORDINGS])
def test_a_growing_log_is_judged_as_afterwards(name: str, tmp_path: Path) -> None:
    folder = tmp_path / "run"
    folder = CASES[name]().write(folder) if name in CASES else recorded(name, folder)
    judge, findings = live(folder)
    assert counts(judge) == counts(whole(folder))
    assert sorted(findings) == sorted(f for tally in judge.tallies.values() for f in tally.findings)


def test_topics_that_are_left_out_are_not_judged() -> None:
    run = k6_bad()
    judge = Judge("online", OF_ZNODES)
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
