"""Tests that Kafka's jars had until 4.0, as ``former.PlaintextConsumerTest``.

Kafka has moved them since to its module clients-integration-tests, of which it publishes no jar.
Their classes still fit the harness of the later release, but for the methods that name their
parameters, which are ``java/Parameters.java``'s: a test class is extended by one that has them.
"""

from __future__ import annotations

import zipfile
from collections.abc import Sequence
from pathlib import Path

from tests.java import compile_java
from tests.kafka.jars import former_tests_folder

_PACKAGE = "former."


def is_former(name: str) -> bool:
    """The name is that of a class of the former jar."""
    return name.startswith(_PACKAGE)


def class_path_of(
    names: Sequence[str], folder: Path, class_path: Sequence[str | Path]
) -> list[str | Path]:
    """A class path with the former classes among some, each with the class that extends it.

    They stand before the classes of their names that the later release still has, and what they
    need of the former jar behind all of its classes.

    Errors:  LookupError for a class that the jar does not have.
    """
    folder.mkdir()
    path = [folder, *class_path, _jar()]
    sources = []
    for name in filter(is_former, names):
        short = name.removeprefix(_PACKAGE)
        base = _extract(short, folder)
        source = folder / f"{short}.java"
        source.write_text(
            f"package former;\npublic class {short} extends {base} implements Parameters {{}}\n"
        )
        sources.append(source)
    compile_java(*sources, classes=folder, class_path=path)
    return path


def _jar() -> Path:
    (jar,) = former_tests_folder().glob("*-test.jar")
    return jar


def _extract(short: str, folder: Path) -> str:
    """Extract a class with its inner ones, and return its name with its package."""
    with zipfile.ZipFile(_jar()) as archive:
        entries = archive.namelist()
        file = next((entry for entry in entries if entry.endswith(f"/{short}.class")), None)
        if file is None:
            raise LookupError(f"former.{short}: {_jar()} does not have this class")
        stem = file.removesuffix(".class")
        archive.extractall(folder, [e for e in entries if e == file or e.startswith(f"{stem}$")])
    return stem.replace("/", ".")
