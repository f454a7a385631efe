"""A damaged checkpoint accuses nobody, whoever reads it: what cannot be read is unknown."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from minicluster.actors.cluster.adoption import read_log_end
from minicluster.cli import run
from minicluster.errors import UserError
from minicluster.log.directory import METADATA_DIRECTORY
from minicluster.log.format.limits import DEFAULT_LIMITS
from minicluster.verify import Verdict
from minicluster.verify.evidence.reading import read_run
from minicluster.verify.reporting.comparison import compare
from tests.verify.damaged_checkpoints import KINDS, Damage, damage
from tests.verify.in_process import verified

KAFKA_LOGS = Path(__file__).parents[1] / "data" / "kafka-logs"
each_damage = pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)


def copied(source: str, tmp_path: Path, kind: Damage, which: int) -> tuple[Path, Path]:
    """A controller's folder with one damaged checkpoint, and that file."""
    folder = tmp_path / "controller-101"
    shutil.copytree(KAFKA_LOGS / source / "controller-101", folder)
    file = sorted((folder / METADATA_DIRECTORY).glob("*.checkpoint"))[which]
    damage(file, kind)
    return folder, file


Beside = Callable[[Damage], tuple[Path, Path]]


@pytest.fixture
def beside(tmp_path: Path) -> Beside:
    """One of seven snapshots beside a log that is whole."""
    return lambda kind: copied("cluster-3.3", tmp_path, kind, 3)


@pytest.fixture
def beginning(tmp_path: Path) -> Beside:
    """The snapshot with which a log begins."""
    return lambda kind: copied("trimmed", tmp_path, kind, 0)


@each_damage
def test_beside_a_sound_log_rules_about_snapshots_are_unknown_with_file_and_byte(
    kind: Damage, beside: Beside
) -> None:
    folder, file = beside(kind)

    report = verified(folder)

    assert report.findings == ()
    unknown = {each.id: each.reasons for each in report.rules if each.verdict is Verdict.UNKNOWN}
    assert [*unknown] == ["E34", "E46"]
    for rule, (reason,) in unknown.items():
        assert f"{file}: " in reason and "at byte " in reason
        assert report.rule(rule).looked_at, "the others are judged"
    assert report.rule("E34").looked_at == 6


@pytest.mark.spark
@pytest.mark.parametrize("kind", KINDS[:1] + KINDS[4:5], ids=lambda kind: kind.__name__)
def test_spark_says_the_same(kind: Damage, beside: Beside) -> None:
    from minicluster.verify import verify

    folder, _ = beside(kind)
    here, there = verified(folder), verify(folder)

    assert there.verdict is here.verdict is Verdict.UNKNOWN
    assert there.rule("E34").reasons == here.rule("E34").reasons


@each_damage
def test_where_a_log_begins_with_it_the_state_is_unknown(kind: Damage, beginning: Beside) -> None:
    folder, file = beginning(kind)

    report = verified(folder)

    assert (report.verdict, report.findings) == (Verdict.UNKNOWN, ())
    for read in (read_log_end, lambda path: compare(*2 * [read_run(path, "log")])):
        with pytest.raises(UserError) as rejected:
            read(folder)
        assert f"{file}: " in str(rejected.value) and "at byte " in str(rejected.value)
        assert "\n" not in str(rejected.value)


@each_damage
def test_beside_a_sound_log_its_end_is_known(kind: Damage, beside: Beside) -> None:
    folder, _ = beside(kind)
    whole = KAFKA_LOGS / "cluster-3.3" / "controller-101"

    assert read_log_end(folder).image == read_log_end(whole).image
    assert compare(read_run(folder, "left"), read_run(whole, "right")).is_same


@each_damage
def test_log_shows_the_rest_and_names_it(
    kind: Damage, beside: Beside, capfd: pytest.CaptureFixture[str]
) -> None:
    folder, file = beside(kind)

    assert run(["log", str(folder)]) == 65

    out, err = capfd.readouterr()
    assert f"{file}: " in out and f"{file}: " in err and "at byte " in err
    headings = [line for line in out.splitlines() if line.startswith("== ")]
    others = {path.name for path in (folder / METADATA_DIRECTORY).glob("*.*")} - {file.name}
    assert {heading.rpartition("/")[2] for heading in headings} >= others - {"partition.metadata"}


@each_damage
def test_alone_it_is_one_line(
    kind: Damage, beginning: Beside, capfd: pytest.CaptureFixture[str]
) -> None:
    _, file = beginning(kind)

    for command in (
        ["log", str(file)],
        ["compare", str(file), str(file)],
        ["what-if", str(file), "kill 2"],
    ):
        assert run(command) in (65, 66), command
        (line,) = capfd.readouterr().err.splitlines()
        assert str(file) in line, command


@each_damage
def test_its_records_are_no_rows_of_a_view(kind: Damage, beside: Beside) -> None:
    """Neither is one without header or footer taken for a whole one."""
    from minicluster.verify.log_rows import Item
    from minicluster.verify.shown.frames import rows_here

    folder, file = beside(kind)

    with pytest.raises(UserError) as rejected:
        list(rows_here("snapshot_records", [Item.at(folder, "log")], DEFAULT_LIMITS))
    assert file.name in str(rejected.value) and "at byte " in str(rejected.value)


@each_damage
def test_states_of_a_log_that_begins_with_it_are_unknown(kind: Damage, beginning: Beside) -> None:
    from minicluster.verify.log_rows import Item
    from minicluster.verify.shown.frames import rows_here
    from minicluster.verify.shown.worker import CannotBeShown

    folder, file = beginning(kind)

    with pytest.raises(CannotBeShown) as rejected:
        list(rows_here("partition_states", [Item.at(folder, "log")], DEFAULT_LIMITS))
    assert file.name in str(rejected.value) and "at byte " in str(rejected.value)


@each_damage
def test_findings_are_not_followed_from_it(kind: Damage, beginning: Beside) -> None:
    from minicluster.verify.spark.findings_stream import _judge_of

    folder, file = beginning(kind)

    with pytest.raises(UserError) as rejected:
        _judge_of(folder, "log")
    assert f"{file}: " in str(rejected.value) and "at byte " in str(rejected.value)
