"""The controller machine under a random workload: no promise is broken, and what breaks is found.

The quick slice plays each release at each metadata.version; the full size is marked slow.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from minicluster.metadata.metadata_version import MetadataVersion
from minicluster.rules import Rules
from tests.workload.__main__ import main
from tests.workload.operations import Operation, generate
from tests.workload.player import Case, Finding, Player, play
from tests.workload.runs import cases, run, shrink_run

ROOT = Path(__file__).resolve().parents[2]
RELEASES = (Rules.KAFKA_4_3, Rules.KAFKA_3_9)
KIP_589 = Rules.named("kafka-4.3 failed_replicas_reported_by=alter_replica_state")
CASES = [
    *(case for rules in RELEASES for case in cases(rules, 1)),
    Case(rules=KIP_589),
    Case(rules=KIP_589, metadata_version=MetadataVersion.V3_6_IV2),
    Case(rules=KIP_589, elr=True),
]
QUICK, FULL = 500, 100_000
SLOW = pytest.mark.slow


def name_of(case: Case) -> str:
    return f"{case.rules.name}-{case.metadata_version}{'-elr' if case.elr else ''}".replace(
        " ", "-"
    )


def texts(findings: Sequence[Finding]) -> list[str]:
    return [finding.text for finding in findings]


@pytest.mark.parametrize("case", CASES, ids=name_of)
def test_no_promise_is_broken(case: Case) -> None:
    played = play(case, generate(case.seed, QUICK))
    assert texts(played.findings) == []
    assert played.operations == QUICK and played.records > QUICK // 3


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES, ids=name_of)
def test_no_promise_is_broken_by_a_hundred_thousand_operations(case: Case) -> None:
    """A hundred thousand in all, the same number for each case, several clusters each."""
    share = -(-FULL // len(CASES))
    runs = list(run([replace(case, seed=1_000)], share))
    assert [text for one in runs for text in texts(one.played.findings)] == []
    assert sum(one.played.operations for one in runs) == share


# Bugs of today's Kafka, turned on one at a time: the workload finds each and shrinks it.


@pytest.mark.parametrize(
    ("zoo_id", "seed", "rule", "most", "kinds"),
    [
        # An ELR is in the index, min.insync.replicas changes, the index keeps it.
        ("Z52", 6, "E41", 8, {"start", "create_topic", "config"}),
        # A topic goes whose partition has an empty ISR; its directory keeps it.
        pytest.param("Z53", 2, "E41", 8, {"start", "create_topic", "delete_topic"}, marks=SLOW),
        # A partition with an empty ISR loses its last candidates to a ClearElrRecord.
        ("Z54", 6, "E12", 8, {"start", "create_topic", "config"}),
        # A replica leaves the assignment and stays in the ELR.
        pytest.param("Z56", 3, "E13", 10, {"start", "create_topic", "reassign"}, marks=SLOW),
    ],
)
def test_a_bug_is_found_and_shrunk_to_the_steps_that_matter(
    zoo_id: str, seed: int, rule: str, most: int, kinds: set[str]
) -> None:
    case = Case(rules=Rules.KAFKA_4_3.with_bugs([zoo_id]), elr=True, seed=seed)
    operations = generate(seed, 800)
    found = play(case, operations).findings
    assert found and found[0].rule == rule
    shrunk = shrink_run(case, operations, found[0])
    assert shrunk.complete
    assert len(shrunk.steps) <= most, "\n".join(step.text for step in shrunk.steps)
    assert kinds <= {step.kind for step in shrunk.steps}
    again = play(case, shrunk.steps).findings
    assert [finding.rule for finding in again][:1] == [rule]
    assert play(replace(case, rules=Rules.KAFKA_4_3), shrunk.steps).findings == ()


def of(*steps: tuple[str, int, dict[str, Any]]) -> list[Operation]:
    """Operations written by hand: kind, seconds, arguments."""
    return [
        Operation(number=n, kind=kind, at_ms=second * 1_000, arguments=arguments)
        for n, (kind, second, arguments) in enumerate(steps)
    ]


def start(broker: int, second: int = 0) -> tuple[str, int, dict[str, Any]]:
    return "start", second, {"broker": broker, "clean": False}


def topic(*lists: tuple[int, ...], min_isr: str) -> tuple[str, int, dict[str, Any]]:
    configs = {"min.insync.replicas": min_isr}
    arguments = {"topic": "t0", "assignments": lists, "configs": configs, "validate_only": False}
    return "create_topic", 0, arguments


def min_isr(value: str, second: int) -> tuple[str, int, dict[str, Any]]:
    name = "min.insync.replicas"
    return "config", second, {"kind": "topic", "topic": "t0", "name": name, "value": value}


def in_directory(number: int) -> tuple[str, int, dict[str, Any]]:
    arguments = {"broker": 1, "directory": number, "topic": "t0", "stale": False}
    return "assign_directories", 0, arguments


def feature(up: int, second: int) -> tuple[str, int, dict[str, Any]]:
    return "feature", second, {"feature": "eligible.leader.replicas.version", "up": up}


BEAT: tuple[str, int, dict[str, Any]] = ("beat", 0, {})


@pytest.mark.parametrize(
    ("zoo_id", "operations"),
    [
        (
            "Z52",
            of(
                start(1),
                start(2),
                BEAT,
                topic((1, 2), min_isr="2"),
                ("heartbeat", 1, {"broker": 2, "want_fence": True, "behind": 0, "stale": False}),
                min_isr("1", 2),
                ("delete_topic", 3, {"topic": "t0"}),
                ("unregister", 4, {"broker": 2}),
            ),
        ),
        (
            "Z53",
            of(
                start(1),
                BEAT,
                topic((1,), min_isr="1"),
                in_directory(0),
                ("wait", 20, {}),
                ("delete_topic", 20, {"topic": "t0"}),
                BEAT,
                ("fail_directory", 21, {"broker": 1, "directory": 0}),
            ),
        ),
    ],
)
def test_a_stale_index_brings_the_controller_down_later(
    zoo_id: str, operations: list[Operation]
) -> None:
    case = Case(rules=Rules.KAFKA_4_3.with_bugs([zoo_id]), elr=True)
    assert play(case, operations).findings[0].rule == "E41"
    found = play(case, operations, only="E42").findings
    assert found and "UNKNOWN_SERVER_ERROR" in found[0].message
    assert play(replace(case, rules=Rules.KAFKA_4_3), operations).findings == ()


# What the workload found in our own machine, which followed Kafka in it; now fields of the rules.


def test_the_last_member_from_before_elr_is_remembered_when_it_restarts_uncleanly() -> None:
    operations = of(
        start(1), BEAT, topic((1,), min_isr="1"), ("wait", 20, {}), feature(1, 21), start(1, 30)
    )
    case = Case(metadata_version=MetadataVersion.V4_3_IV0)
    shipped = replace(case.rules, kept_member_is_forgotten=True)
    assert play(replace(case, rules=shipped), operations).findings[0].rule == "E12"

    player = Player(case)
    for operation in [*operations, *of(BEAT)]:
        assert texts(player.step(operation)) == []
    (_, _, partition), *_ = player.image.topics.partitions()
    assert partition.leader == 1 and partition.leader_recovery_state == 1


def test_nobody_stays_eligible_once_the_isr_is_as_large_as_it_must_be() -> None:
    operations = of(
        start(1),
        start(2),
        start(3),
        BEAT,
        topic((1, 2, 3), min_isr="3"),
        ("wait", 20, {}),
        min_isr("1", 21),
        BEAT,
    )
    case = Case(elr=True)
    shipped = replace(case.rules, elr_outlives_min_isr=True)
    assert play(replace(case, rules=shipped), operations).findings[0].rule == "E13"
    assert texts(play(case, operations).findings) == []


def test_a_heartbeat_that_unfences_a_broker_elects_nobody_in_a_directory_that_it_calls_lost() -> (
    None
):
    operations = of(
        start(1),
        BEAT,
        topic((1,), min_isr="1"),
        in_directory(0),
        ("mute", 1, {"broker": 1}),
        ("fail_directory", 20, {"broker": 1, "directory": 0}),
        ("unmute", 21, {"broker": 1}),
        ("heartbeat", 22, {"broker": 1, "want_fence": False, "behind": 0, "stale": False}),
    )
    for shipped, leader in ((True, 1), (False, -1)):
        rules = replace(Rules.KAFKA_4_3, unfencing_ignores_lost_dirs=shipped)
        player = Player(Case(rules=rules), log_rules=False)
        for operation in operations:
            assert texts(player.step(operation)) == []
        (_, _, partition), *_ = player.image.topics.partitions()
        assert partition.leader == leader


def test_a_last_member_may_be_kept_once_elr_is_turned_off() -> None:
    operations = of(
        start(1),
        start(2),
        BEAT,
        topic((1, 2), min_isr="1"),
        ("heartbeat", 1, {"broker": 2, "want_fence": True, "behind": 0, "stale": False}),
        feature(-1, 2),
        ("wait", 30, {}),
    )
    player = Player(Case(elr=True))
    for operation in operations:
        assert texts(player.step(operation)) == []
    (_, _, partition), *_ = player.image.topics.partitions()
    assert (partition.isr, partition.leader) == ((1,), -1)


# The workload itself.


def test_an_operation_is_drawn_from_its_own_seed() -> None:
    short, long = generate(3, 100), generate(3, 200)
    assert long[:100] == short
    assert generate(4, 100) != short


def test_a_run_does_not_depend_on_the_order_of_hashes() -> None:
    command = [sys.executable, "-m", "tests.workload", "--operations", "800", "--length", "400"]
    command += ["--metadata-version", "4.3-IV0", "--rules", "kafka-4.3", "--digests"]
    printed = [
        subprocess.run(
            command,
            cwd=ROOT,
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    ]
    assert printed[0] == printed[1]
    assert len(printed[0].splitlines()) == 3


def test_the_command_prints_a_finding_and_how_to_repeat_it(
    capsys: pytest.CaptureFixture[str],
) -> None:
    words = ["--seed", "2", "--rules", "kafka-4.3", "--metadata-version", "4.3-IV0", "--elr"]
    words += ["--operations", "800", "--length", "800", "--faults", "Z53"]
    assert main(words) == 1
    first, repeat, total = capsys.readouterr().out.splitlines()
    assert first.startswith("E41 after #") and total.endswith("1 findings")
    assert main(repeat.split()[4:]) == 1
    assert capsys.readouterr().out.splitlines()[0] == first


def test_the_command_refuses_unknown_arguments(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--faults", "Z99"]) == 2
    assert main(["--bugs", "no_such_bug"]) == 2
    assert "Z99" in capsys.readouterr().err
