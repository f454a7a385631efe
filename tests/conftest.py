"""Settings of every test: the worker of Spark, Hypothesis profiles, the summary of a run."""

from __future__ import annotations

import ast
import gc
import os
import re
import sys
from collections.abc import Generator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

from docs.generate.short_table import short_table
from minicluster.verify.spark import session
from tests.house import sources

# Where it is set, each process that a test starts compiles the package once more (1.3 s of the
# processor), and each worker rewrites every assertion (14 s).
sys.dont_write_bytecode = False
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)

PROPERTY = "conformance"
SPARK = "pytest.mark.spark"
HOUSE = "tests/house/"
PARSED_ONCE = "nodes_of("
OF_MODULE = 'scope="module"'

# The same examples on every machine, however slow it is.
settings.register_profile(
    "house",
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("house")


def marked_with_spark(source: str) -> frozenset[str] | None:
    """The functions and classes of a test file that have the mark; None: all of them."""
    if SPARK not in source:
        return frozenset()
    names = set()
    for node in ast.parse(source).body:
        match node:
            case ast.Assign(targets=[ast.Name(id="pytestmark")]) if SPARK in ast.unparse(node):
                return None
            case ast.FunctionDef(decorator_list=marks):
                if any(SPARK in ast.unparse(mark) for mark in marks):
                    names.add(node.name)
            case ast.ClassDef() if SPARK in ast.unparse(node):
                names.add(node.name)
    return frozenset(names)


@cache
def text_of(file: Path) -> str:
    return file.read_text()


def file_of(config: pytest.Config, nodeid: str) -> Path:
    return config.rootpath / nodeid.partition("::")[0]


def shares_parsed_files(config: pytest.Config, nodeid: str) -> bool:
    """A test of the house, or of another file that looks into all sources."""
    return nodeid.startswith(HOUSE) or PARSED_ONCE in text_of(file_of(config, nodeid))


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """All tests that start Spark go to one worker, so that one JVM serves them all.

    Those of the house go to one worker as well, with others that share the parsed files, and so do
    those of a file with a fixture of its own: two workers would make it twice, which takes seconds
    for a report or a story on real time.

    The text of a file shows its marks: the scheduler does not get them, and the names that
    xdist 3.8 gives to groups are lost under pytest 9.2.
    """
    if config.getvalue("dist") != "loadgroup":
        return None
    from xdist.scheduler import LoadGroupScheduling

    @cache
    def marked(file: Path) -> frozenset[str] | None:
        return marked_with_spark(text_of(file))

    def starts_spark(nodeid: str) -> bool:
        rest = nodeid.partition("::")[2]
        names = marked(file_of(config, nodeid))
        return names is None or re.split(r"::|\[|@", rest, maxsplit=1)[0] in names

    class Together(LoadGroupScheduling):
        def _split_scope(self, nodeid: str) -> str:
            if starts_spark(nodeid):
                return "spark"
            if shares_parsed_files(config, nodeid):
                return HOUSE
            if OF_MODULE in text_of(file_of(config, nodeid)):
                return nodeid.partition("::")[0]
            return str(super()._split_scope(nodeid))

    return Together(config, log)


def pytest_runtest_teardown(item: pytest.Item, nextitem: pytest.Item | None) -> None:
    """Behind the last test that needs the parsed files, forget them.

    A million objects: the tests that look for garbage took 15 s longer.
    """
    if not shares_parsed_files(item.config, item.nodeid):
        return
    if nextitem is None or not shares_parsed_files(item.config, nextitem.nodeid):
        sources.forget()


def pytest_collection_finish() -> None:
    """Set modules and items aside: each full collection would visit them, a tenth of all time."""
    gc.collect()
    gc.freeze()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    """Refuse Spark to a test without its mark; no JVM is warmed up for it."""

    def refuse(*args: object, **kwargs: object) -> None:
        raise AssertionError(f"{item.nodeid} starts Spark: mark it with pytest.mark.spark")

    with pytest.MonkeyPatch.context() as patch:
        if item.get_closest_marker("spark") is None:
            patch.setattr(session, "spark_session", refuse)
            patch.setattr(session, "warm_up", lambda **_: None)
        return (yield)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print the conformance table that tests/house/test_docs.py has measured in this run."""
    for report in [*terminalreporter.getreports("passed"), *terminalreporter.getreports("failed")]:
        for name, value in report.user_properties:
            if name == PROPERTY and report.when == "call":
                terminalreporter.section(
                    "conformance with Apache Kafka (docs/reference/conformance.md)"
                )
                for line in short_table(str(value)):
                    terminalreporter.write_line(line)
                return
