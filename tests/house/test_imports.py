"""The cost of imports: the rooms below load neither Pykka nor Spark."""

from __future__ import annotations

import subprocess
import sys

import pytest

HEAVY = ("asyncio", "pykka", "pyspark", "pyarrow", "rich", "structlog", "yaml", "click")


def loaded_by(statement: str, modules: tuple[str, ...] = HEAVY) -> list[str]:
    return _printed_by(
        f"import sys\n{statement}\nprint(*(m for m in {modules!r} if m in sys.modules))"
    )


def _printed_by(program: str) -> list[str]:
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60
    )
    return done.stdout.split()


@pytest.mark.parametrize(
    "statement",
    [
        "import minicluster",
        "import minicluster.protocol",
        "import minicluster.protocol.messages",
        "import minicluster.log.directory, minicluster.log.dump",
        "import minicluster.metadata.image.metadata_image",
        "import minicluster.controller.machine",
        "import minicluster.quorum.machine",
        "import minicluster.verify.live",
    ],
)
def test_pure_rooms_load_nothing_heavy(statement: str) -> None:
    assert loaded_by(statement) == []


def test_the_face_is_lazy_and_whole() -> None:
    import minicluster

    for name in minicluster.__all__:
        assert getattr(minicluster, name) is not None
    assert set(minicluster.__all__) <= set(dir(minicluster))
    with pytest.raises(AttributeError, match="no attribute 'Maxicluster'"):
        _ = minicluster.Maxicluster  # type: ignore[attr-defined]


@pytest.mark.parametrize("folder", ["actors", "fixtures"])
def test_a_top_level_import_is_refused(folder: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", f"import {folder}"], capture_output=True, text=True, timeout=60
    )
    assert done.returncode != 0
    assert f"import minicluster.{folder}" in done.stderr or "No module named" in done.stderr


def test_a_cluster_without_clients_has_loaded_pykka_alone_of_what_is_heavy() -> None:
    """ZooKeeper's mode, planted faults, rules over histories and scenarios are not needed.

    Nor are folders of runs.
    """
    start = "from minicluster import MiniCluster\nwith MiniCluster():\n    pass"
    unused = [
        "minicluster.zookeeper.server.machine",
        "minicluster.zookeeper.broker",
        "minicluster.zookeeper.controller",
        "minicluster.zoo",
        "minicluster.verify.whole",
        "minicluster.scenario.reading",
        "minicluster.own_folders",
        "minicluster.actors.recording.run_place",
        "difflib",
        "tempfile",
    ]
    assert loaded_by(start, (*HEAVY, *unused)) == ["pykka"]
