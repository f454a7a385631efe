"""At the end of a run: which planted faults were found, and by which rules."""

from __future__ import annotations

import json

import pytest


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print the kill table that ``test_the_kill_table`` has made in this run."""
    for report in [*terminalreporter.getreports("passed"), *terminalreporter.getreports("failed")]:
        for name, value in report.user_properties:
            if name == "kill_table" and report.when == "call":
                terminalreporter.section("planted faults (docs/reference/zoo.md)")
                for line in json.loads(str(value)):
                    terminalreporter.write_line(line.rstrip())
                return
