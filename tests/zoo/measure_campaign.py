"""``python -m tests.zoo.measure_campaign [FAULT…] [--seeds 1-40]``: seeds that find a fault.

Every planted fault meets the first seed of ``chaos``, then those that no primary rule has found
meet the second, and so on, so that the table is of use wherever it ends. A seed is judged while
it plays, then as ``chaos`` judges it, and by other rules where the fault has acted. The results go
to ``campaign.json`` beside this file, the source of the table in docs/reference/zoo.md; the next
call plays what is left. Faults that are named meet the seeds alone.

Few faults act at every seed. Those that seldom do are planted all at once, with Kafka's own, whose
acts are not counted: where nothing acted and nothing broke, each of them alone would have been
idle. The others are then played alone.
"""

from __future__ import annotations

import argparse
import json
import shutil
import tempfile
from collections.abc import Callable, Collection, Iterable
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path

from minicluster.actors.cluster.run_folder import write_run
from minicluster.actors.cluster.running import RunningCluster
from minicluster.actors.play.campaign import broken_at_end
from minicluster.actors.play.player import play_once
from minicluster.rules import Rules
from minicluster.scenario import Scenario
from minicluster.scenario.nemesis import generate
from minicluster.values import replace
from minicluster.verify.evidence.scenario_failure import ScenarioFailure
from minicluster.verify.live import is_judged_live
from minicluster.verify.rules.every import BY_ID, RULES
from tests.verify.in_process import judged
from tests.zoo.table import MACHINES, PLANTS
from tests.zoo.test_cluster_faults import STORIES as PROGRAMS

RESULTS = Path(__file__).with_name("campaign.json")
SELDOM = 0.35  # of the seeds
AT_ONCE_MAX = 45  # faults of one run: they are in its name
JUDGED_BY_ALL = 3  # acts that every rule looks at; then the primary ones alone
BUGS = frozenset(Rules.zoo())  # of Kafka, whose acts are not counted
ALL_RULES = tuple(rule.id for rule in RULES)


@dataclass(frozen=True, slots=True)
class Found:
    """The outcome of a campaign against one fault.

    Shapes:  tried: the seeds, in order; acts: at how many of them it acted; acted, found, primary:
             the first of them at which it did, None where none did; rules: what broke at the seed
             of ``found``.
    """

    tried: tuple[int, ...] = ()
    acts: int = 0
    acted: int | None = None
    found: int | None = None
    primary: int | None = None
    rules: tuple[str, ...] = ()

    @property
    def is_seldom(self) -> bool:
        """True for a fault that acts at few seeds."""
        return self.acts <= SELDOM * len(self.tried)

    def after(self, seed: int, acted: bool, broken: list[str], primary: Collection[str]) -> Found:
        """The outcome with one seed more."""
        more = replace(self, tried=tuple(sorted({*self.tried, seed})), acts=self.acts + acted)
        if acted:
            more = replace(more, acted=min(seed, more.acted or seed))
        if broken and seed <= (more.found or seed):
            more = replace(more, found=seed, rules=tuple(broken))
        if set(broken) & set(primary):
            more = replace(more, primary=min(seed, more.primary or seed))
        return more


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
    lists = ("tried", "rules")
    return {zoo: Found(**row | {n: tuple(row[n]) for n in lists}) for zoo, row in held.items()}


@dataclass(frozen=True, slots=True)
class Played:
    """A run of a seed with some faults: those that acted, and what broke while it ran."""

    cluster: RunningCluster
    failure: ScenarioFailure | None
    hits: frozenset[str]

    @property
    def broken(self) -> list[str]:
        """The rule that ended the run, or the kind of its failure."""
        return [] if self.failure is None else [self.failure.rule or self.failure.kind]

    def judged(self, rules: Iterable[str]) -> list[str]:
        """Those of some rules that the run breaks."""
        folder = Path(tempfile.mkdtemp(prefix="minicluster-campaign-"))
        try:
            run = write_run(self.cluster, folder / "run", failure=self.failure)
            found = judged(run, *rules)
            return [rule for rule, (_, messages) in found.items() if messages]
        finally:
            shutil.rmtree(folder, ignore_errors=True)


def play(seed: int, planted: Iterable[str]) -> Played:
    """Play one seed with some faults."""
    return played_with(generate(seed), planted)


def played_with(scenario: Scenario, planted: Iterable[str]) -> Played:
    """Play a scenario with some faults."""
    scenario = replace(scenario, faults=tuple(planted))
    cluster, failure = play_once(scenario, at_end=broken_at_end)
    hits = cluster.recorder.fault_hits
    return Played(
        cluster, failure, frozenset(fault for fault in scenario.faults if hits.get(fault))
    )


@cache
def rules_of_plain(seed: int) -> frozenset[str]:
    """The rules that a seed breaks without any fault: a false alarm, which finds nothing."""
    return frozenset(play(seed, ()).judged(ALL_RULES))


def play_judged(
    fault: str, primary: Collection[str], seed: int, by_all: bool = True
) -> tuple[bool, list[str]]:
    """Play one seed with a fault: the fault acted, and the rules that broke, the first one first.

    A run that a rule ended at once is not at rest, so of other rules only the primary ones count.
    """
    played = play(seed, (fault,))
    broken, acted = played.broken, bool(played.hits)
    if (acted or fault in BUGS) and not set(broken) & set(primary):
        rules = [rule for rule in primary if broken or not is_judged_live(BY_ID[rule])]
        if by_all and not broken:
            rules = [*ALL_RULES]
        more = played.judged(rules) if rules else []
        broken += [rule for rule in more if rule not in rules_of_plain(seed)]
    return acted or bool(broken), list(dict.fromkeys(broken))


class Campaign:
    """The seeds against all faults, one seed after the other."""

    def __init__(self, found: dict[str, Found], on_result: Callable[[str, Found], None]) -> None:
        self.found = found
        self.on_result = on_result
        self.primary = faults()

    def play(self, seed: int, sought: Iterable[str], *, at_once: bool = True) -> None:
        """One seed against the faults that no primary rule has found; some of them at once."""
        due = [
            fault
            for fault in sought
            if self._of(fault).primary is None and seed not in self._of(fault).tried
        ]
        seldom = [fault for fault in due if fault in BUGS or self._of(fault).is_seldom]
        seldom = seldom if at_once else []
        for fault in due:
            if fault not in seldom:
                self._alone(seed, fault)
        for first in range(0, len(seldom), AT_ONCE_MAX):
            self._at_once(seed, seldom[first : first + AT_ONCE_MAX])

    def _of(self, fault: str) -> Found:
        return self.found.get(fault, Found())

    def _alone(self, seed: int, fault: str) -> list[str]:
        """One fault alone; what broke."""
        by_all = self._of(fault).found is None and self._of(fault).acts < JUDGED_BY_ALL
        acted, broken = play_judged(fault, self.primary[fault], seed, by_all)
        self._add(seed, fault, acted, broken)
        return broken

    def _add(self, seed: int, fault: str, acted: bool, broken: list[str]) -> None:
        after = self._of(fault).after(seed, acted, broken, self.primary[fault])
        self.found[fault] = after
        self.on_result(fault, after)

    def _at_once(self, seed: int, group: list[str]) -> None:
        """Faults that seldom act: one run with all, and alone what acted there or may have."""
        left = list(group)
        while left:
            played = play(seed, left)
            broken, bugs = played.broken, [fault for fault in left if fault in BUGS]
            if bugs and not broken and not played.hits:
                broken = played.judged({rule for bug in bugs for rule in self.primary[bug]})
            suspects = sorted(played.hits) or (bugs if broken else [])
            if not suspects:
                break
            # The bug whose rule has broken comes first.
            for fault in sorted(suspects, key=lambda one: not set(broken) & {*self.primary[one]}):
                left.remove(fault)
                if set(self._alone(seed, fault)) & set(broken):
                    break
        for fault in left:
            self._add(seed, fault, acted=False, broken=[])


def write(found: dict[str, Found]) -> None:
    """Write all results to the file."""
    rows = [f' "{zoo}": {json.dumps(asdict(found[zoo]))}' for zoo in sorted(found)]
    RESULTS.write_text("{\n" + ",\n".join(rows) + "\n}\n", encoding="utf-8")


def main() -> None:
    """Measure the faults that are named, or go on with all."""
    known = faults()
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("fault", nargs="*", help="ids of the zoo")
    parser.add_argument("--seeds", default="1-40", help="in this order: 1-40, or 9,12,4-6")
    given = parser.parse_args()
    found = results()

    def show(fault: str, result: Found) -> None:
        write(found)
        print(fault, result, flush=True)

    campaign = Campaign(found, show)
    for numbers in given.seeds.split(","):
        first, _, last = numbers.partition("-")
        for seed in range(int(first), int(last or first) + 1):
            campaign.play(seed, given.fault or known, at_once=not given.fault)


if __name__ == "__main__":
    main()
