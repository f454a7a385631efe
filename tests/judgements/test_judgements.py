"""The recorded judgements are those of today's judge, on a sample of every kind."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.judgements.__main__ import main
from tests.judgements.evidence import ALL_KINDS, SEEDS, subjects
from tests.judgements.judgement import Judgement, difference
from tests.judgements.judging import judged
from tests.judgements.kept import kept_in
from tests.judgements.record import read_record, write_record
from tests.verify.examples.every import EXAMPLES
from tests.verify.in_process import verified

SAMPLES = {
    "examples": [*subjects("examples")][::12],
    "zoo": [
        "tests/zoo/stopped_follower",
        "tests/zoo/stopped_follower S32",
        "tests/zoo/same_name S74",
        "program two_topics_are_deleted_by_one_request Z23",
    ],
    "logs": ["smoke", "divergent", "trimmed/controller-102", "zookeeper-runs/ibp-2.6"],
    "chaos": ["1"],
    "zookeeper": ["1"],
}


@pytest.mark.parametrize("kind", ALL_KINDS)
def test_a_sample_is_judged_as_recorded(kind: str) -> None:
    record, every = read_record(kind), subjects(kind)
    sample = {name: every[name] for name in SAMPLES[kind]}
    with kept_in(None) as kept:
        ((judgements, rules),) = judged(kind, sample, kept, verified, at_once=len(sample))
    assert judgements.keys() == sample.keys()
    assert [
        (name, *one)
        for name, after in judgements.items()
        for one in difference(record.judgements[name], after, record.rules, rules)
    ] == []


@pytest.mark.parametrize("kind", ["examples", "zoo", "logs"])
def test_every_subject_is_recorded(kind: str) -> None:
    assert read_record(kind).judgements.keys() == subjects(kind).keys()


@pytest.mark.parametrize("kind", SEEDS)
def test_every_seed_of_a_record_kept_its_promises(kind: str) -> None:
    """No fault is planted in them, so a finding accuses the innocent, or a cluster has a fault."""
    judgements = read_record(kind).judgements
    assert {seed: one for seed, one in judgements.items() if one["verdict"] != "valid"} == {}


def test_each_example_and_near_miss_of_a_rule_is_recorded_with_its_verdict() -> None:
    record = {
        name.partition(".")[2]: judgement
        for name, judgement in read_record("examples").judgements.items()
    }
    for example in EXAMPLES:
        judgement = record[example.name]
        for rule in example.rules:
            assert (rule.id in judgement.get("invalid", ())) is example.is_broken, example.name
            if not example.is_broken and example.has_cases:
                assert rule.id in judgement["valid"], example.name


def _with(**parts: object) -> Judgement:
    counts = {"cases": 3, "findings": 1, "places": "p", "events": "e", "first": "7 orders-0"}
    return {"verdict": "invalid", "valid": {"A1": 5}, "invalid": {"E10": counts}, **parts}


@pytest.mark.parametrize(
    ("after", "shown"),
    [
        (_with(), []),
        (_with(verdict="valid"), ["verdict"]),
        (_with(valid={"A1": 6}), []),
        (_with(valid={"A1": 0}), ["A1"]),
        (_with(valid={"A1": {"cases": 5, "not_promised": 1}}), ["A1"]),
        (_with(valid={}), ["A1"]),
        (_with(valid={}, unknown={"A1": 5}), ["A1"]),
        (_with(not_applicable="A2"), ["A2"]),
        (_with(invalid={"E10": _with()["invalid"]["E10"] | {"places": "q"}}), ["E10"]),
        (_with(invalid={"E10": _with()["invalid"]["E10"] | {"events": "f"}}), ["E10"]),
        ({"error": "RUN: gone"}, ["verdict", "error", "A1", "A2", "E10"]),
    ],
)
def test_what_differs_is_shown(after: Judgement, shown: list[str]) -> None:
    rules = ("A1", "A2", "E10")
    assert [rule for rule, _, _ in difference(_with(), after, rules, rules)] == shown


def test_a_rule_that_the_judge_has_no_longer_is_shown() -> None:
    assert [*difference({}, {}, ("A1", "A2"), ("A1",))] == [("A2", "no_cases", "absent")]


def test_the_command_ends_with_1_where_a_record_differs(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tests.judgements.judging.verify_runs", verified)
    arguments = ["--kind", "logs", "--only", "smoke", "--records", str(tmp_path / "records")]
    keep = str(tmp_path / "evidence")
    assert main(["record", *arguments, "--keep", keep]) == 0
    assert main(["compare", *arguments, "--kept", keep]) == 0
    record = read_record("logs", tmp_path / "records")
    assert record.judgements["smoke"]["valid"]["E01"]
    record.judgements["smoke"]["valid"]["E01"] = 0
    write_record("logs", record, tmp_path / "records")
    capsys.readouterr()
    assert main(["compare", *arguments]) == 1
    shown = capsys.readouterr().out.splitlines()
    assert shown[0] == "logs/smoke  E01  valid without a case -> valid"
