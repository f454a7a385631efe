"""Kafka's group coordinator in a Java process of its own."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tests.java import compile_java, java_command
from tests.kafka.jars import jars_folder
from tests.transcripts.groups.steps import Step

SOURCE = Path(__file__).with_name("java") / "GroupCoordinatorProgram.java"
PROGRAM = "org.apache.kafka.coordinator.group.GroupCoordinatorProgram"


class Theirs:
    """One coordinator of Kafka's after the other, in one process."""

    def __init__(self, folder: Path) -> None:
        class_path = [f"{jars_folder()}/*"]
        classes = compile_java(SOURCE, classes=folder, class_path=class_path)
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

    def do(self, command: Mapping[str, Any]) -> Step:
        """Perform a command; ``start`` begins with an empty log."""
        stdin, stdout = self._process.stdin, self._process.stdout
        assert stdin is not None and stdout is not None
        stdin.write(json.dumps(command) + "\n")
        stdin.flush()
        line = stdout.readline()
        if not line:
            raise RuntimeError(f"the Java program has ended: {command}; see {self._errors.name}")
        return Step.of(json.loads(line))
