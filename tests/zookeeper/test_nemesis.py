"""Scenarios drawn for brokers on ZooKeeper: what they keep to, and what planted faults do there."""

from __future__ import annotations

import re
from functools import partial
from pathlib import Path

import pytest

from minicluster.actors.play.campaign import play_seed
from minicluster.actors.play.observations import KNOWN
from minicluster.actors.play.player import play
from minicluster.cli import run
from minicluster.scenario.reading import parse_scenario
from minicluster.scenario.scenario import to_yaml
from minicluster.verify.model import Verdict
from minicluster.zookeeper.nemesis import (
    KINDS_ON_ZOOKEEPER,
    LEVELS,
    UNCLEAN_TOPIC,
    generate_on_zookeeper,
)

KILLED = {  # fault: level, seed, rule
    "Z51": (None, 2, "K9"),
    "Y05": ("2.6", 0, "K3"),
    "Y06": ("2.6", 1, "K5"),
    "Y07": ("2.8", 12, "K12"),
    "Y08": ("2.8", 2, "K7"),
}


def test_a_drawn_scenario_is_written_and_read_like_any_other() -> None:
    for seed in range(4):
        drawn = generate_on_zookeeper(seed)
        assert parse_scenario(to_yaml(drawn.to_dict()).strip()) == drawn
        assert drawn.mode == "zookeeper"


def test_over_some_seeds_every_kind_of_fault_and_every_level_is_drawn() -> None:
    drawn = [generate_on_zookeeper(seed) for seed in range(40)]
    actions = {one.action.method for each in drawn for one in each.steps if one.action is not None}
    assert {
        "isolate", "partition", "cut", "delay", "hold", "release", "bounce", "pause",
        "controlled_shutdown", "restart", "fail_dir", "repair_dir", "create_topic", "delete_topic",
        "set_config", "elect", "loss", "produce", "liveness", "recreate_topic", "add_partitions",
        "reassign",
    } <= actions  # fmt: skip
    assert {each.inter_broker_protocol for each in drawn} == set(LEVELS)
    assert len({kind.name for kind in KINDS_ON_ZOOKEEPER}) == len(KINDS_ON_ZOOKEEPER)


def test_a_level_that_is_given_changes_nothing_else() -> None:
    drawn, given = generate_on_zookeeper(7), generate_on_zookeeper(7, protocol="3.2")
    assert given.inter_broker_protocol == "3.2"
    assert (drawn.steps, drawn.config) == (given.steps, given.config)


def test_only_records_of_which_nothing_is_promised_meet_unclean_leaders() -> None:
    for seed in range(10):
        for step in generate_on_zookeeper(seed).steps:
            given = {} if step.action is None else step.action.given
            if given.get("topic") == UNCLEAN_TOPIC:
                assert given["acks"] == "1"


@pytest.mark.parametrize(
    "fault", [pytest.param(one, marks=() if one == "Z51" else pytest.mark.slow) for one in KILLED]
)
def test_a_planted_fault_is_found_by_its_rule(fault: str) -> None:
    level, seed, rule = KILLED[fault]
    outcome = play_seed(seed, (fault,), draw=partial(generate_on_zookeeper, protocol=level))
    assert outcome.verdict is Verdict.INVALID
    assert outcome.failure is not None and outcome.failure.rule == rule


@pytest.mark.slow
@pytest.mark.parametrize("level", sorted({*LEVELS}))
def test_seeds_of_each_level_keep_their_promises(level: str) -> None:
    for seed in range(100, 115):
        outcome = play_seed(seed, draw=partial(generate_on_zookeeper, protocol=level))
        assert outcome.failure is None, f"seed {seed} at {level}: {outcome.failure}"


def test_a_campaign_on_zookeeper_is_an_option(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["chaos", "--seeds", "11", "--mode", "zookeeper", "--runs", str(tmp_path)]
    assert run([*words, "--inter-broker-protocol", "3.9"]) == 0
    out = capsys.readouterr().out
    assert "1 seed, 0 failed" in out
    [seen, of] = re.findall(r"^rules +(\d+) +(\d+) +11$", out, re.MULTILINE)[0]
    assert 8 <= int(seen) <= int(of) == len(KNOWN["zookeeper"]["rules"])


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (["--inter-broker-protocol", "3.9"], "only with --mode zookeeper"),
        (["--mode", "zookeeper", "--inter-broker-protocol", "4.0"], "outside of 2.6 to 3.9"),
    ],
)
def test_a_level_without_brokers_on_zookeeper_gets_one_line(
    words: list[str], why: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["chaos", *words]) == 64
    message = capsys.readouterr().err
    assert why in message and message.count("\n") == 1


def test_a_controller_that_wakes_after_its_session_writes_nothing_in_the_next_one(
    tmp_path: Path,
) -> None:
    """Seed 510, shrunk: nobody else was elected meanwhile, so the check of the epoch would pass."""
    scenario = parse_scenario(
        """
name: a paused controller
cluster:
  seed: 510
  mode: zookeeper
  inter_broker_protocol: "3.9"
  config:
    zookeeper.session.timeout.ms: 12000
    replica.lag.time.max.ms: 10000
    leader.imbalance.check.interval.seconds: 23
steps:
- {do: create_topic, name: alpha, min_isr: 2}
- {at: 10400ms, do: kill, node: broker(3)}
- {at: 14s, do: pause, node: broker(1), lasting: 12s}
- {at: 21400ms, do: partition, groups: [[broker(2), broker(3)], [broker(1), 201]], lasting: 7s}
- {at: 35s, do: liveness, bound: 3m}
"""
    )
    played = play(scenario, runs=tmp_path)
    assert played.failure is None, played.failure
