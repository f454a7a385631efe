"""The compiled wheel plays every run as the pure package does: the same trace, to the byte."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.compiled.builds import COMPILED, PURE, ROOT, needs_compiled, output, start
from tests.compiled.modules import modules

EXAMPLES = [str(path) for path in sorted((ROOT / "examples").rglob("*.yaml"))]
PLANTED = [str(path) for path in sorted((ROOT / "tests" / "zoo").glob("*.yaml"))]
SEEDS = [*map(str, range(1, 13)), *(f"zookeeper {seed}" for seed in range(1, 5))]

pytestmark = [pytest.mark.compiled, needs_compiled]


def test_both_builds_play_the_same_runs() -> None:
    """A run's hash is over every event of its trace, so the builds differ nowhere in it."""
    request = json.dumps({"names": [*EXAMPLES, *PLANTED, *SEEDS], "modules": list(modules())})
    play = str(Path(__file__).with_name("play.py"))
    pure, compiled = (
        json.loads(output(start(python, play), request)) for python in (PURE, COMPILED)
    )
    assert {Path(file).suffix for file in pure["modules"].values()} == {".py"}
    not_native = [name for name, file in compiled["modules"].items() if not file.endswith(".so")]
    assert not_native == [], "these modules of the wheel are not compiled"
    assert all(trace_hash for trace_hash, _ in pure["played"].values())
    assert compiled["played"] == pure["played"]
