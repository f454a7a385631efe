"""The evidence of each kind, made again wherever it is needed: examples, stories, logs, seeds.

A subject is a function that leaves its evidence in a new folder, of which it is the owner.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cache, partial
from inspect import getmembers, isfunction
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from minicluster.actors.cluster.run_folder import write_run
from minicluster.actors.cluster.running import RunningCluster
from minicluster.actors.play.campaign import broken_at_end
from minicluster.actors.play.player import play, play_once, run_name
from minicluster.log.directory import METADATA_DIRECTORY
from minicluster.scenario import Scenario, load_scenario
from minicluster.scenario.nemesis import generate
from minicluster.values import replace
from minicluster.zookeeper.nemesis import generate_on_zookeeper
from tests.verify import logs_beside_rules, test_verdicts
from tests.verify.damaged_runs import FILE_DAMAGE, FOREIGN, Damage, saved_run, sign
from tests.verify.examples.every import EXAMPLES
from tests.verify.recordings import RECORDINGS, recorded
from tests.zoo import test_cluster_faults as programs
from tests.zoo.table import NEVER_HIT, PLANTS, STORIES
from tests.zoo.table import ROOT as REPOSITORY

KAFKA_LOGS = REPOSITORY / "tests" / "data" / "kafka-logs"
SEEDS = {"chaos": range(1, 61), "zookeeper": range(1, 21)}


@dataclass(frozen=True)
class Evidence:
    """Evidence on disk, and what the checker of the cluster had counted, where one ran."""

    path: Path
    live: Mapping[str, int] | None = None


Subject = Callable[[Path], Evidence]


def subjects(kind: str, seeds: Iterable[int] | None = None) -> dict[str, Subject]:
    """The subjects of a kind by name; seeds: those that are played, None for all of the record."""
    if kind in SEEDS:
        draw = generate if kind == "chaos" else generate_on_zookeeper
        numbers = SEEDS[kind] if seeds is None else seeds
        return {str(seed): partial(_seed, draw, seed) for seed in numbers}
    return KINDS[kind]()


# --- examples ------------------------------------------------------------------------------------


def examples() -> dict[str, Subject]:
    """Each example of a rule, other logs and runs written by hand, and damaged run folders."""
    by_hand = {example.name: example.build for example in EXAMPLES}
    by_hand |= dict(getmembers(logs_beside_rules, _is_builder))
    builders: dict[str, Callable[[], Any]] = {
        f"{build.__module__.rpartition('.')[2]}.{name}": build for name, build in by_hand.items()
    }
    builders |= {f"test_verdicts.{name}": build for name, build in test_verdicts.RUNS.items()}
    found: dict[str, Subject] = {name: partial(_written, build) for name, build in builders.items()}
    damages: dict[str, Damage] = {
        **FILE_DAMAGE,
        **{f"foreign.{name}": partial(_foreign, name) for name in FOREIGN},
    }
    found["damaged.not"] = partial(_damaged, lambda run: None)
    for name, damage in damages.items():
        found[f"damaged.{name}"] = partial(_damaged, damage)
    return found


def _is_builder(value: object) -> bool:
    """A function of ``logs_beside_rules`` itself."""
    return isfunction(value) and value.__module__ == logs_beside_rules.__name__


def _written(build: Callable[[], Any], folder: Path) -> Evidence:
    return Evidence(build().write(folder))


@cache
def _whole_run() -> tuple[Path, TemporaryDirectory[str]]:
    """A run to be damaged, played once; its folder goes with this process."""
    folder = TemporaryDirectory()
    return saved_run(Path(folder.name) / "run"), folder


def _damaged(damage: Damage, folder: Path) -> Evidence:
    shutil.copytree(_whole_run()[0], folder, dirs_exist_ok=True)
    damage(folder)
    return Evidence(folder)


def _foreign(name: str, run: Path) -> None:
    damage, _ = FOREIGN[name]
    damage(run)
    if "column" in name or "range" in name:  # its other kinds of damage are seen by the header
        sign(run)


# --- the zoo -------------------------------------------------------------------------------------


def zoo() -> dict[str, Subject]:
    """Each story of the zoo, without a fault and with each of its faults."""
    found: dict[str, Subject] = {}
    for story in STORIES:
        found[story] = partial(_story, story, ())
    for plant in (*PLANTS, NEVER_HIT):
        found[f"{plant.story} {plant.zoo}"] = partial(_story, plant.story, (plant.zoo,))
    for name, program in programs.PLAIN.items():
        found[f"program {name}"] = partial(_program, program, ())
    for zoo_id, (program, _) in programs.STORIES.items():
        found[f"program {program.__name__} {zoo_id}"] = partial(_program, program, (zoo_id,))
    return found


def _story(story: str, faults: tuple[str, ...], folder: Path) -> Evidence:
    scenario = replace(load_scenario(REPOSITORY / f"{story}.yaml"), faults=faults)
    return Evidence(play(scenario, runs=folder).path)


def _program(program: programs.Story, faults: tuple[str, ...], folder: Path) -> Evidence:
    return Evidence(programs.played(folder, "run", program, faults))


# --- logs of Apache Kafka ------------------------------------------------------------------------


def logs() -> dict[str, Subject]:
    """Each run of Kafka, each of its controllers, segments and checkpoints alone; recordings."""
    found: dict[str, Subject] = {}
    for run in sorted(path for path in KAFKA_LOGS.iterdir() if path.is_dir()):
        controllers = sorted(run.glob("controller-*"))
        alone = controllers if len(controllers) > 1 else []
        files = [
            file
            for controller in controllers
            for pattern in ("*.log", "*.checkpoint")
            for file in sorted((controller / METADATA_DIRECTORY).glob(pattern))
        ]
        for path in (run, *alone, *files):
            inner = path.relative_to(KAFKA_LOGS)
            found[inner.as_posix()] = partial(_of_kafka, inner)
    for name in RECORDINGS:
        found[f"zookeeper-runs/{name}"] = partial(_recorded, name)
    return found


def _of_kafka(inner: Path, folder: Path) -> Evidence:
    """A copy of the log, in folders of the same names."""
    source, target = KAFKA_LOGS / inner, folder / inner
    target.parent.mkdir(parents=True, exist_ok=True)
    if source.is_file():
        shutil.copyfile(source, target)
    else:
        shutil.copytree(source, target, ignore=shutil.ignore_patterns("dump*", "steps*"))
    return Evidence(target)


def _recorded(name: str, folder: Path) -> Evidence:
    return Evidence(recorded(name, folder))


KINDS: dict[str, Callable[[], dict[str, Subject]]] = {
    "examples": examples,
    "zoo": zoo,
    "logs": logs,
}
ALL_KINDS = (*KINDS, *SEEDS)


# --- seeds ---------------------------------------------------------------------------------------


def _seed(draw: Callable[[int], Scenario], seed: int, folder: Path) -> Evidence:
    scenario = draw(seed)
    cluster, failure = play_once(scenario, at_end=broken_at_end)
    path = write_run(cluster, folder / run_name(scenario), failure=failure)
    return Evidence(path, live_cases(cluster))


def live_cases(cluster: RunningCluster) -> dict[str, int]:
    """The cases of each rule in the checkers of a cluster that has ended.

    The first finding of a checker ends the run, and is the failure of its scenario.
    """
    checks = cluster.live_checks
    assert checks is not None
    cases = {rule: number for rule, number in checks.looked_at.items() if number}
    return dict(sorted(cases.items()))
