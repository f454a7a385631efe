"""The managers of Kafka's controller in a Java process of their own."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tests.java import compile_java, java_command
from tests.kafka.jars import release_folder

SOURCES = Path(__file__).with_name("java")
PROGRAM = "org.apache.kafka.controller.ControllerProgram"


class Theirs:
    """One controller of a release after the other, in one process."""

    def __init__(self, release: str, folder: Path) -> None:
        class_path = [f"{release_folder(release)}/*"]
        sources = [*SOURCES.glob("*.java"), *(SOURCES / release).glob("*.java")]
        classes = compile_java(*sources, classes=folder, class_path=class_path)
        self._errors = (folder / "java.log").open("wb")
        self._process = subprocess.Popen(
            java_command(PROGRAM, class_path=[classes, *class_path]),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            text=True,
        )

    def close(self) -> None:
        """End the process."""
        self._process.kill()
        self._process.communicate()
        self._errors.close()

    def start(self, header: Mapping[str, Any]) -> None:
        """Begin with an empty log."""
        self._send({"start": header})

    def decide(self, command: Mapping[str, Any]) -> dict[str, Any]:
        """What came of an operation."""
        return self._send(command)

    def state(self) -> dict[str, Any]:
        """All brokers and partitions that the managers hold."""
        return self._send({"final_state": True})

    def _send(self, command: Mapping[str, Any]) -> dict[str, Any]:
        stdin, stdout = self._process.stdin, self._process.stdout
        assert stdin is not None and stdout is not None
        stdin.write(json.dumps(command) + "\n")
        stdin.flush()
        line = stdout.readline()
        if not line:
            raise RuntimeError(f"the Java program has ended: {command}; see {self._errors.name}")
        done: dict[str, Any] = json.loads(line)
        return done
