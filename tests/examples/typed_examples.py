"""The examples and the Python of the pages under type checkers (``make types``).

Docs and signatures once disagreed where nobody ran a checker: a method that did not exist, a leader
that may be None. An example is checked as a user with annotations writes it: its fixture has its
type, and the names that a page has introduced before are imported.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
_IMPORTS = {
    **{name: f"import {name}" for name in ("asyncio", "pytest", "service")},
    "partial": "from functools import partial",
    "MiniCluster": "from minicluster import MiniCluster",
    "Path": "from pathlib import Path",
    "Any": "from typing import Any",
    "PartitionStep": "from minicluster.verify.histories.partitions import PartitionStep",
    "Findings": "from minicluster.verify.rules.rule import Findings",
    **{
        name: f"from minicluster.verify import {name}"
        for name in ("CASE", "NOT_PROMISED", "broken", "rule", "sql_rule", "spark_session")
    },
    "mini_cluster": "mini_cluster = MiniCluster()",
    "cluster": "cluster = MiniCluster()",
    "spark": "spark = spark_session()",
}
_FIXTURES = {
    "mini_cluster": "MiniCluster",
    "shared_cluster": "MiniCluster",
    "tmp_path": "Path",
}
_EXCERPTS = ("judge",)  # quotes the package's own files, which are checked where they stand
# What users write and no page has room for.
_USED = """
from minicluster.protocol.messages import FetchRequest
from minicluster.protocol.records import PartitionChangeRecord

def test_a_leader_may_be_none(mini_cluster):
    orders = mini_cluster.create_topic("orders", partitions=1, replicas=3)
    mini_cluster.kill(orders[0].leader)
    mini_cluster.cut([orders[0].leader, *orders[0].followers], mini_cluster.controllers)
    mini_cluster.partition([1, 2], [3], lasting="10s")
    mini_cluster.partition(groups=["leader(orders-0)", "others(leader(orders-0))"])
"""


def typed(text: str) -> str:
    """An example as a user with annotations writes it."""
    text = re.sub(r"(?<=def )(\w+)\(([^():]*)\):", _annotated, text)
    used = text
    lines: list[str] = []
    for name, line in reversed(_IMPORTS.items()):
        if re.search(rf"\b{name}\b", used) and not _is_declared(name, text):
            lines.insert(0, line)
            used += line.partition("=")[2]
    future = "from __future__ import annotations\n"
    return future + "\n".join(lines) + "\n" + text.replace(future, "")


def _is_declared(name: str, text: str) -> bool:
    declared = (
        rf"(import [^\n(]*\b{name}\b|import \([^)]*\b{name}\b|^ *{name}(: \w+)? = |as {name}\b)"
    )
    return re.search(declared, text, re.M) is not None or f"{name}: MiniCluster" in text


def _annotated(match: re.Match[str]) -> str:
    """The head of a function with the types that a page leaves out."""
    given = []
    for argument in filter(None, map(str.strip, match[2].split(","))):
        name, _, default = argument.partition("=")
        typed_one = name if name == "self" else f"{name}: {_FIXTURES.get(name, 'Any')}"
        given.append(f"{typed_one} = {default}" if default else typed_one)
    returns = "None" if match[1].startswith(("test_", "__init__")) else "Any"
    return f"{match[1]}({', '.join(given)}) -> {returns}:"


def examples() -> Iterator[tuple[str, str]]:
    """The name and the text of each example."""
    yield "used", typed(_USED)
    for path in sorted((ROOT / "examples").rglob("*.py")):
        # By its own name: the examples, and the pages, import each other.
        yield path.stem, typed(path.read_text(encoding="utf-8"))
    for page in sorted([ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]):
        if page.stem in _EXCERPTS:
            continue
        blocks = re.findall(r"```python\n(.*?)```", page.read_text(encoding="utf-8"), re.S)
        for number, block in enumerate(blocks, 1):
            if block[0].isspace():
                continue  # quotes an example, which is checked where it stands
            yield f"{page.stem.replace('-', '_')}_{number}", typed(block)


def main() -> int:
    """Check every example; the number of checkers that complain."""
    with tempfile.TemporaryDirectory() as folder:
        files = []
        for name, text in examples():
            files.append(Path(folder, f"{name}.py"))
            files[-1].write_text(text, encoding="utf-8")
        # What mypy narrows by an assertion, a step of the cluster changes: nothing is unreachable.
        mypy = [sys.executable, "-m", "mypy", "--config-file", "pyproject.toml"]
        mypy += ["--no-warn-unreachable", *map(str, files)]
        failed = bool(subprocess.run(mypy, cwd=ROOT, check=False).returncode)
        pyright = shutil.which("basedpyright", path=sysconfig.get_path("scripts"))
        if pyright is None:
            print("basedpyright is not installed; only mypy has looked at the examples")
            return failed
        settings = {
            "include": [folder],
            "extraPaths": [str(ROOT), folder],
            "typeCheckingMode": "standard",
            "reportPrivateImportUsage": False,  # confluent_kafka.admin does not name what it offers
            "pythonVersion": "3.11",
        }
        config = Path(folder, "pyrightconfig.json")
        config.write_text(json.dumps(settings), encoding="utf-8")
        command = [pyright, "--pythonpath", sys.executable, "--project", str(config)]
        return failed + bool(subprocess.run(command, cwd=ROOT, check=False).returncode)


if __name__ == "__main__":
    sys.exit(main())
