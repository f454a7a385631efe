"""Long logs of several controllers: the same report as when one worker holds them all."""

from __future__ import annotations

import pickle
import random
import tracemalloc
from pathlib import Path

import pytest
from crc32c import crc32c

from minicluster.log import heads
from minicluster.log.batch import CRC_START, HEADER_BYTES, RecordBatch
from minicluster.log.directory import locate
from minicluster.log.errors import NotALog
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


def damage_bytes(segment: Path, chance: random.Random) -> None:
    """A flipped byte, a lost tail, zeros, or a record that does not decode under its checksum."""
    content = bytearray(segment.read_bytes())
    kind = chance.choice(("flip", "flip", "head", "tail", "zeros", "record", "record", "text"))
    place = chance.randrange(len(content))
    if kind == "flip":
        content[place] ^= 255
    elif kind == "head":
        content[chance.randrange(30)] ^= 255
    elif kind == "tail":
        del content[place:]
    elif kind == "zeros":
        content += bytes(100)
    elif kind == "text":
        content[:] = b"no log"
    else:
        heads_of = list(heads.batch_heads(segment))
        head = chance.choice(heads_of)
        batch = RecordBatch.decode(bytes(content), head.position)
        bad = bytearray(batch.encoded)
        bad[chance.randrange(HEADER_BYTES, len(bad))] ^= 255
        bad[CRC_START - 4 : CRC_START] = crc32c(bytes(bad[CRC_START:])).to_bytes(4, "big")
        content[head.position : head.end] = bad
    segment.write_bytes(content)


@pytest.mark.parametrize("seeds", [range(8), pytest.param(range(8, 300), marks=pytest.mark.slow)])
def test_damaged_logs_are_left_out_as_when_they_are_held(
    seeds: range, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    batches = list(read_run(KAFKA_LOGS / "cluster", "cluster").committed)
    paths = []
    for seed in seeds:
        chance = random.Random(seed)
        count = chance.choice((1, 2, 3, 3, 5))
        copy = changed(batches, chance) if chance.random() < 0.5 else batches
        path = write(tmp_path / f"quorum-{seed}", [copy] * count)
        segments = sorted(path.glob(f"controller-*/{HOME}/*.log"))
        for segment in segments if chance.random() < 0.2 else segments[: 1 + count // 3]:
            damage_bytes(segment, chance)
        paths.append(path)

    refused = {path for path in paths if compare(path) is None}
    for path in refused:
        with pytest.raises(NotALog):
            read_run(path, path.name)
    check([path for path in paths if path not in refused], monkeypatch)


def test_a_record_that_every_copy_has_damaged_is_found_by_a_share(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All copies are equal, so a comparison does not decode it."""
    batches = list(read_run(KAFKA_LOGS / "cluster", "cluster").committed)
    path = write(tmp_path / "quorum", [batches] * 3)
    segments = sorted(path.glob(f"controller-*/{HOME}/*.log"))
    for segment in segments:
        content = bytearray(segment.read_bytes())
        head = list(heads.batch_heads(segment))[3]
        bad = content[head.position : head.end]
        bad[HEADER_BYTES + 6] ^= 255
        bad[CRC_START - 4 : CRC_START] = crc32c(bytes(bad[CRC_START:])).to_bytes(4, "big")
        content[head.position : head.end] = bad
        segment.write_bytes(content)

    check([path], monkeypatch)


def test_logs_without_their_beginning_are_judged_as_when_they_are_held(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    batches = list(read_run(KAFKA_LOGS / "cluster", "cluster").committed)
    paths = [write(tmp_path / f"of-{count}", [batches[4:]] * count) for count in (1, 3)]

    check([*paths, next(paths[0].glob(f"controller-1/{HOME}/*.log"))], monkeypatch)


def most_memory(records: int, folder: Path, *, is_damaged: bool = False) -> int:
    """The most bytes that a worker holds while it compares the logs of three controllers."""
    log = write_long_log(records, folder / "log")
    for number in (1, 2, 3):
        home = folder / "quorum" / f"controller-{number}"
        home.mkdir(parents=True)
        (home / HOME).symlink_to(log / HOME)
    if is_damaged:
        bad = next((log / HOME).glob("*.log"))
        own = folder / "quorum" / "controller-2" / HOME
        own.unlink()
        own.mkdir()
        content = bytearray(bad.read_bytes())
        content[-len(content) // 3] ^= 255
        (own / bad.name).write_bytes(content)
    tracemalloc.start()
    try:
        assert compare(folder / "quorum") is not None
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("is_damaged", [False, True])
def test_memory_does_not_grow_with_the_length_of_the_logs(
    is_damaged: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(heads, "SPLIT_BYTES", 64 << 10)
    most_memory(1_000, tmp_path / "first", is_damaged=is_damaged)  # loads what is loaded once
    short = most_memory(3_000, tmp_path / "short", is_damaged=is_damaged)
    long = most_memory(9_000, tmp_path / "long", is_damaged=is_damaged)

    assert long < 1.2 * short
