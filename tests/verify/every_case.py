"""All hand-written logs and runs: per rule those that break it, and the near misses."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Protocol, TypeVar

from tests.verify import (
    cases,
    trace_cases,
    trace_cases_quorum,
    trace_cases_replicas,
    trace_cases_time,
    znode_cases,
)
from tests.verify.build_run import RunBuilder


class Written(Protocol):
    """A log or run that can be written into a folder."""

    def write(self, folder: Path) -> Path: ...


Case = TypeVar("Case", bound=Callable[[], Any])

TRACES_BAD: dict[str, tuple[Callable[[], RunBuilder], ...]] = {
    **trace_cases.BAD,
    **trace_cases_replicas.REQUESTS_BAD,
    **trace_cases_quorum.TRACED_BAD,
    **trace_cases_time.BAD,
}
TRACES_NEAR: dict[str, tuple[Callable[[], RunBuilder], ...]] = {
    **trace_cases.NEAR,
    **trace_cases_replicas.REQUESTS_NEAR,
    **trace_cases_quorum.TRACED_NEAR,
    **trace_cases_time.NEAR,
}
BAD: tuple[Mapping[str, tuple[Callable[[], Written], ...]], ...] = (
    cases.BAD,
    TRACES_BAD,
    znode_cases.BAD,
)
NEAR: tuple[Mapping[str, tuple[Callable[[], Written], ...]], ...] = (
    cases.NEAR,
    TRACES_NEAR,
    znode_cases.NEAR,
)


def by_name(*tables: Mapping[str, tuple[Case, ...]]) -> dict[str, Case]:
    """The cases of some tables, each once, by module and function."""
    return {
        f"{case.__module__.rpartition('.')[2]}.{case.__name__}": case
        for table in tables
        for several in table.values()
        for case in several
    }
