"""Plays a recording of Kafka's group coordinator on ours, up to the first difference."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from minicluster.protocol.api_keys import APIS
from tests.transcripts.groups.compare import Comparison
from tests.transcripts.groups.steps import Command, Step
from tests.transcripts.report import AGREE, DIFFER, Outcome, read_lines, require

FIELDS = ("do", "responses", "written")


def play(path: Path) -> Iterator[Outcome]:
    """Play one recording; each command is one outcome."""
    lines = read_lines(path)
    start = next(lines)
    require(start, (*FIELDS, "config", "now_ms"), f"{path}: no groups transcript: its first line")
    comparison = Comparison(start)
    for number, line in enumerate(lines, 2):
        where = f"{path.name} line {number}"
        require(line, FIELDS, f"{path}: line {number} is no step")
        agrees = comparison.compare(line, Step.of(line))
        detail = comparison.outcome.difference or ""
        yield Outcome(operation_of(line), AGREE if agrees else DIFFER, where, detail)
        if not agrees:  # what follows would differ for this reason
            return


def operation_of(command: Command) -> str:
    """The name of a command: of a request, its API."""
    if command["do"] != "request":
        return str(command["do"])
    kind = APIS[command["api"]].request
    return kind.__name__.removesuffix("Request")
