"""Java programs that have one line of output for each line of input, both JSON."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tests.java import compile_java, java_command

# What all of them share: the lines, the clock, ids that are known before.
LINES = Path(__file__).with_name("java") / "lines"
SHOWN = 2_000  # characters of what a program said before it ended


class LineProgram:
    """A process of one program, for the tests that compare with Kafka's own classes."""

    def __init__(self, main: str, sources: Sequence[Path], jars: Path, folder: Path) -> None:
        class_path = [f"{jars}/*"]
        classes = compile_java(
            *sources, *LINES.glob("*.java"), classes=folder, class_path=class_path
        )
        self._errors = (folder / "java.log").open("wb")
        self._process = subprocess.Popen(
            java_command(main, class_path=[classes, *class_path]),
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
        """Begin anew."""
        self.send({"start": header})

    def send(self, command: Mapping[str, Any]) -> dict[str, Any]:
        """Send a command; its result."""
        stdin, stdout = self._process.stdin, self._process.stdout
        assert stdin is not None and stdout is not None
        stdin.write(json.dumps(command) + "\n")
        stdin.flush()
        line = stdout.readline()
        if not line:
            said = Path(self._errors.name).read_text(errors="replace")[-SHOWN:]
            raise RuntimeError(f"the Java program has ended: {command}\n{said}")
        result: dict[str, Any] = json.loads(line)
        return result
