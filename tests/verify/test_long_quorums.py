"""Long logs of several controllers: the same report as when one worker holds them all."""

from __future__ import annotations

import pickle
import random
import tracemalloc
from pathlib import Path

import pytest

from minicluster.log import heads
from minicluster.log.batch import RecordBatch
from minicluster.log.directory import locate
from minicluster.log.format.limits import DEFAULT_LIMITS
from minicluster.log.segment import segment_name, write_segment
from minicluster.verify.evidence.reading import read_run
from minicluster.verify.spark.long.quorums import LongQuorum, compare_logs
from tests.bench.verify_log import write_long_log
from tests.verify.test_long_logs import check
from tests.verify.test_spark_rules import KAFKA_LOGS, RUNS

SEVERAL = [name for name in RUNS if len(read_run(KAFKA_LOGS / name, name).nodes) > 1]
HOME = "__cluster_metadata-0"


def quorum_of(path: Path) -> LongQuorum:
    return LongQuorum(path, path.name, locate(path, limits=DEFAULT_LIMITS).logs)


def compare(path: Path) -> object:
    """The comparison of a quorum's logs, None where they have to be held."""
    return pickle.loads(compare_logs(pickle.dumps((quorum_of(path), DEFAULT_LIMITS, None))))


def write(folder: Path, logs: list[list[RecordBatch]]) -> Path:
    """The logs of controllers, from 1 on."""
    for number, batches in enumerate(logs, 1):
        home = folder / f"controller-{number}" / HOME
        home.mkdir(parents=True)
        write_segment(home / segment_name(batches[0].base_offset), batches)
    return folder


def changed(batches: list[RecordBatch], chance: random.Random) -> list[RecordBatch]:
    """A controller's copy: its tail is not there yet, it is of another leader, a batch is lost."""
    kind, found = chance.choice(("end", "end", "tail", "lost", "same")), list(batches)
    place = chance.randrange(len(found) // 2, len(found))
    if kind == "end":
        del found[place:]
    elif kind == "tail":
        epoch = found[-1].leader_epoch + chance.randrange(3)
        found[place:] = [one.with_base(one.base_offset, epoch) for one in found[place:]]
    elif kind == "lost":
        del found[place]
    if chance.random() < 0.3:  # retention: the log begins later
        del found[: chance.randrange(1, 4)]
    return found


def test_kafkas_quorums_are_judged_side_by_side_as_when_they_are_held(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    paths = [KAFKA_LOGS / name for name in SEVERAL]

    assert len(paths) > 2
    assert all(compare(path) is not None for path in paths)
    check(paths, monkeypatch)


@pytest.mark.parametrize("seeds", [range(8), pytest.param(range(8, 120), marks=pytest.mark.slow)])
def test_copies_that_differ_by_chance_are_judged_as_when_they_are_held(
    seeds: range, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    batches = list(read_run(KAFKA_LOGS / "cluster", "cluster").committed)
    paths = []
    for seed in seeds:
        chance = random.Random(seed)
        logs = [changed(batches, chance) for _ in range(chance.choice((2, 3, 3, 5)))]
        paths.append(write(tmp_path / f"quorum-{seed}", logs))

    assert sum(compare(path) is not None for path in paths) > len(seeds) / 2
    check(paths, monkeypatch)


def test_damaged_logs_are_held_and_judged_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    batches = list(read_run(KAFKA_LOGS / "cluster", "cluster").committed)
    path = write(tmp_path / "quorum", [batches] * 3)
    segment = next(path.glob(f"controller-2/{HOME}/*.log"))
    content = bytearray(segment.read_bytes())
    content[len(content) // 2] ^= 255
    segment.write_bytes(content)
    torn = write(tmp_path / "torn", [batches] * 3)
    last = next(torn.glob(f"controller-3/{HOME}/*.log"))
    last.write_bytes(last.read_bytes()[:-10])

    assert compare(path) is None
    assert compare(torn) is not None
    check([path, torn], monkeypatch)


def most_memory(records: int, folder: Path) -> int:
    """The most bytes that a worker holds while it compares the logs of three controllers."""
    log = write_long_log(records, folder / "log")
    for number in (1, 2, 3):
        home = folder / "quorum" / f"controller-{number}"
        home.mkdir(parents=True)
        (home / HOME).symlink_to(log / HOME)
    tracemalloc.start()
    try:
        assert compare(folder / "quorum") is not None
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def test_memory_does_not_grow_with_the_length_of_the_logs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(heads, "SPLIT_BYTES", 64 << 10)
    most_memory(1_000, tmp_path / "first")  # loads what is loaded once
    short, long = most_memory(3_000, tmp_path / "short"), most_memory(9_000, tmp_path / "long")

    assert long < 1.2 * short
