"""A start, an idle and a loaded second cost what they did at a recorded commit, or less.

Five per cent may come together. Both commits are measured here, by one interpreter. Where a rise is
wanted, ``counting.py`` gets a new ``BASE``.
"""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.bench.instructions import counting
from tests.bench.instructions.counting import (
    BASE,
    ROOT,
    culprit,
    has,
    lacking,
    millions,
    of_commit,
    risen,
)


def test_no_commit_since_the_base_has_made_a_cluster_dearer(benchmark: Any) -> None:
    if why := lacking():
        pytest.skip(why)
    if not has(BASE):
        pytest.skip(f"the commit {BASE} that this one is compared with is not in this clone")
    base, now = of_commit(BASE), dict[str, float]()
    benchmark.pedantic(lambda: now.update(millions(ROOT)), rounds=1)
    benchmark.extra_info["millions"] = {name: round(cost, 1) for name, cost in now.items()}
    dearer = risen(base, now)
    if dearer:
        name = dearer[0].partition(":")[0]
        dearer.append(f"most of {name} since {culprit(BASE, name, base[name], now[name])}")
    assert not dearer, "\n".join(dearer)


def test_a_rise_has_a_commit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def git(*arguments: str) -> str:
        who = ("-c", "user.name=a", "-c", "user.email=a@b")
        command = ("git", *who, *arguments)
        return subprocess.run(
            command, cwd=tmp_path, check=True, capture_output=True, text=True
        ).stdout.strip()

    git("init", "--quiet")
    costs, commits = [50.0, 50.5, 51.0, 60.0, 60.2, 59.9], list[str]()
    for cost in costs:
        git("commit", "--quiet", "--allow-empty", "--message", f"it costs {cost}")
        commits.append(git("rev-parse", "HEAD"))
    of_commits = {commit: {"idle": cost} for commit, cost in zip(commits, costs, strict=True)}
    monkeypatch.setattr(counting, "ROOT", tmp_path)
    monkeypatch.setattr(counting, "of_commit", lambda commit, works: of_commits[commit])

    base, now = of_commits[commits[0]], of_commits[commits[-1]]
    assert risen(base, now) == ["idle: 50.0 M, now 59.9 M (+20%)"]
    assert culprit(commits[0], "idle", 50.0, 59.9).endswith("it costs 60.0")
    assert risen(base, of_commits[commits[2]]) == []
