"""What holds for every test: where Spark runs, how properties are drawn, what a run ends with."""

from __future__ import annotations

from collections.abc import Generator

import pytest
from hypothesis import HealthCheck, settings

from minicluster.verify import session
from tests.house.short_table import short_table

PROPERTY = "conformance"

# The same examples on every machine, however slow it is.
settings.register_profile(
    "house",
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("house")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """All tests that start Spark run on one worker, so that one JVM serves them all."""
    for item in items:
        if item.get_closest_marker("spark") is not None:
            item.add_marker(pytest.mark.xdist_group("spark"))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    """A test that starts Spark says so with its mark; for the others no JVM is warmed up."""

    def refuse(*args: object, **kwargs: object) -> None:
        raise AssertionError(f"{item.nodeid} starts Spark: mark it with pytest.mark.spark")

    with pytest.MonkeyPatch.context() as patch:
        if item.get_closest_marker("spark") is None:
            patch.setattr(session, "spark_session", refuse)
            patch.setattr(session, "warm_up", lambda **_: None)
        return (yield)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print the conformance table that tests/house/test_docs.py has measured in this run."""
    for report in [*terminalreporter.getreports("passed"), *terminalreporter.getreports("failed")]:
        for name, value in report.user_properties:
            if name == PROPERTY and report.when == "call":
                terminalreporter.section("conformance with Apache Kafka (docs/conformance.md)")
                for line in short_table(str(value)):
                    terminalreporter.write_line(line)
                return
