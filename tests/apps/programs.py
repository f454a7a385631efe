"""The software that these tests run: versions, where it is on this machine, how it gets there."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.java import java, javac
from tests.maven import cache_folder, copy_jars

KAFKA = "4.3.0"
FRANZ_GO = "v1.22.3"
KAFKAJS = "2.2.4"
FETCH = "python -m tests.apps fetch"

HERE = Path(__file__).parent
KGO = "github.com/twmb/franz-go/pkg/kgo"


def jars() -> Path:
    """The folder of Kafka's jars: clients, Streams, Connect and the tools."""
    return cache_folder(f"apps-kafka-{KAFKA}")


def kgo_tests() -> Path:
    """franz-go's own suite as one program."""
    return cache_folder(f"apps-franz-go-{FRANZ_GO}") / "kgo.test"


def kgo_source() -> str:
    """The folder of its sources, as Go has it."""
    command = ["go", "list", "-f", "{{.Dir}}", KGO]
    listed = subprocess.run(
        command, cwd=kgo_tests().parent, capture_output=True, text=True, check=True
    )
    return listed.stdout.strip()


def node_modules() -> Path:
    """Where node finds KafkaJS."""
    return cache_folder(f"apps-kafkajs-{KAFKAJS}") / "node_modules"


def _without_java() -> str | None:
    if java() is None or javac() is None:
        return "there is no Java (java and javac) on the path"
    return None


def _without_program(name: str) -> str | None:
    return None if shutil.which(name) else f"there is no {name} on the path"


def _needs(missing: str | None, fetched: Path, what: str) -> pytest.MarkDecorator:
    if missing is None and not fetched.exists():
        missing = f"no {what}: {FETCH}"
    return pytest.mark.skipif(missing is not None, reason=missing or "")


def needs_kafka() -> pytest.MarkDecorator:
    """Skips a test where Kafka's jars or Java are missing."""
    return _needs(_without_java(), jars(), f"jars of Apache Kafka {KAFKA}")


def needs_franz_go() -> pytest.MarkDecorator:
    """Skips a test where franz-go's suite is missing."""
    return _needs(_without_program("go"), kgo_tests(), f"suite of franz-go {FRANZ_GO} (Go)")


def needs_kafkajs() -> pytest.MarkDecorator:
    """Skips a test where node or KafkaJS is missing."""
    return _needs(_without_program("node"), node_modules(), f"KafkaJS {KAFKAJS}")


def fetch_jars() -> str | None:
    """Copy the jars by Maven; the reason if that is not possible."""
    why = _without_java() or _without_program("mvn")
    if why is None:
        copy_jars(HERE / "pom.xml", jars())
    return why


def fetch_franz_go() -> str | None:
    """Build franz-go's suite, in a module of ours that requires it."""
    why = _without_program("go")
    if why is None and not kgo_tests().exists():
        folder = kgo_tests().parent
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "go.mod").write_text("module kgotests\n\ngo 1.24\n")
        subprocess.run(["go", "get", "-t", f"{KGO}@{FRANZ_GO}"], cwd=folder, check=True)
        subprocess.run(["go", "test", "-c", "-o", str(kgo_tests()), KGO], cwd=folder, check=True)
    return why


def fetch_kafkajs() -> str | None:
    """Install KafkaJS by npm."""
    why = _without_program("node") or _without_program("npm")
    if why is None:
        folder = node_modules().parent
        folder.mkdir(parents=True, exist_ok=True)
        package = {"private": True, "dependencies": {"kafkajs": KAFKAJS}}
        (folder / "package.json").write_text(json.dumps(package))
        subprocess.run(["npm", "install", "--silent", "--no-audit"], cwd=folder, check=True)
    return why
