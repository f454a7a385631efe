"""However many workers run the suite, Spark is one's, and so is each fixture."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
NOTES = """
import os
import pathlib
import pytest

{module}

{test}
@pytest.mark.parametrize("number", range(8))
def test_it(number):
    note = f"{{pathlib.Path(__file__).stem}}-{{number}}"
    pathlib.Path(__file__).with_name(note).write_text(os.environ["PYTEST_XDIST_WORKER"])
"""
FIXTURE = """
@pytest.fixture(scope="module", autouse=True)
def made_once() -> None: pass
"""
FILES = (
    ("one", "pytestmark = pytest.mark.spark", ""),
    ("two", "pytestmark = [pytest.mark.spark]", ""),
    ("free", "", ""),
    ("mixed", "@pytest.mark.spark\ndef test_nothing(): pass", ""),
    ("marked", "def test_nothing(): pass", "@pytest.mark.spark"),
    ("shared", FIXTURE, ""),
)
ON_ONE_WORKER = ("test_one", "test_two", "test_marked")


def test_tests_that_start_spark_run_on_one_worker(tmp_path: Path) -> None:
    for name, module, test in FILES:
        (tmp_path / f"test_{name}.py").write_text(NOTES.format(module=module, test=test))
    command = [sys.executable, "-m", "pytest", "-p", "tests.conftest", "-p", "no:cacheprovider"]
    command += ["-c", "/dev/null", "--rootdir", str(tmp_path), "-n", "2", "--dist", "loadgroup"]
    done = subprocess.run(
        [*command, str(tmp_path)], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    notes = {path.name: path.read_text() for path in tmp_path.glob("test_*-*")}
    assert len(notes) == 8 * len(FILES)
    with_spark = {notes[name] for name in notes if name.startswith(ON_ONE_WORKER)}
    assert len(with_spark) == 1
    assert {notes[name] for name in notes if not name.startswith(ON_ONE_WORKER)} - with_spark
    assert len({notes[name] for name in notes if name.startswith("test_shared")}) == 1
