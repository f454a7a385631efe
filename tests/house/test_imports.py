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
        "import minicluster.verify.online.checker",
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
    """ZooKeeper's mode, rules over histories, scenarios and messages of others are not needed.

    Nor are administration, internal topics, and folders of runs.
    """
    start = "from minicluster import MiniCluster\nwith MiniCluster():\n    pass"
    unused = [
        "minicluster.zookeeper",
        "minicluster.broker.zookeeper",
        "minicluster.controller.zookeeper",
        "minicluster.verify.online.histories",
        "minicluster.verify.engine",
        "minicluster.scenario.reading",
        "minicluster.protocol.messages.create_acls",
        "minicluster.protocol.messages.join_group",
        "minicluster.protocol.messages.elect_leaders",
        "minicluster.protocol.coordinator_records",
        "minicluster.controller.administration",
        "minicluster.own_folders",
        "minicluster.actors.recording.run_place",
        "difflib",
        "hmac",
        "tempfile",
    ]
    assert loaded_by(start, (*HEAVY, *unused)) == ["pykka"]


def test_what_an_import_makes_is_old_at_once() -> None:
    """The next collection of young objects would else visit a hundred thousand of them."""
    program = "\n".join(
        [
            "import gc",
            "gc.disable()  # no collection may age them meanwhile",
            "from minicluster import MiniCluster",
            "print(len(gc.get_objects(0)) + len(gc.get_objects(1)), len(gc.get_objects(2)))",
        ]
    )
    young, old = map(int, _printed_by(program))
    assert young < 1_000 < 50_000 < old


def test_what_a_program_has_frozen_stays_frozen() -> None:
    program = "import gc; gc.freeze(); from minicluster import MiniCluster"
    assert int(*_printed_by(f"{program}; print(gc.get_freeze_count())")) > 1_000
