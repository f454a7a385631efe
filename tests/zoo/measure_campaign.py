"""``python -m tests.zoo.measure_campaign [FAULT…] [--seeds 40]``: seeds until a fault is found.

For each planted fault, alone, the seeds of ``chaos`` one after the other, until its primary rule
has found it or the seeds are over. A seed is judged while it plays, then as ``chaos`` judges it,
and by every rule if the fault has acted. The results go to ``campaign.json`` beside this file, the
source of the table in docs/zoo.md. A fault is measured again only by its name.
"""

from __future__ import annotations

import argparse
import json
import shutil
import tempfile
from collections.abc import Collection, Iterable
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from minicluster.actors.cluster.mini_cluster import MiniCluster
from minicluster.actors.cluster.run_folder import write_run
from minicluster.actors.play.campaign import broken_at_end
from minicluster.actors.play.player import idle_faults, play_once
from minicluster.rules import Rules
from minicluster.scenario.nemesis import generate
from minicluster.verify.evidence.scenario_failure import ScenarioFailure
from minicluster.verify.rules import RULES
from tests.verify.in_process import judged
from tests.zoo.table import MACHINES, PLANTS
from tests.zoo.test_cluster_faults import STORIES as PROGRAMS

RESULTS = Path(__file__).with_name("campaign.json")
OTHERS_MAX = 6  # more seeds at which other rules found a fault, and no primary one


@dataclass(frozen=True, slots=True)
class Found:
    """The outcome of a campaign against one fault.

    Shapes:  acted, found, primary: the first seed at which it did; None where none did. rules: what
             broke at the seed of ``found``.
    """

    tried: int = 0
    acted: int | None = None
    found: int | None = None
    primary: int | None = None
    rules: tuple[str, ...] = ()


def faults() -> dict[str, tuple[str, ...]]:
    """Every fault that a cluster can show, with its primary rules."""
    known = {plant.zoo: plant.primary for plant in PLANTS}
    known |= {zoo: (rule,) for zoo, (_, rule) in PROGRAMS.items()}
    known |= {zoo: tuple(rules.split()) for zoo, (rules, _) in MACHINES.items() if zoo[0] != "Y"}
    known.pop("Z51")  # on ZooKeeper
    return dict(sorted(known.items()))


def results() -> dict[str, Found]:
    """The results so far."""
    held = json.loads(RESULTS.read_text(encoding="utf-8")) if RESULTS.exists() else {}
    return {zoo: Found(**{**row, "rules": tuple(row["rules"])}) for zoo, row in held.items()}


def measure(
    fault: str,
    primary: Collection[str],
    seeds: Iterable[int],
) -> Found:
    """Play seeds with one fault until its primary rule has found it."""
    found, others = Found(), 0
    for seed in seeds:
        acted, broken = play_judged(fault, primary, seed)
        others += found.found is not None and bool(broken)
        found = replace(found, tried=found.tried + 1)
        if acted and found.acted is None:
            found = replace(found, acted=seed)
        if broken and found.found is None:
            found = replace(found, found=seed, rules=tuple(broken))
        if set(broken) & set(primary):
            found = replace(found, primary=seed)
        if found.primary is not None or others >= OTHERS_MAX:
            break
    return found


def play_judged(fault: str, primary: Collection[str], seed: int) -> tuple[bool, list[str]]:
    """Play one seed with a fault: the fault acted, and the rules that broke, the first one first.

    A run that a rule ended at once is not at rest, so of other rules only the primary ones count.
    """
    scenario = replace(generate(seed), faults=(fault,))
    cluster, failure = play_once(scenario, at_end=broken_at_end)
    broken = [] if failure is None else [failure.rule or failure.kind]
    is_bug = fault in Rules.zoo()  # of Kafka, whose acts are not counted
    acted = bool(broken) if is_bug else not idle_faults(cluster)
    if (acted or is_bug) and not set(broken) & set(primary):
        others = _judged(cluster, failure)
        broken += [rule for rule in others if failure is None or rule in primary]
    return acted or bool(broken), list(dict.fromkeys(broken))


def _judged(cluster: MiniCluster, failure: ScenarioFailure | None) -> list[str]:
    """The rules that a run breaks, of all that there are."""
    folder = Path(tempfile.mkdtemp(prefix="minicluster-campaign-"))
    try:
        run = write_run(cluster, folder / "run", failure=failure)
        found = judged(run, *(rule.id for rule in RULES))
        return [rule for rule, (_, messages) in found.items() if messages]
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def write(fault: str, found: Found) -> None:
    """Add the result of one fault to the file."""
    held = {**results(), fault: found}
    rows = [f' "{zoo}": {json.dumps(asdict(held[zoo]))}' for zoo in sorted(held)]
    RESULTS.write_text("{\n" + ",\n".join(rows) + "\n}\n", encoding="utf-8")


def main() -> None:
    """Measure the faults that are named, or all that have no result yet."""
    known = faults()
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("fault", nargs="*", help="ids of the zoo")
    parser.add_argument("--seeds", type=int, default=40, help="try seeds 1 to so many")
    given = parser.parse_args()
    for fault in given.fault or [zoo for zoo in known if zoo not in results()]:
        found = measure(fault, known[fault], range(1, given.seeds + 1))
        write(fault, found)
        print(fault, found, flush=True)


if __name__ == "__main__":
    main()
