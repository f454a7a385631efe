"""At the end of a run: which planted faults were found, and by which rules."""

from __future__ import annotations

import pytest


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print the kill table: a line of each planted fault that was played in this run."""
    reports = [*terminalreporter.getreports("passed"), *terminalreporter.getreports("failed")]
    killed = [
        str(line)
        for report in reports
        if report.when == "call"
        for name, line in report.user_properties
        if name == "kill"
    ]
    if killed:
        terminalreporter.section("planted faults (docs/reference/zoo.md)")
        terminalreporter.write_line("zoo  killed  primary      also broken  story")
        for line in sorted(killed):
            terminalreporter.write_line(line.rstrip())
