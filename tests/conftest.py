"""Settings of every test: the worker of Spark, Hypothesis profiles, the summary of a run."""

from __future__ import annotations

import ast
import os
import re
import traceback
from collections.abc import Generator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

from minicluster.quorum import machine
from minicluster.verify.spark import session
from tests.house.short_table import short_table

# Is this the compiled wheel, and not the Python sources?
IS_COMPILED = not str(machine.__file__).endswith(".py")
NO_SUBCLASS = "interpreted classes cannot inherit from compiled"
PROPERTY = "conformance"
SPARK = "pytest.mark.spark"
HOUSE = "tests/house/"
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


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """All tests that start Spark go to one worker, so that one JVM serves them all.

    Those of the house go to one worker as well, since they share the parsed files, and so do those
    of a file with a fixture of its own: two workers would make it twice, which takes seconds where
    it is a report or a story on real time.

    The text of a file shows its marks: the scheduler does not get them, and the names that
    xdist 3.8 gives to groups are lost under pytest 9.2.
    """
    if config.getvalue("dist") != "loadgroup":
        return None
    from xdist.scheduler import LoadGroupScheduling

    @cache
    def text_of(file: str) -> str:
        return (config.rootpath / file).read_text()

    @cache
    def marked(file: str) -> frozenset[str] | None:
        return marked_with_spark(text_of(file))

    def starts_spark(nodeid: str) -> bool:
        file, _, rest = nodeid.partition("::")
        names = marked(file)
        return names is None or re.split(r"::|\[|@", rest, maxsplit=1)[0] in names

    class Together(LoadGroupScheduling):
        def _split_scope(self, nodeid: str) -> str:
            if starts_spark(nodeid):
                return "spark"
            if nodeid.startswith(HOUSE):
                return HOUSE
            if OF_MODULE in text_of(file := nodeid.partition("::")[0]):
                return file
            return str(super()._split_scope(nodeid))

    return Together(config, log)


def pytest_configure() -> None:
    """Refuse to play the compiled wheel's tests by the sources."""
    if os.environ.get("MINICLUSTER_BUILD") == "compiled" and not IS_COMPILED:
        raise pytest.UsageError(f"{machine.__file__} is not the compiled wheel's")


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Leave out what the compiled wheel cannot do (docs/compiled.md)."""
    if IS_COMPILED and (mark := item.get_closest_marker("pure")):
        pytest.skip(f"not in the compiled wheel: {mark.args[0]}")


@pytest.hookimpl(wrapper=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> Generator[None, object, object]:
    """Leave out a test that derives a class of its own from a native one."""
    try:
        return (yield)
    except TypeError as error:
        if IS_COMPILED and str(error) == NO_SUBCLASS and _is_of_tests(error):
            pytest.skip("not in the compiled wheel: its stub derives from a native class")
        raise


def _is_of_tests(error: BaseException) -> bool:
    """Check that a test or its tools raised it, and not the package."""
    last = traceback.extract_tb(error.__traceback__)[-1]
    return Path(last.filename).is_relative_to(Path(__file__).parent)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    """Refuse Spark to a test without its mark; no JVM is warmed up for it."""

    def refuse(*args: object, **kwargs: object) -> None:
        raise AssertionError(f"{item.nodeid} starts Spark: mark it with pytest.mark.spark")

    with pytest.MonkeyPatch.context() as patch:
        if item.get_closest_marker("spark") is None:
            patch.setattr(session, "spark_session", refuse)
            patch.setattr(session, "spark_for_jobs", refuse)
            patch.setattr(session, "warm_up", lambda **_: None)
        return (yield)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print the conformance table that tests/house/test_docs.py has measured in this run."""
    for report in [*terminalreporter.getreports("passed"), *terminalreporter.getreports("failed")]:
        for name, value in report.user_properties:
            if name == PROPERTY and report.when == "call":
                terminalreporter.section("conformance with Apache Kafka (docs/conformance.md)")
                for line in short_table(str(value)):
                    terminalreporter.write_line(line)
                return
