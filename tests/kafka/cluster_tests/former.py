"""Tests that Kafka's jars had until 4.0, as ``former.PlaintextConsumerTest``.

Kafka has moved them since to its module clients-integration-tests, of which it publishes no jar.
Their classes still fit the harness of the later release, but for the methods that name their
parameters, which are ``java/Parameters.java``'s: a test class that names them is extended by one
that has them.
"""

from __future__ import annotations

import zipfile
from collections.abc import Sequence
from pathlib import Path

from tests.java import compile_java
from tests.kafka.jars import former_tests_folder

_PACKAGE = "former."
_PARAMETERS = b"getTestQuorumAndGroupProtocolParameters"  # as the methods of Parameters begin


def is_former(name: str) -> bool:
    """The name is that of a class of the former jar."""
    return name.startswith(_PACKAGE)


def prepared(
    names: Sequence[str], folder: Path, class_path: Sequence[str | Path]
) -> tuple[list[str | Path], list[str]]:
    """A class path with the former classes among some, and what is to be selected on it.

    They stand before the classes of their names that the later release still has, and what they
    need of the former jar behind all of its classes.

    Errors:  LookupError for a class that the jar does not have.
    """
    folder.mkdir()
    path = [folder, *class_path, _jar()]
    selected, sources = [], []
    for name in names:
        short = name.removeprefix(_PACKAGE)
        file = _extract(short, folder) if is_former(name) else None
        if file is None:
            selected.append(name)
            continue
        base = file.removesuffix(".class").replace("/", ".")
        if _PARAMETERS not in (folder / file).read_bytes():
            selected.append(base)
            continue
        source = folder / f"{short}.java"
        source.write_text(
            f"package former;\npublic class {short} extends {base} implements Parameters {{}}\n"
        )
        sources.append(source)
        selected.append(name)
    if sources:
        compile_java(*sources, classes=folder, class_path=path)
    return path, selected


def _jar() -> Path:
    (jar,) = former_tests_folder().glob("*-test.jar")
    return jar


def _extract(short: str, folder: Path) -> str:
    """Extract a class with its inner ones, and return the path of its file in the folder."""
    with zipfile.ZipFile(_jar()) as archive:
        entries = archive.namelist()
        file = next((entry for entry in entries if entry.endswith(f"/{short}.class")), None)
        if file is None:
            raise LookupError(f"former.{short}: {_jar()} does not have this class")
        inner = f"{file.removesuffix('.class')}$"
        archive.extractall(folder, [e for e in entries if e == file or e.startswith(inner)])
    return file
