"""Tests with the mark ``kafka`` are skipped where Apache Kafka cannot run."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.kafka.jars import missing


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    why = missing()
    if why is not None:
        here = str(Path(__file__).parent)
        for item in items:
            if str(item.path).startswith(here):
                item.add_marker(pytest.mark.skip(reason=why))
