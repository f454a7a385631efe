"""The rules about logs over whole runs of Apache Kafka: nothing is found, live neither."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from minicluster.verify import Report, Verdict
from minicluster.verify.evidence.reading import read_run
from minicluster.verify.live import LiveJudge
from minicluster.verify.model import Evidence
from minicluster.verify.rules.every import BY_ID
from tests.verify.check_run import OF_EACH_LOG, OF_LOGS, check_run
from tests.verify.in_process import verified

KAFKA_LOGS = Path(__file__).parents[1] / "data" / "kafka-logs"
RUNS = sorted(path.name for path in KAFKA_LOGS.iterdir() if path.is_dir())


@pytest.fixture(scope="module")
def real() -> Report:
    return verified(*(KAFKA_LOGS / name for name in RUNS))


def compare(live: LiveJudge, report: Report, run: str, rules: Sequence[str] = OF_LOGS) -> None:
    afterwards = sorted(one for one in report.findings if one.run == run and one.rule in rules)
    while_it_ran = sorted({one for one in live.findings if one.rule in rules})
    cases = {
        rule: looked_at
        for rule in rules
        for name, _, looked_at in report.rule(rule).by_run
        if name == run
    }

    assert while_it_ran == afterwards
    assert {rule: live.looked_at[rule] for rule in rules} == cases


@pytest.mark.parametrize("name", RUNS)
def test_a_log_of_kafka_is_judged_live_as_afterwards(name: str, real: Report) -> None:
    run = read_run(KAFKA_LOGS / name, name)
    apart = OF_EACH_LOG if len(run.nodes) > 1 else ()

    compare(check_run(run), real, name, [rule for rule in OF_LOGS if rule not in apart])


def test_no_log_of_kafka_is_called_invalid(real: Report) -> None:
    assert real.findings == ()
    assert real.valid


def test_every_log_rule_has_cases_in_kafkas_logs(real: Report) -> None:
    idle = [one.id for one in real.rules if one.id in OF_LOGS and not one.looked_at]

    assert idle == []


def test_rules_about_a_trace_do_not_apply_to_a_plain_log(real: Report) -> None:
    run_only = (Evidence.TRACE, Evidence.IMAGES, Evidence.META)
    others = {one.verdict for one in real.rules if BY_ID[one.id].evidence in run_only}

    assert others <= {Verdict.NOT_APPLICABLE}
