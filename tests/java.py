"""Java programs of the tests: what is on the path, commands, compiled sources."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

# A process of a test ends soon and shares the machine with others.
OPTIONS = ("-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")


def java() -> str | None:
    """The Java on the path: Kafka 4 needs 17, and more modules than a wheel of Java has."""
    return _program("java")


def javac() -> str | None:
    """The compiler on the path."""
    return _program("javac")


def _program(name: str) -> str | None:
    home = os.environ.get("JAVA_HOME")
    return shutil.which(name, path=f"{home}/bin" if home else None) or shutil.which(name)


def java_command(
    main: str | Path, *, class_path: Sequence[Path | str], heap: str = "256m"
) -> list[str]:
    """The beginning of a command; its arguments follow.

    Shapes:  main: a class, or a source file that Java compiles itself.
    """
    program = java()
    assert program is not None
    parts = ":".join(map(str, class_path))
    return [program, f"-Xmx{heap}", *OPTIONS, "-cp", parts, str(main)]


def compile_java(*sources: Path, classes: Path, class_path: Sequence[Path | str]) -> Path:
    """Compile source files into a folder of classes, and return that folder."""
    program = javac()
    assert program is not None
    parts = ":".join(map(str, class_path))
    command = [program, "-nowarn", "-d", str(classes), "-cp", parts, *map(str, sources)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return classes
