"""The verdict words: what makes a rule and the whole valid, invalid or unknown."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from minicluster.errors import UserError
from minicluster.verify import Report, Verdict, verify
from minicluster.verify.rules import RULES
from minicluster.verify.rules.model import View
from minicluster.verify.spark import queries
from tests.verify.build import change, cluster
from tests.verify.build_run import RunBuilder
from tests.verify.trace_cases import b2_bad, c6_near

pytestmark = pytest.mark.spark

KAFKA_LOGS = Path(__file__).parents[1] / "data" / "kafka-logs"


@pytest.fixture(autouse=True)
def _session(spark: object) -> None:
    """Every test here asks Spark."""


def judged(folder: Path, run: RunBuilder | None = None, **options: Any) -> Report:
    return verify((run or c6_near()).write(folder / "r"), **options)


def test_a_clean_run_is_valid_and_ends_with_0(tmp_path: Path) -> None:
    report = judged(tmp_path)

    assert (report.verdict, report.valid, report.exit_code) == (Verdict.VALID, True, 0)
    assert report.rule("D3").verdict is Verdict.NO_CASES
    assert report.rule("X1").verdict is Verdict.NO_CASES


def test_one_broken_rule_makes_the_whole_invalid(tmp_path: Path) -> None:
    report = judged(tmp_path, RunBuilder(cluster().op(change((2, 3)))))

    assert (report.verdict, report.exit_code) == (Verdict.INVALID, 1)
    (finding,) = report.rule("E10").findings
    assert (finding.topic, finding.partition, finding.broker) == ("orders", 0, 1)
    assert [offset for offset, _ in report.around(finding)][-1] == finding.offset


def test_a_rule_that_must_be_exercised_and_has_no_cases_is_unknown(tmp_path: Path) -> None:
    run = c6_near()
    run.header["exercises"] = ["C6", "D3"]
    report = judged(tmp_path, run)

    assert report.rule("C6").verdict is Verdict.VALID
    assert report.rule("D3").verdict is Verdict.UNKNOWN
    assert report.verdict is Verdict.UNKNOWN
    assert "exercises D3" in report.to_text()


def test_a_rule_to_exercise_that_does_not_exist_is_reported(tmp_path: Path) -> None:
    run = c6_near()
    run.header["exercises"] = ["A99"]

    assert "A99, which is no rule" in judged(tmp_path, run).reasons[0]


@pytest.mark.parametrize(("hits", "verdict"), [({}, Verdict.UNKNOWN), ({"S26": 2}, Verdict.VALID)])
def test_a_fault_that_was_never_hit_proves_nothing(
    hits: dict[str, int], verdict: Verdict, tmp_path: Path
) -> None:
    run = c6_near()
    run.header |= {"faults": ["S26"], "hits": hits}

    assert judged(tmp_path, run).verdict is verdict


def test_a_missing_table_leaves_its_rules_unknown_and_no_others(tmp_path: Path) -> None:
    run = c6_near()
    run.left_out = {"publish"}
    report = judged(tmp_path, run)

    unknown = [result.id for result in report.rules if result.verdict is Verdict.UNKNOWN]
    assert unknown == [rule.id for rule in RULES if "publish" in rule.tables]
    assert {"A5", "E32", "E33"} <= set(unknown)
    assert "publish.parquet" in report.rule("E32").reasons[0]
    assert (report.verdict, report.exit_code) == (Verdict.UNKNOWN, 2)


def test_a_finding_outweighs_missing_evidence(tmp_path: Path) -> None:
    run = RunBuilder(cluster().op(change((2, 3))))
    run.left_out = {"publish"}

    assert judged(tmp_path, run).verdict is Verdict.INVALID


def test_a_damaged_log_is_unknown(tmp_path: Path) -> None:
    cluster().write(tmp_path)
    segment = next(tmp_path.rglob("*.log"))
    content = bytearray(segment.read_bytes())
    content[200] ^= 0xFF
    segment.write_bytes(bytes(content))
    report = verify(tmp_path)

    assert report.verdict is Verdict.UNKNOWN
    assert {report.rule(rule).verdict for rule in ("A1", "E01")} == {Verdict.UNKNOWN}


def test_a_run_without_a_readable_log_accuses_nobody(tmp_path: Path) -> None:
    run = RunBuilder(cluster()).committed().publish(1)
    clean, damaged = run.write(tmp_path / "clean"), run.write(tmp_path / "damaged")
    segment = next(damaged.rglob("*.log"))
    content = bytearray(segment.read_bytes())
    content[200] ^= 0xFF
    segment.write_bytes(bytes(content))
    report = verify(clean, damaged)

    assert report.rule("E33").verdict is Verdict.UNKNOWN  # all it says is not in that log
    assert [word for _, word, _ in report.rule("E33").by_run] == [Verdict.VALID, Verdict.UNKNOWN]
    assert [result.rule.id for result in report.rules if result.findings] == []
    assert report.verdict is Verdict.UNKNOWN


def test_one_damaged_log_of_three_spoils_the_verdict(tmp_path: Path) -> None:
    shutil.copytree(KAFKA_LOGS / "divergent", tmp_path / "d")
    segment = next((tmp_path / "d" / "controller-102").rglob("*.log"))
    content = bytearray(segment.read_bytes())
    content[300] ^= 0xFF
    segment.write_bytes(bytes(content))

    assert verify(tmp_path / "d").verdict is Verdict.UNKNOWN


def test_a_log_without_its_snapshot_is_invalid_by_its_start_alone(tmp_path: Path) -> None:
    shutil.copytree(KAFKA_LOGS / "trimmed" / "controller-101", tmp_path / "controller-101")
    for checkpoint in (tmp_path / "controller-101").rglob("*.checkpoint"):
        checkpoint.unlink()
    report = verify(tmp_path)

    assert [finding.rule for finding in report.findings] == ["E01", "E09"]
    assert report.rule("A1").verdict is Verdict.UNKNOWN


def test_a_later_segment_alone_is_unknown_but_for_its_structure() -> None:
    folder = KAFKA_LOGS / "cluster" / "controller-101" / "__cluster_metadata-0"
    report = verify(sorted(folder.glob("*.log"))[1])

    assert report.findings == ()
    assert report.verdict is Verdict.UNKNOWN
    assert report.rule("E01").verdict is Verdict.VALID


def test_a_checkpoint_is_judged_as_the_state_that_it_is() -> None:
    folder = KAFKA_LOGS / "cluster" / "controller-101" / "__cluster_metadata-0"
    report = verify(sorted(folder.glob("*.checkpoint"))[5])

    assert report.valid
    assert report.rule("A1").looked_at > 0
    assert report.rule("E14").verdict is Verdict.NO_CASES


def test_the_gravest_verdict_of_several_runs_counts(tmp_path: Path) -> None:
    cluster().write(tmp_path / "good")
    cluster().op(change((2, 3))).write(tmp_path / "bad")
    report = verify(tmp_path / "good", tmp_path / "bad")

    assert report.verdict is Verdict.INVALID
    assert {name: str(word) for name, word, _ in report.rule("E10").by_run} == {
        "good": "valid",
        "bad": "invalid",
    }


def test_a_query_that_crashes_leaves_its_rules_unknown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken = View(name="topic_states", sql="select no_such_column from topics")
    monkeypatch.setitem(queries.VIEWS, "topic_states", broken)
    report = judged(tmp_path)

    assert report.rule("E25").verdict is Verdict.UNKNOWN
    assert "it crashed" in report.rule("E25").reasons[0]
    assert report.rule("E10").verdict is Verdict.VALID


def test_only_the_requested_rules_are_judged(tmp_path: Path) -> None:
    report = judged(tmp_path, rules=["E40", "A1"])

    assert [result.id for result in report.rules] == ["A1", "E40"]
    with pytest.raises(UserError, match="'Z9' is no rule"):
        verify(tmp_path / "r", rules=["Z9"])


def test_the_json_form_has_the_promised_fields(tmp_path: Path) -> None:
    report = judged(tmp_path, RunBuilder(cluster().op(change((2, 3)))))
    reported = json.loads(report.to_json())

    assert reported["verdict"] == "invalid"
    assert [run["name"] for run in reported["runs"]] == ["r"]
    rule = next(rule for rule in reported["rules"] if rule["id"] == "E10")
    assert {"id", "verdict", "looked_at", "findings"} <= rule.keys()
    assert rule["findings"] == [
        {
            "run": "r",
            "offset": 10,
            "topic": "orders",
            "partition": 0,
            "broker": 1,
            "message": "leader 1 is not in the ISR [2, 3]",
        }
    ]


def test_the_page_is_self_contained_and_shows_what_was_found(tmp_path: Path) -> None:
    page = judged(tmp_path, RunBuilder(cluster().op(change((2, 3))))).to_html()

    assert "leader 1 is not in the ISR [2, 3]" in page
    assert page.count("<figure") == 1 and "orders-0" in page
    assert "http://" not in page and "https://" not in page and "<script" not in page


def test_the_text_puts_the_verdict_first_and_the_records_around_a_finding(tmp_path: Path) -> None:
    text = judged(tmp_path, RunBuilder(cluster().op(change((2, 3))))).to_text()

    assert text.startswith("INVALID ")
    assert ">     10  PartitionChange" in text
    assert "source: KIP-497" in text


def test_a_finding_of_the_trace_alone_has_no_place_in_the_log(tmp_path: Path) -> None:
    report = judged(tmp_path, b2_bad(), rules=["B2"])
    (finding,) = report.findings

    assert finding.offset == -1
    assert report.around(finding) == []
    assert "r, orders-0, broker 1: leader 1 advanced its high watermark to 8" in report.to_text()
    assert "advanced its high watermark" in report.to_html()
