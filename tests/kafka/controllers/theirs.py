"""The managers of Kafka's controller in a Java process of their own."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tests.kafka.jars import release_folder
from tests.kafka.program import LineProgram

SOURCES = Path(__file__).with_name("java")
PROGRAM = "org.apache.kafka.controller.ControllerProgram"


class Theirs:
    """One controller of a release after the other, in one process."""

    def __init__(self, release: str, folder: Path) -> None:
        sources = [*SOURCES.glob("*.java"), *(SOURCES / release).glob("*.java")]
        self._program = LineProgram(PROGRAM, sources, release_folder(release), folder)
        self.close = self._program.close
        self.start = self._program.start  # with an empty log

    def decide(self, command: Mapping[str, Any]) -> dict[str, Any]:
        """What came of an operation."""
        return self._program.send(command)

    def state(self) -> dict[str, Any]:
        """All brokers and partitions that the managers hold."""
        return self._program.send({"final_state": True})
