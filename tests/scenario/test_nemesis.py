"""Scenarios drawn from seeds: what they keep to, and what becomes of a promise that is broken."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterable
from functools import cache, partial
from pathlib import Path

import pytest

from minicluster.actors.cluster.actions.processes import kill
from minicluster.actors.cluster.cluster import Cluster
from minicluster.actors.cluster.running import RunningCluster
from minicluster.actors.cluster.time_bounds import time_bounds
from minicluster.actors.nodes.config import ClusterConfig
from minicluster.actors.play import liveness
from minicluster.actors.play.campaign import (
    Tally,
    outcome_line,
    outcome_of,
    play_seed,
    shortest,
)
from minicluster.actors.play.player import cluster_of, play_once
from minicluster.cli import run
from minicluster.faults import Faults
from minicluster.protocol import ErrorCode
from minicluster.rules import Rules
from minicluster.scenario import Scenario
from minicluster.scenario.actions.answers import Respond
from minicluster.scenario.nemesis import KINDS, Draws, generate, seed_text
from minicluster.scenario.nemesis.draws import World
from minicluster.scenario.nemesis.generating import FOCUSED, _world
from minicluster.scenario.nemesis.sequences import SEQUENCES
from minicluster.scenario.reading import parse_scenario
from minicluster.scenario.scenario import Step, to_yaml
from minicluster.values import replace
from minicluster.verify.evidence.scenario_failure import ScenarioFailure
from minicluster.verify.model import Verdict
from minicluster.zoo.needs import NEEDS, needs_of
from minicluster.zookeeper.nemesis import KINDS_ON_ZOOKEEPER
from tests.scenario.drawn import short, short_seed, written

ROOT = Path(__file__).resolve().parents[2]


@cache
def drawn_by(seed: int) -> Scenario:
    """What a seed draws; several tests look at many seeds."""
    return generate(seed)


def methods(steps: Iterable[Step]) -> list[str]:
    """The actions of the steps, in their order."""
    return [step.action.method for step in steps if step.action is not None]


def test_a_seed_makes_one_scenario_in_every_process() -> None:
    code = "from tests.scenario.drawn import written; print(written(7))"
    texts = {
        subprocess.run(
            [sys.executable, "-c", code],
            env={**os.environ, "PYTHONHASHSEED": hash_seed},
            capture_output=True, text=True, check=True, cwd=ROOT,
        ).stdout.strip()
        for hash_seed in ("1", "2")
    }  # fmt: skip
    assert texts == {written(7)}


def test_answers_to_clients_are_what_a_node_may_say() -> None:
    """Those of a request that has taken effect leave its outcome open; a client may repeat all."""
    drawn = [step.action for seed in range(240) for step in drawn_by(seed).steps]
    given = [action for action in drawn if isinstance(action, Respond)]
    said = {(*action.api, *action.error, action.when) for action in given}
    assert {api for api, _, _ in said} >= {"Produce", "Fetch", "EndTxn"}
    for api, error, when in said:
        assert error == "REBALANCE_IN_PROGRESS" or ErrorCode[error].retriable, error
        if when == "after":
            assert api == "Produce"
            assert error in ("REQUEST_TIMED_OUT", "NOT_ENOUGH_REPLICAS_AFTER_APPEND")


def test_a_drawn_scenario_is_written_and_read_like_any_other() -> None:
    for seed in range(30):
        assert parse_scenario(written(seed)) == drawn_by(seed)


def test_over_some_seeds_every_kind_of_fault_is_drawn() -> None:
    actions = {method for seed in range(120) for method in methods(drawn_by(seed).steps)}
    assert {
        "isolate", "partition", "cut", "delay", "hold", "release", "bounce", "resign", "pause",
        "controlled_shutdown", "restart", "fail_dir", "repair_dir", "publish_delay", "slow_disk",
        "grant", "deny", "revoke",
        "snapshot", "compact", "create_topic", "delete_topic", "set_config", "elect", "loss",
        "duplicate", "produce", "liveness", "wipe", "remove_voter", "add_voter", "recreate_topic",
        "add_partitions", "reassign", "consume", "transaction", "reorder", "resume", "unregister",
        "transform", "clock_skew", "delete_records", "record", "replay", "flush_off", "wait",
        "respond", "drop_responses", "close_connections",
    } == actions  # fmt: skip
    assert len({kind.name for kind in KINDS}) == len(KINDS)


LOSSY = ("torn", "unflushed")


def test_only_the_victim_among_the_brokers_loses_its_tail() -> None:
    for seed in range(200):
        given = [step.to_dict() for step in drawn_by(seed).steps]
        lossy = {str(step["node"]) for step in given if step.get("lose_tail") in LOSSY}
        assert len([node for node in lossy if "broker" in node]) <= 1
        assert not any("leader" in node or "follower" in node for node in lossy)
        wiped = {step["node"] for step in given if step.get("do") == "wipe"}
        assert wiped <= {f"controller({drawn_by(seed).controllers - 1})"}
        assert not wiped or drawn_by(seed).config["kraft.version"] == 1
        assert not any(step.get("lose_tail") == "all" for step in given)


def test_sequences_come_in_their_order() -> None:
    """The second disturbance of a sequence is what makes the first one harmful."""
    names = {kind.name for kind in SEQUENCES}
    assert names <= {kind.name for kind in KINDS} and len(names) == len(SEQUENCES)
    world = World(brokers=4, controllers=5, log_dirs=1, victim=2, dynamic=False)
    for kind in SEQUENCES:
        drawn = [list(kind.steps(Draws(seed), kind.name, world)) for seed in range(20)]
        assert all(all(at_ms >= 0 for at_ms, _ in steps) for steps in drawn), kind.name
        assert max(map(len, drawn)) >= (1 if kind.name == "bridge" else 2), kind.name
    assert not list(SEQUENCES[5].steps(Draws(1), "ring", replace(world, controllers=3, brokers=3)))


def test_sequences_wait_for_the_timeouts_of_their_cluster() -> None:
    """A broker that is silent for less than its session is never fenced."""
    for kind in FOCUSED:
        for seed in range(10):
            world = World(brokers=3, controllers=3, log_dirs=2, victim=1, dynamic=True)
            slow = list(kind.steps(Draws(seed), kind.name, world))
            quick = replace(world, session_ms=2_000, lag_ms=3_000, request_ms=2_000)
            times = [at_ms for at_ms, _ in kind.steps(Draws(seed), kind.name, quick)]
            if len(times) == len(slow):  # else the pace decides what comes at all
                assert sum(times) <= sum(at_ms for at_ms, _ in slow), kind.name


def test_every_drawn_scenario_ends_in_liveness() -> None:
    for seed in range(50):
        assert methods(drawn_by(seed).steps).count("liveness") in (1, 2)
        last = methods(drawn_by(seed).steps[-2:])
        assert last[-1] == "liveness" or last == ["liveness", "wait"]


def test_some_seeds_end_with_a_stretch_in_which_every_promise_about_time_is_due() -> None:
    quiet = [seed for seed in range(100) if methods(drawn_by(seed).steps[-1:]) == ["wait"]]
    assert len(quiet) > 15
    for seed in quiet:
        scenario = drawn_by(seed)
        bounds = time_bounds(cluster_of(scenario).config)
        due = {*bounds} - ({"G12"} if "consume" not in methods(scenario.steps) else set())
        assert scenario.steps[-1].after_ms > max(bounds[name] for name in due), seed


def test_draws_hang_on_seed_and_name_only() -> None:
    first, second = Draws(3), Draws(3)
    second.fraction("something else")
    assert first.fraction("a") == second.fraction("a") != Draws(4).fraction("a")
    assert 100 <= first.between("b", 100, 3_000) <= 3_000
    counts = [Draws(seed).count("c", 2.0) for seed in range(400)]
    assert 1.7 < sum(counts) / len(counts) < 2.3


def test_a_seed_keeps_its_promises() -> None:
    outcome = play_seed(2, draw=short)
    assert outcome.failure is None, outcome.failure.text


def test_a_seed_plays_the_same_again() -> None:
    first, second = (outcome_of(short(6), with_observations=True) for _ in range(2))
    assert first.failure is None, first.failure.text
    assert first.trace_hash == second.trace_hash != ""
    assert first.observations == second.observations


def test_a_variation_draws_some_events_anew_and_leaves_the_others() -> None:
    changed = 0
    for seed in range(20):
        whole, varied = generate(seed), generate(seed, (1,))
        assert generate(seed, (1,)) == varied and parse_scenario(to_yaml(varied.to_dict()))
        shape = (whole.brokers, whole.controllers, whole.seed)
        assert (varied.brokers, varied.controllers, varied.seed) == shape
        texts, others = ({(step.at_ms, step.text) for step in s.steps} for s in (whole, varied))
        changed += texts != others and bool(texts & others)
        assert generate(seed, (1, 2)) != varied or seed_text(seed, (1, 2)) == f"{seed}.1.2"
    assert changed >= 15


NOISE = """
name: noise
cluster: {controllers: 1, brokers: 3, seed: 2}
faults: [Z05]
steps:
  - {do: create_topic, name: orders, min_isr: 2}
  - {at: 1s, do: delay, src: all, dst: all, mean: 5ms}
  - {at: 2s, do: kill, node: broker(3)}
  - {at: 3s, do: pause, node: broker(2), lasting: 2s}
  - {at: 4s, do: bounce, node: broker(1), down: 4s, lose_tail: unflushed}
  - {at: 20s, do: create_topic, name: other, replicas: 1, may_fail: true}
  - {at: 21s, do: create_topic, name: fenced, assignment: [[1, 2, 3]], may_fail: true}
  - {at: 22s, do: produce, topic: orders, count: 2}
  - {at: 25s, do: liveness}
"""


def test_a_broken_promise_shrinks_to_the_steps_that_break_it() -> None:
    """Z05: a new partition begins with fenced brokers in its ISR."""
    found = outcome_of(parse_scenario(NOISE))
    assert found.failure is not None
    assert (found.failure.kind, found.failure.rule) == ("violated", "A3")
    shrunk = shortest(found)
    assert methods(shrunk.steps) == ["kill", "create_topic"]
    again = outcome_of(replace(found.scenario, steps=shrunk.steps))
    assert again.failure is not None and again.failure.rule == "A3"


NEVER = """
name: never
cluster: {controllers: 1, brokers: 1, seed: 2}
faults: [Z41]
steps:
  - {do: create_topic, name: orders, replicas: 1}
"""


def test_a_fault_that_never_acted_proves_nothing() -> None:
    outcome = outcome_of(parse_scenario(NEVER))
    assert outcome.idle_faults == ("Z41",) and outcome.verdict is Verdict.UNKNOWN
    assert "unknown, for Z41 was on but never acted" in outcome_line(outcome)
    tally = Tally()
    tally.count(outcome)
    assert tally.verdict is Verdict.UNKNOWN and tally.lines() == ["1 seed, 0 failed, 1 unknown"]


def test_every_rule_judges_a_seed_and_a_fault_that_none_has_noticed_survives() -> None:
    """A7 is not judged while a cluster runs."""
    story = parse_scenario((ROOT / "tests" / "zoo" / "stale_incarnation.yaml").read_text())
    planted = replace(story, faults=("Z03",))
    found = outcome_of(planted)
    assert found.failure is not None and found.failure.rule == "A7"
    survived = outcome_of(planted, rules=())
    assert survived.survivors == ("Z03",) and survived.verdict is Verdict.UNKNOWN
    assert "a survivor: Z03 acted" in outcome_line(survived)
    tally = Tally()
    tally.count(survived)
    assert tally.lines() == ["1 seed, 0 failed, 1 with a survivor"]


def test_of_a_bug_of_kafkas_nobody_knows_whether_it_acted() -> None:
    outcome = outcome_of(replace(parse_scenario(UNSTEADY), faults=("Z52",)))
    assert outcome.unseen_faults == ("Z52",) and outcome.verdict is Verdict.UNKNOWN
    assert "nothing shows whether Z52 acted" in outcome_line(outcome)


def test_a_seed_of_a_fault_has_what_the_fault_needs() -> None:
    kinds = {kind.name for kind in (*KINDS, *KINDS_ON_ZOOKEEPER)}
    for fault, needs in NEEDS.items():
        assert {*needs.kinds} <= kinds
        assert fault in {*Faults.switches(), *Rules.zoo()}
        for seed in range(5):
            drawn = Draws(seed, (), needs)
            world = _world(drawn, drawn.flip("short timeouts"))
            fitting = [kind for kind in KINDS if kind.fits(world)]
            assert {*needs.kinds} <= {kind.name for kind in fitting}, fault
    both = needs_of(["Z57", "S41"])
    assert both.kinds == ("late acknowledgement",) and {"dynamic", "clients"} <= {*both.fixed}
    assert generate(7, needs=needs_of(["S29"])) == generate(7)


def test_a_seed_of_a_fault_is_drawn_for_it() -> None:
    """Of 29 seeds that were not, Z01 acted at none; of seven that are, it is found at three."""
    draw = partial(short, needs=needs_of(["Z01"]))
    found = (play_seed(seed, ("Z01",), draw=draw) for seed in range(5, 8))
    failure = next(outcome.failure for outcome in found if outcome.failure is not None)
    assert failure.rule in ("A1", "A3", "A7")


def test_a_campaign_names_the_first_seed_that_kills_a_fault() -> None:
    tally = Tally()
    for seed in (8, 9):
        scenario = replace(parse_scenario(NOISE), seed=seed)
        tally.count(outcome_of(replace(scenario, steps=scenario.steps[:7])))
    assert tally.verdict is Verdict.INVALID
    assert tally.lines() == ["2 seeds, 2 failed", "Z05 killed first at seed 8 by A3"]


UNSTEADY = """
name: unsteady
cluster: {controllers: 1, brokers: 3, seed: 2}
steps:
  - {do: create_topic, name: orders}
"""


def test_liveness_looks_again_at_what_came_true_before() -> None:
    """A broker dies while the cluster waits for the last promise."""
    _, failure = play_once(parse_scenario(UNSTEADY), at_end=converged)
    assert failure is not None and failure.rule == "G1"
    assert "broker 3 is down" in failure.text


def converged(cluster: RunningCluster) -> ScenarioFailure | None:
    looked: list[str] = []

    def stuck_at_first(_: Cluster) -> list[str]:
        looked.append("last")
        if len(looked) == 1:
            kill(cluster, 3)
            return ["not yet"]
        return []

    def held_promises(config: ClusterConfig, at_most_ms: int) -> tuple[liveness.Promise, ...]:
        last = liveness.Promise(id="G9", text="the last", bound_ms=500, stuck=stuck_at_first)
        alive = liveness.Promise(id="G1", text="alive", bound_ms=500, stuck=liveness.not_alive)
        return alive, last

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(liveness, "promises", held_promises)
        broken = liveness.converge(cluster, liveness.promises(cluster.config, 1_000))
    return None if broken is None else ScenarioFailure("stuck", str(broken), broken.promise.id)


STUCK = """
name: stuck
cluster: {controllers: 3, brokers: 3, seed: 2}
steps:
  - {do: create_topic, name: orders, min_isr: 2}
  - {do: kill, node: majority(controllers)}
  - {after: 12s, do: liveness, bound: 5ms}
"""


def test_liveness_names_what_is_stuck() -> None:
    found = outcome_of(parse_scenario(STUCK))
    assert found.failure is not None
    assert (found.failure.kind, found.failure.rule) == ("stuck", "G2")
    assert "after healing: controller 101 is Candidate of epoch 2" in found.failure.text


def test_the_command_plays_seeds_and_prints_how_many_failed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    seed = short_seed()
    seen = tmp_path / "seen.json"
    given = ["--seeds", str(seed), "--runs", str(tmp_path), "--coverage", str(seen)]
    assert run(["chaos", *given]) == 0
    printed = capsys.readouterr().out
    assert f"seed {seed}: kept its promises" in printed
    assert "refusals not seen: " in printed
    kinds = json.loads(seen.read_text())["kinds"]
    assert kinds["rules"]["seen"]["E20"] == str(seed)
    assert all(kind["seen"] for name, kind in kinds.items() if name != "refusals")
    assert run(["chaos", "--seeds", "7.x"]) == 64
    assert run(["chaos", "--seeds", "seven"]) == 64
