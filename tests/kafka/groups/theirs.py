"""Kafka's group coordinator in a Java process of its own."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tests.kafka.jars import jars_folder
from tests.kafka.program import LineProgram
from tests.transcripts.groups.steps import Step

SOURCE = Path(__file__).with_name("java") / "GroupCoordinatorProgram.java"
PROGRAM = "org.apache.kafka.coordinator.group.GroupCoordinatorProgram"


class Theirs:
    """One coordinator of Kafka's after the other, in one process."""

    def __init__(self, folder: Path) -> None:
        self._program = LineProgram(PROGRAM, [SOURCE], jars_folder(), folder)
        self.close = self._program.close

    def do(self, command: Mapping[str, Any]) -> Step:
        """Perform a command; ``start`` begins with an empty log."""
        if command["do"] == "start":
            self._program.start(command)
            return Step()
        return Step.of(self._program.send(command))
