"""The guard of instructions (tests/bench/instructions) names the commit of a rise."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.bench.instructions import counting
from tests.bench.instructions.counting import culprit, risen


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
