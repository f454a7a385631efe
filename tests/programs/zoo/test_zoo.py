"""Each fault of the zoo is found by the seeds that the table says, and no repaired form is."""

from __future__ import annotations

import os
import re
import subprocess
import sys

import pytest

from minicluster import MiniCluster
from minicluster.errors import WaitTimeout
from tests.house.sources import ROOT
from tests.programs.zoo.shop import Run
from tests.programs.zoo.table import FAULTS, Fault, explored, module_of

EXPLORED = "tests/programs/zoo/explored.py"
SEEDS = int(os.environ.get("MINICLUSTER_SEEDS", "5"))  # of each repaired program


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name)
def test_what_is_left_of_a_seed_shows_the_fault_and_the_repaired_form_survives_it(
    fault: Fault,
) -> None:
    program = module_of(fault.name)

    def play(run: Run) -> None:
        with MiniCluster(controllers=1, seed=fault.cluster_seed) as cluster:
            for at, action, arguments in fault.shrunk:
                cluster.call_later(at, getattr(cluster, action), **arguments)
            program.plays(cluster, run, within="90s")

    with pytest.raises((AssertionError, WaitTimeout)):
        play(program.faulty)
    play(program.repaired)


@pytest.mark.slow
@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name)
def test_a_fault_is_found_by_the_first_seed_that_the_table_names(fault: Fault) -> None:
    test = f"{EXPLORED}::test_faulty[{fault.name}]"
    command = [sys.executable, "-m", "minicluster", "explore", test, "--seeds", f"1-{fault.seed}"]
    explored_seeds = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    found = re.findall(r"^seed (\d+):", explored_seeds.stdout, re.M)
    assert [*map(int, found)] == [fault.seed], explored_seeds.stdout
    assert f"shrunk from {fault.drawn} to {fault.left} in" in explored_seeds.stdout


@pytest.mark.slow
@pytest.mark.mini_cluster(controllers=1)
@pytest.mark.parametrize("name", explored(SEEDS))
def test_a_repaired_program_survives(mini_cluster: MiniCluster, name: str) -> None:
    program = module_of(name)
    program.plays(mini_cluster, program.repaired)
