"""Sequences of disturbances that make planted faults visible, each alone in a small cluster."""

from __future__ import annotations

import pytest

from minicluster.durations import format_duration
from minicluster.scenario import Scenario
from minicluster.scenario.nemesis import KINDS, Draws
from minicluster.scenario.nemesis.draws import Step, World, replicated_load
from minicluster.scenario.nemesis.partition_sequences import PARTITION_SEQUENCES
from minicluster.scenario.reading import steps_of
from minicluster.values import replace
from tests.zoo.measure_campaign import ALL_RULES, faults, played_with

WORLD = World(
    brokers=3, controllers=1, log_dirs=1, victim=2, dynamic=False, session_ms=2_500, lag_ms=4_000,
    request_ms=3_000,
)  # fmt: skip
BY_NAME = {kind.name: kind for kind in KINDS}
SEEDS = range(1, 7)
SHOWN = (
    ("leads again unseen", "Z38"),
    ("ISR before its metadata", "Z15"),
    ("ISR before its metadata", "Z17"),
    ("empty while fenced", "Z04"),
    ("made anew while away", "Z44"),
    ("decides in vain", "Z61"),
    ("reads all again", "S48"),
    ("fences another", "S47"),
)


def scenario_of(name: str, seed: int, world: World) -> Scenario:
    """A kind of disturbance twice, and nothing else."""
    draws = Draws(seed)
    events = [
        (3_000 + 12_000 * n + after_ms, step)
        for n in range(2)
        for after_ms, step in BY_NAME[name].steps(draws, f"{name}/{n}", world)
    ]
    events.sort(key=lambda event: event[0])
    steps: list[Step] = [*replicated_load(draws)]
    if world.clients:
        load = {"do": "transaction", "topic": "alpha", "transactional_id": "t0", "rate": 1}
        steps.append({**load, "count": 2, "abort_every": 2})
    steps += [{"at": format_duration(at_ms), **step} for at_ms, step in events]
    last_ms = events[-1][0] + 5_000
    steps.append({"at": format_duration(last_ms), "do": "liveness", "bound": "180s"})
    config: dict[str, int] = {
        "broker.session.timeout.ms": world.session_ms,
        "broker.heartbeat.interval.ms": world.session_ms // 4,
        "replica.lag.time.max.ms": world.lag_ms,
        "request.timeout.ms": world.request_ms,
        "kraft.version": int(world.dynamic),
    }
    return Scenario(
        name="sequence", controllers=world.controllers, brokers=world.brokers, seed=seed,
        config=config, steps=steps_of(steps, name),
    )  # fmt: skip


def world_of(zoo: str) -> World:
    if zoo == "Z61":
        return replace(WORLD, controllers=3, dynamic=True)
    return replace(WORLD, clients=zoo in ("S47", "S48"))


@pytest.mark.slow
@pytest.mark.parametrize(("name", "zoo"), SHOWN, ids=[zoo for _, zoo in SHOWN])
def test_a_sequence_shows_a_fault_and_keeps_every_promise_without_it(name: str, zoo: str) -> None:
    primary = faults()[zoo]
    for seed in SEEDS:
        scenario = scenario_of(name, seed, world_of(zoo))
        run = played_with(scenario, (zoo,))
        if {*run.broken, *run.judged(primary)} & {*primary}:
            break
    else:
        pytest.fail(f"{zoo} is not seen at any seed")
    clean = played_with(scenario, ())
    assert clean.broken == [] and clean.judged(ALL_RULES) == []


def test_a_topic_of_a_sequence_promises_no_record() -> None:
    """Any of its replicas may lose what it holds, so nothing is sent to it with acks=all."""
    for kind in PARTITION_SEQUENCES:
        for seed in range(10):
            for _, step in kind.steps(Draws(seed), f"{kind.name}/0", WORLD):
                if step["do"] == "produce":
                    assert step["acks"] == "1" and step["topic"] not in ("alpha", "beta")


def test_a_kind_that_does_not_fit_a_cluster_changes_nothing_there() -> None:
    single = replace(WORLD, lag_ms=30_000)
    unfit = [kind for kind in KINDS if not kind.fits(single)]
    assert {kind.name for kind in unfit} >= {"directories fail", "voter leaves", "reads all again"}
    for kind in unfit:
        assert not any(list(kind.steps(Draws(seed), kind.name, single)) for seed in range(5))
