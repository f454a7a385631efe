"""The verdict words: what makes a rule and the whole valid, invalid or unknown."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from minicluster.errors import UserError
from minicluster.verify import Report, Verdict, verify
from minicluster.verify.images.publications import Publications
from minicluster.verify.rules.every import BY_ID, RULES
from minicluster.verify.rules.rule import Findings
from tests.verify.examples.controller import c6_near
from tests.verify.examples.replicas import b2_bad
from tests.verify.handwritten.log import change, cluster
from tests.verify.handwritten.run import RunBuilder
from tests.verify.in_process import verified

KAFKA_LOGS = Path(__file__).parents[1] / "data" / "kafka-logs"

Paths = dict[str, Path]


def broken() -> RunBuilder:
    return RunBuilder(cluster().op(change((2, 3))))


def with_header(**header: Any) -> RunBuilder:
    run = c6_near()
    run.header |= header
    return run


def without_a_table(run: RunBuilder) -> RunBuilder:
    run.left_out = {"publish"}
    return run


RUNS = {
    "clean": c6_near,
    "broken": broken,
    "exercises": lambda: with_header(exercises=["C6", "D3"]),
    "no-rule": lambda: with_header(exercises=["A99"]),
    "never-hit": lambda: with_header(faults=["S26"], hits={}),
    "hit": lambda: with_header(faults=["S26"], hits={"S26": 2}),
    "without-a-table": lambda: without_a_table(c6_near()),
    "broken-without-a-table": lambda: without_a_table(broken()),
    "of-the-trace": b2_bad,
    "published": lambda: RunBuilder(cluster()).committed().publish(1),
}


def damage(folder: Path, at: int) -> Path:
    """Flip one byte of the folder's first segment."""
    segment = next(folder.rglob("*.log"))
    content = bytearray(segment.read_bytes())
    content[at] ^= 0xFF
    segment.write_bytes(bytes(content))
    return folder


def crafted(folder: Path) -> Paths:
    """Every run and log that this file judges, by its name."""
    paths = {name: run().write(folder / name) for name, run in RUNS.items()}
    unreadable = RunBuilder(cluster()).committed().publish(1).write(folder / "unreadable")
    paths["unreadable"] = damage(unreadable, at=200)
    paths["damaged"] = damage(cluster().write(folder / "damaged"), at=200)
    divergent = shutil.copytree(KAFKA_LOGS / "divergent", folder / "one-of-three")
    damage(divergent / "controller-102", at=300)
    paths["one-of-three"] = divergent
    trimmed = folder / "trimmed"
    shutil.copytree(KAFKA_LOGS / "trimmed" / "controller-101", trimmed / "controller-101")
    for checkpoint in trimmed.rglob("*.checkpoint"):
        checkpoint.unlink()
    paths["trimmed"] = trimmed
    log = KAFKA_LOGS / "cluster" / "controller-101" / "__cluster_metadata-0"
    paths["later-segment"] = sorted(log.glob("*.log"))[1]
    paths["checkpoint"] = sorted(log.glob("*.checkpoint"))[5]
    return paths


@pytest.fixture(scope="module")
def paths(tmp_path_factory: pytest.TempPathFactory) -> Paths:
    return crafted(tmp_path_factory.mktemp("crafted"))


@pytest.fixture(scope="module")
def reports(paths: Paths) -> dict[str, Report]:
    """The report on each alone, from one job over all of them."""
    return dict(zip(paths, verified(*paths.values()).each, strict=True))


def test_a_clean_run_is_valid_and_ends_with_0(reports: dict[str, Report]) -> None:
    report = reports["clean"]

    assert (report.verdict, report.valid, report.exit_code) == (Verdict.VALID, True, 0)
    assert report.rule("D3").verdict is Verdict.NO_CASES
    assert report.rule("X1").verdict is Verdict.NO_CASES


def test_one_broken_rule_makes_the_whole_invalid(reports: dict[str, Report]) -> None:
    report = reports["broken"]

    assert (report.verdict, report.exit_code) == (Verdict.INVALID, 1)
    (finding,) = report.rule("E10").findings
    assert (finding.topic, finding.partition, finding.broker) == ("orders", 0, 1)
    assert [offset for offset, _ in report.around(finding)][-1] == finding.offset


def test_a_rule_that_must_be_exercised_and_has_no_cases_is_unknown(
    reports: dict[str, Report],
) -> None:
    report = reports["exercises"]

    assert report.rule("C6").verdict is Verdict.VALID
    assert report.rule("D3").verdict is Verdict.UNKNOWN
    assert report.verdict is Verdict.UNKNOWN
    assert "exercises D3" in report.to_text()


def test_a_rule_to_exercise_that_does_not_exist_is_reported(reports: dict[str, Report]) -> None:
    assert "A99, and there is no such rule" in reports["no-rule"].reasons[0]


@pytest.mark.parametrize(("run", "verdict"), [("never-hit", "unknown"), ("hit", "valid")])
def test_a_fault_that_was_never_hit_proves_nothing(
    run: str, verdict: str, reports: dict[str, Report]
) -> None:
    assert reports[run].verdict == verdict


def test_a_missing_table_leaves_its_rules_unknown_and_no_others(
    reports: dict[str, Report],
) -> None:
    report = reports["without-a-table"]

    unknown = [result.id for result in report.rules if result.verdict is Verdict.UNKNOWN]
    assert unknown == [rule.id for rule in RULES if "publish" in rule.tables]
    assert {"A5", "E32", "E33"} <= set(unknown)
    assert "publish.parquet" in report.rule("E32").reasons[0]
    assert (report.verdict, report.exit_code) == (Verdict.UNKNOWN, 2)


def test_a_finding_outweighs_missing_evidence(reports: dict[str, Report]) -> None:
    assert reports["broken-without-a-table"].verdict is Verdict.INVALID


def test_a_damaged_log_is_unknown(reports: dict[str, Report]) -> None:
    report = reports["damaged"]

    assert report.verdict is Verdict.UNKNOWN
    assert {report.rule(rule).verdict for rule in ("A1", "E01")} == {Verdict.UNKNOWN}


def test_a_run_without_a_readable_log_accuses_nobody(reports: dict[str, Report]) -> None:
    damaged = reports["unreadable"]

    assert reports["published"].rule("E33").verdict is Verdict.VALID
    assert damaged.rule("E33").verdict is Verdict.UNKNOWN  # nothing to compare the images with
    assert damaged.findings == ()
    assert damaged.verdict is Verdict.UNKNOWN


def test_one_damaged_log_of_three_spoils_the_verdict(reports: dict[str, Report]) -> None:
    assert reports["one-of-three"].verdict is Verdict.UNKNOWN


def test_a_log_without_its_snapshot_is_invalid_by_its_start_alone(
    reports: dict[str, Report],
) -> None:
    report = reports["trimmed"]

    assert [finding.rule for finding in report.findings] == ["E01"]
    assert report.rule("A1").verdict is Verdict.UNKNOWN


def test_a_later_segment_alone_is_unknown_but_for_its_structure(
    reports: dict[str, Report],
) -> None:
    report = reports["later-segment"]

    assert report.findings == ()
    assert report.verdict is Verdict.UNKNOWN
    assert report.rule("E01").verdict is Verdict.VALID


def test_a_checkpoint_is_judged_as_the_state_that_it_is(reports: dict[str, Report]) -> None:
    report = reports["checkpoint"]

    assert report.valid
    assert report.rule("A1").looked_at > 0
    assert report.rule("E14").verdict is Verdict.NO_CASES


@pytest.mark.spark
def test_each_report_is_part_of_the_whole_and_the_gravest_verdict_counts(
    tmp_path: Path, spark: object
) -> None:
    cluster().write(tmp_path / "good")
    cluster().op(change((2, 3))).write(tmp_path / "bad")
    report = verify(tmp_path / "good", tmp_path / "bad")

    assert report.verdict is Verdict.INVALID
    assert {name: str(word) for name, word, _ in report.rule("E10").by_run} == {
        "good": "valid",
        "bad": "invalid",
    }
    good, bad = report.each
    assert (good.verdict, bad.verdict) == (Verdict.VALID, Verdict.INVALID)
    assert (good.findings, bad.findings) == ((), report.findings)
    for whole, *alone in zip(report.rules, good.rules, bad.rules, strict=True):
        assert whole.looked_at == sum(result.looked_at for result in alone)
        assert whole.by_run == tuple(words for result in alone for words in result.by_run)


def test_a_rule_that_crashes_is_unknown_and_no_other(
    paths: Paths, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stumbles(step: object) -> Findings:
        raise ValueError("no such\ncolumn")
        yield

    rule = BY_ID["E10"]
    monkeypatch.setattr(rule, "parts", [(kind, stumbles) for kind, _ in rule.parts])
    report = verified(paths["clean"])

    assert report.rule("E10").verdict is Verdict.UNKNOWN
    assert report.rule("E10").reasons == ("clean: it crashed: ValueError: no such\ncolumn",)
    assert report.rule("E11").verdict is Verdict.VALID


def test_a_fold_that_crashes_leaves_its_rules_unknown(
    paths: Paths, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stumbles(fold: Publications, image: object) -> None:
        raise KeyError("no such row")

    monkeypatch.setattr(Publications, "on_event", stumbles)
    report = verified(paths["published"])

    assert report.rule("E32").verdict is Verdict.UNKNOWN
    assert "it crashed: KeyError" in report.rule("E32").reasons[0]
    assert report.rule("E10").verdict is Verdict.VALID


def test_only_the_requested_rules_are_judged(paths: Paths) -> None:
    report = verified(paths["clean"], rules=["E40", "A1"])

    assert [result.id for result in report.rules] == ["A1", "E40"]
    with pytest.raises(UserError, match="there is no rule 'Z9'"):
        verified(paths["clean"], rules=["Z9"])


def test_the_json_form_has_the_promised_fields(reports: dict[str, Report]) -> None:
    reported = json.loads(reports["broken"].to_json())

    assert reported["verdict"] == "invalid"
    assert [run["name"] for run in reported["runs"]] == ["broken"]
    rule = next(rule for rule in reported["rules"] if rule["id"] == "E10")
    assert {"id", "verdict", "looked_at", "findings"} <= rule.keys()
    assert rule["findings"] == [
        {
            "run": "broken",
            "offset": 10,
            "topic": "orders",
            "partition": 0,
            "broker": 1,
            "event": None,
            "request": None,
            "message": "leader 1 is not in the ISR [2, 3]",
        }
    ]


def test_the_page_is_self_contained_and_shows_what_was_found(
    reports: dict[str, Report],
) -> None:
    page = reports["broken"].to_html()

    assert "leader 1 is not in the ISR [2, 3]" in page
    assert page.count("<figure") == 2 and "orders-0" in page
    assert "http://" not in page and "https://" not in page and "<script" not in page


def test_the_text_puts_the_verdict_first_and_the_records_around_a_finding(
    reports: dict[str, Report],
) -> None:
    text = reports["broken"].to_text()

    assert text.startswith("INVALID ")
    assert ">     10  PartitionChange" in text
    assert "source: KIP-497" in text


def test_a_finding_of_the_trace_alone_has_no_place_in_the_log(reports: dict[str, Report]) -> None:
    report = reports["of-the-trace"]
    (finding,) = report.rule("B2").findings

    assert finding.offset == -1
    assert report.around(finding) == []
    text = "of-the-trace, orders-0, broker 1: leader 1 advanced its high watermark to 8"
    assert text in report.to_text()
    assert "advanced its high watermark" in report.to_html()


@pytest.mark.spark
def test_a_relative_path_is_that_of_the_caller(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, spark: object
) -> None:
    """Spark's workers have a working directory of their own."""
    broken().write(tmp_path / "runs" / "one")
    monkeypatch.chdir(tmp_path)
    assert verify("runs/one").each[0].rules == verify(tmp_path / "runs" / "one").each[0].rules
