"""The example of a service: exploring finds its fault, and nothing in the repaired one."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SERVICE = ROOT / "examples" / "orders_service"
PAGE = (ROOT / "docs" / "programs.md").read_text()

pytest_plugins = ["pytester"]


def test_what_is_left_of_the_seed_on_the_page_fails_and_the_repaired_service_survives_it(
    pytester: pytest.Pytester,
) -> None:
    for file in SERVICE.glob("*.py"):
        shutil.copy(file, pytester.path)
    [pasted] = re.findall(r"as a test to paste:\n\n(.*?)```", PAGE, re.S)
    of_repaired = re.sub(r"_seed_\d+", "_repaired", pasted).replace(
        "await test_every_order_is_stored(mini_cluster)",
        "await test_every_order_is_stored(mini_cluster, repaired.main)",
    )
    head = "import pytest\nimport repaired\nfrom test_service import test_every_order_is_stored\n"
    pytester.makepyfile(test_pasted=head + pasted + of_repaired)
    result = pytester.runpytest_subprocess("-q", "-k", "_seed_ or _repaired", "test_pasted.py")
    result.assert_outcomes(failed=1, passed=1)
    result.stdout.fnmatch_lines(["*WaitTimeout: timed out after 180s waiting for len(database.*"])


def test_the_page_shows_the_service_as_it_is() -> None:
    blocks = re.findall(r"```python\n(.*?)```", PAGE, re.S)
    [excerpt] = [block for block in blocks if "buffer[:]" in block]
    assert excerpt in (SERVICE / "service.py").read_text()


@pytest.mark.slow
def test_exploring_finds_the_seed_on_the_page_and_none_of_the_repaired_service() -> None:
    """In its own folder: the chance of a seed hangs on the name of the test."""
    command = [sys.executable, "-m", "pytest", "-q", "-n", "0", "-p", "no:cacheprovider"]
    command += ["test_service.py", "test_repaired.py"]
    explored = subprocess.run(command, cwd=SERVICE, capture_output=True, text=True)
    [seed] = re.findall(r"^(seed \d+: \w+)", PAGE, re.M)
    assert "1 failed, 1 passed" in explored.stdout, explored.stdout
    assert re.search(f"^{seed}", explored.stdout, re.M), explored.stdout
