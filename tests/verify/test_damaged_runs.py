"""Damaged run folders: *unknown* with the file's name, or one line and exit code 65."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from minicluster.errors import UserError
from minicluster.trace import COMMON, INT32_COLUMNS, REQUIRED, TABLES
from minicluster.verify import Verdict
from minicluster.verify.evidence.reading import read_runs
from minicluster.verify.evidence.run import Problem
from minicluster.verify.rules.every import RULES
from minicluster.verify.whole import judge_whole
from tests.verify.damaged_runs import (
    FILE_DAMAGE,
    FOREIGN,
    SEEN_UNSIGNED,
    Chance,
    Damage,
    damaged_header,
    saved_run,
    sign,
    unsigned,
)
from tests.verify.in_process import verified


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return saved_run(tmp_path_factory.mktemp("runs") / "whole")


def damaged(whole: Path, folder: Path, damage: Damage) -> Path:
    copy = shutil.copytree(whole, folder)
    damage(copy)
    return copy


def problems(run: Path) -> tuple[Problem, ...]:
    """The problems of a run, its trace read as for the rules."""
    (read,) = read_runs([run])
    return judge_whole(read, RULES).run.problems


def test_a_whole_run_has_no_problem(whole: Path) -> None:
    assert problems(whole) == ()


def test_what_is_checked_of_a_table_is_in_the_table() -> None:
    declared = {name: {*COMMON, *columns} for name, columns in TABLES.items()}

    assert {*REQUIRED} == {*TABLES}
    assert all({*names} <= declared[table] for table, names in REQUIRED.items())
    assert {*INT32_COLUMNS} <= set().union(*declared.values())


@pytest.mark.parametrize("kind", FILE_DAMAGE)
def test_a_file_that_the_run_did_not_write_so_is_named(
    kind: str, whole: Path, tmp_path: Path
) -> None:
    found = problems(damaged(whole, tmp_path / "r", FILE_DAMAGE[kind]))

    assert found
    for problem in found:
        assert str(tmp_path / "r") in problem.why
        assert "\n" not in problem.why


@pytest.mark.parametrize("kind", SEEN_UNSIGNED)
def test_damage_shows_in_contents_where_no_digest_is_listed(
    kind: str, whole: Path, tmp_path: Path
) -> None:
    run = damaged(whole, tmp_path / "r", FILE_DAMAGE[kind])
    unsigned(run)

    assert problems(run)


@pytest.mark.parametrize("kind", FOREIGN)
def test_what_no_run_writes_is_one_line_and_65(kind: str, whole: Path, tmp_path: Path) -> None:
    damage, word = FOREIGN[kind]
    run = damaged(whole, tmp_path / "r", damage)
    if "column" in kind or "range" in kind:
        sign(run)
    with pytest.raises(UserError) as raised:
        problems(run)

    assert raised.value.exit_code == 65
    assert word in str(raised.value) and str(tmp_path) in str(raised.value)
    assert "\n" not in str(raised.value)


def test_a_path_that_is_not_utf_8_is_one_line_and_65(whole: Path, tmp_path: Path) -> None:
    folder = Path(os.fsdecode(os.fsencode(tmp_path) + b"/r\xff"))
    shutil.copytree(whole, folder)
    with pytest.raises(UserError, match=r"r\\xff: the path is not UTF-8") as raised:
        read_runs([folder])

    assert raised.value.exit_code == 65


def _fuzzed(whole: Path, folder: Path, seed: int) -> None:
    damage = Chance(seed)
    run = damaged(whole, folder / f"file-{seed}", damage)
    try:
        assert problems(run), f"seed {seed}: {damage.done}: nothing was noticed"
    except UserError as error:
        assert error.exit_code in (65, 66), f"seed {seed}: {damage.done}: {error}"
    shutil.rmtree(run)
    run = shutil.copytree(whole, folder / f"header-{seed}")
    what = damaged_header(run, seed)
    try:
        problems(run)
    except UserError as error:
        assert error.exit_code == 65, f"seed {seed}: {what}: {error}"
        assert str(error).isprintable(), f"seed {seed}: {what}: {error!a}"
    shutil.rmtree(run)


def test_no_damage_goes_unnoticed_and_none_is_a_traceback(whole: Path, tmp_path: Path) -> None:
    for seed in range(20):
        _fuzzed(whole, tmp_path, seed)


@pytest.mark.slow
def test_no_damage_of_many_goes_unnoticed(whole: Path, tmp_path: Path) -> None:
    for seed in range(1_000, 1_600):
        _fuzzed(whole, tmp_path, seed)


def test_damaged_evidence_accuses_nobody(whole: Path, tmp_path: Path) -> None:
    runs = [damaged(whole, tmp_path / kind, damage) for kind, damage in FILE_DAMAGE.items()]
    for index, damage in enumerate((FILE_DAMAGE["no_json"], FILE_DAMAGE["no_api"])):
        runs.append(damaged(whole, tmp_path / f"unsigned-{index}", damage))
        unsigned(runs[-1])
    report = verified(whole, *runs)

    assert report.findings == ()
    words: dict[str, set[Verdict]] = {}
    for result in report.rules:
        for run, word, _ in result.by_run:
            words.setdefault(run, set()).add(word)
    assert Verdict.UNKNOWN not in words.pop("whole")
    assert [run for run, found in words.items() if Verdict.UNKNOWN not in found] == []
