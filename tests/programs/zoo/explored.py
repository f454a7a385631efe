"""The faulty programs, for ``minicluster explore`` (a file that pytest does not collect by itself).

``minicluster explore 'tests/programs/zoo/explored.py::test_faulty[early_commit]' --seeds 1-50``
"""

from __future__ import annotations

import pytest

from minicluster import MiniCluster
from tests.programs.zoo.table import explored, module_of


@pytest.mark.mini_cluster(controllers=1)
@pytest.mark.parametrize("name", explored(seeds=50))
def test_faulty(mini_cluster: MiniCluster, name: str) -> None:
    program = module_of(name)
    program.plays(mini_cluster, program.faulty)


@pytest.mark.mini_cluster(controllers=1)
@pytest.mark.parametrize("name", explored(seeds=300))
def test_repaired(mini_cluster: MiniCluster, name: str) -> None:
    program = module_of(name)
    program.plays(mini_cluster, program.repaired)
