"""Classes of Apache Kafka's tests played by JUnit's launcher, and what came of each test."""

from __future__ import annotations

import atexit
import re
import shutil
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as ElementTree
import zipfile
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from itertools import takewhile
from pathlib import Path

from tests.java import compile_java, java_command
from tests.kafka.cluster_tests import former
from tests.kafka.jars import test_jars_folder

CHECKOUT = Path(__file__).parents[3]
JARS = f"{test_jars_folder()}/*"
STAND_IN = sorted((Path(__file__).parent / "java").glob("*.java"))
LAUNCHER = "org.junit.platform.console.ConsoleLauncher"
EACH_WITHIN = "120s"
HOLDS, FAILS, LEFT_OUT = "holds", "fails", "left out"
MESSAGE_CHARS = 300
LOOKED_INTO = re.compile(r"looks into \w+\.\w+|Unable to find metric \w+")


@dataclass(frozen=True, slots=True)
class Played:
    """One invocation of a test, and for one that does not hold the reason."""

    test: str
    outcome: str
    message: str = ""


def count_by_outcome(tests: Sequence[Played]) -> Counter[str]:
    """How many hold, fail and are left out."""
    return Counter(test.outcome for test in tests)


@cache
def _class_names() -> dict[str, str]:
    """The full name of each class in the jars by its short one."""
    names: dict[str, str] = {}
    for jar in sorted(test_jars_folder().glob("kafka*-test.jar")):
        with zipfile.ZipFile(jar) as archive:
            for entry in archive.namelist():
                if entry.endswith("Test.class") and "$" not in entry:
                    full = entry.removesuffix(".class").replace("/", ".")
                    names[full.rpartition(".")[2]] = full
    return names


def full_name(name: str) -> str:
    """A class's name with its package.

    Errors:  LookupError for a class that no jar has.
    """
    names = _class_names()
    full = names.get(name, name)
    if full not in names.values():
        raise LookupError(f"{name}: no test jar in {test_jars_folder()} has this class")
    return full


@cache
def _stand_in() -> Path:
    """The classes that stand before Kafka's, compiled once in a process."""
    folder = Path(tempfile.mkdtemp(prefix="kafka-cluster-tests-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return compile_java(*STAND_IN, classes=folder, class_path=[JARS])


def play(
    names: Sequence[str], folder: Path, *, within_s: float, class_path: Sequence[str | Path] = ()
) -> list[Played]:
    """Play the tests of some classes, one after the other.

    Shapes:  folder: for what the processes say: java.log, cluster.log, the reports of JUnit;
             class_path: where classes are that no jar has.
    """
    # JUnit says nothing of a class that it does not find but in its log.
    selected = [name if class_path or former.is_former(name) else full_name(name) for name in names]
    class_path = [_stand_in(), *class_path, JARS]
    if any(map(former.is_former, names)):
        class_path, selected = former.prepared(selected, folder / "former", class_path)
    reports = folder / "reports"
    system = {
        "org.slf4j.simpleLogger.defaultLogLevel": "error",
        "junit.jupiter.extensions.autodetection.enabled": "true",
        "junit.jupiter.execution.timeout.default": EACH_WITHIN,
        "cluster.python": sys.executable,
        "cluster.checkout": CHECKOUT,
        "cluster.log": folder / "cluster.log",
    }
    launcher = java_command(LAUNCHER, class_path=class_path, heap="768m")
    command = [
        launcher[0],
        *(f"-D{name}={value}" for name, value in system.items()),
        *launcher[1:],
        "execute",
        "--disable-banner",
        "--details=none",
        f"--reports-dir={reports}",
        *(f"--select-class={name}" for name in selected),
    ]
    with (folder / "java.log").open("wb") as log:
        subprocess.run(command, stdout=log, stderr=log, timeout=within_s, check=False, cwd=folder)
    return [test for report in sorted(reports.glob("*jupiter*.xml")) for test in _read(report)]


def _read(report: Path) -> list[Played]:
    tests = []
    for case in ElementTree.parse(report).iter("testcase"):
        name = f"{case.get('classname', '').rpartition('.')[2]}.{case.get('name', '')}"
        problem = next((e for e in case if e.tag in ("failure", "error")), None)
        skipped = case.find("skipped")
        looked_into = LOOKED_INTO.search("" if problem is None else problem.text or "")
        if looked_into is not None:  # in a condition that the test waited for
            tests.append(Played(name, LEFT_OUT, looked_into[0]))
        elif problem is not None:
            tests.append(Played(name, FAILS, _message(problem)))
        elif skipped is not None:
            tests.append(Played(name, LEFT_OUT, _message(skipped)))
        else:
            tests.append(Played(name, HOLDS))
    return tests


def _message(element: ElementTree.Element) -> str:
    text = element.get("message") or (element.text or "").strip()
    lines = text.replace("org.opentest4j.TestAbortedException: ", "").splitlines()
    told = takewhile(lambda line: not line.startswith("\tat "), lines)
    return " ".join(told)[:MESSAGE_CHARS]
