"""At the end of a run: how far the machines agree with Kafka."""

from __future__ import annotations

import pytest

from tests.house.short_table import short_table

PROPERTY = "conformance"


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print the conformance table that tests/house/test_docs.py has measured in this run."""
    for report in [*terminalreporter.getreports("passed"), *terminalreporter.getreports("failed")]:
        for name, value in report.user_properties:
            if name == PROPERTY and report.when == "call":
                terminalreporter.section("conformance with Apache Kafka (docs/conformance.md)")
                for line in short_table(str(value)):
                    terminalreporter.write_line(line)
                return
