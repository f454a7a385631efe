"""Tests with the mark ``zookeeper`` are skipped where ZooKeeper cannot run."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.zookeeper.real.jars import missing
from tests.zookeeper.real.server import ServerProcess


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    why = missing()
    if why is not None:
        here = str(Path(__file__).parent)
        for item in items:
            if str(item.path).startswith(here):
                item.add_marker(pytest.mark.skip(reason=why))


@pytest.fixture
def server(tmp_path: Path) -> Iterator[ServerProcess]:
    """An empty ZooKeeper server of the test's own."""
    process = ServerProcess(tmp_path)
    try:
        process.start()
        yield process
    finally:
        print(process.log_lines())  # shown where a test failed
        process.kill()
