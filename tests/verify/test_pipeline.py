"""The pipeline of Spark, without Spark: equal to judging whole runs."""

from __future__ import annotations

import pickle
import random
import sys
import tracemalloc
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from pyspark import cloudpickle

from minicluster.errors import UserError
from minicluster.log.errors import NotALog
from minicluster.log.format.limits import DEFAULT_LIMITS
from minicluster.verify.evidence.reading import named_paths, read_run
from minicluster.verify.judged import Judged
from minicluster.verify.log_rows import Item
from minicluster.verify.rules.every import RULES
from minicluster.verify.rules.own_rules import load_rules
from minicluster.verify.spark.judging_worker import Task, judge_rows
from minicluster.verify.whole import judge_item
from tests.verify.damage import Damage
from tests.verify.examples.by_rule import RUNS_BAD, RUNS_NEAR, by_name
from tests.verify.in_pipeline import judged_by_workers, rows_here, scanned
from tests.verify.in_process import judge_path
from tests.verify.logs_beside_rules import EVERY_LOG
from tests.verify.long_log import write_long_log
from tests.verify.quorum_logs import HOME, changed, damage_bytes, write
from tests.verify.test_log_rules import KAFKA_LOGS, RUNS


def said(judged: Judged) -> dict[str, Any]:
    """What the rules say."""
    return {
        rule: (tally.looked_at, tally.not_promised, tally.exempt, sorted(set(tally.findings)))
        for rule, tally in judged.tallies.items()
    }


def check(paths: Sequence[Path]) -> None:
    """Both drivers say the same of every path."""
    whole = [judge_path(path.absolute(), name, RULES) for path, name in named_paths(paths)]
    for one, other in zip(judged_by_workers(paths), whole, strict=True):
        assert said(one) == said(other), one.run.name
        assert one.crashes == other.crashes == {}
        for name in type(one.run).__struct_fields__:
            assert getattr(one.run, name) == getattr(other.run, name), (one.run.name, name)


def logs_by_hand(folder: Path) -> list[Path]:
    for name, case in EVERY_LOG.items():
        case().write(folder / name)
    batches = read_run(KAFKA_LOGS / "jbod", "jbod").committed
    for seed in range(8):
        Damage(batches, f"share-{seed}").write(folder / f"damaged-{seed}")
    return sorted(folder.iterdir())


def test_logs_are_judged_as_in_one_process(tmp_path: Path) -> None:
    check([*(KAFKA_LOGS / name for name in RUNS), *logs_by_hand(tmp_path)])


def test_one_process_folds_logs_that_it_does_not_hold(tmp_path: Path) -> None:
    paths = [*(KAFKA_LOGS / name for name in RUNS), *logs_by_hand(tmp_path)]
    for path, name in named_paths(paths):
        judged = judge_item(Item.at(path, name), RULES, (), DEFAULT_LIMITS)
        assert said(judged) == said(judge_path(path, name, RULES)), name
    (tmp_path / "text.log").write_text("no log" * 100)

    with pytest.raises(NotALog, match=r"text.log: not a Kafka log"):
        judge_item(Item.at(tmp_path / "text.log", "text"), RULES, (), DEFAULT_LIMITS)


def test_runs_are_judged_as_in_one_process(tmp_path: Path) -> None:
    runs = by_name(RUNS_BAD, RUNS_NEAR)
    for name in sorted(runs)[::20]:
        runs[name]().write(tmp_path / name)

    check(sorted(tmp_path.iterdir()))


@pytest.mark.parametrize("seeds", [range(8), pytest.param(range(8, 120), marks=pytest.mark.slow)])
def test_copies_that_differ_by_chance_are_compared_by_their_headers(
    seeds: range, tmp_path: Path
) -> None:
    batches = list(read_run(KAFKA_LOGS / "cluster", "cluster").committed)
    paths = []
    for seed in seeds:
        chance = random.Random(seed)
        logs = [changed(batches, chance) for _ in range(chance.choice((2, 3, 3, 5)))]
        paths.append(write(tmp_path / f"quorum-{seed}", logs))

    check(paths)


@pytest.mark.parametrize("seeds", [range(8), pytest.param(range(8, 300), marks=pytest.mark.slow)])
def test_damaged_logs_are_left_out_with_the_same_words(seeds: range, tmp_path: Path) -> None:
    batches = list(read_run(KAFKA_LOGS / "cluster", "cluster").committed)
    for seed in seeds:
        chance = random.Random(seed)
        count = chance.choice((1, 2, 3, 3, 5))
        copy = changed(batches, chance) if chance.random() < 0.5 else batches
        path = write(tmp_path / f"quorum-{seed}", [copy] * count)
        segments = sorted(path.glob(f"controller-*/{HOME}/*.log"))
        for segment in segments if chance.random() < 0.2 else segments[: 1 + count // 3]:
            damage_bytes(segment, chance)
        try:
            read_run(path, path.name)
        except UserError as error:
            with pytest.raises(type(error)) as refused:
                judged_by_workers([path])
            assert str(refused.value) == str(error)
        else:
            check([path])


def test_a_segment_that_begins_below_the_one_before_comes_behind_it(
    tmp_path: Path,
) -> None:
    batches = list(read_run(KAFKA_LOGS / "jbod", "jbod").committed)
    path = write(tmp_path / "log", [batches])
    home = path / "controller-1" / HOME
    first = home / f"{0:020d}.log"
    (home / f"{5:020d}.log").write_bytes(first.read_bytes())

    check([path])


def test_rules_of_a_users_file_count_their_cases_in_workers(tmp_path: Path) -> None:
    """A worker cannot import the file, so its rules go there by value."""
    file = tmp_path / "own.py"
    file.write_text(
        "from minicluster.verify.histories.partitions import PartitionStep\n"
        "from minicluster.verify.rules.rule import CASE, Findings, broken, rule\n"
        "@rule('MY1', 'Never one member', source='here')\n"
        "def never_one_member(step: PartitionStep) -> Findings:\n"
        "    'An ISR has more than one member.'\n"
        "    yield CASE\n"
        "    if step.after.isr and len(step.after.isr) == 1:\n"
        "        yield broken('one member')\n"
    )
    own = load_rules(file)
    sent = cloudpickle.dumps(Task.of((), own))
    del sys.modules[own.module.__name__]
    task = pickle.loads(sent)

    rows = rows_here([Item.at(KAFKA_LOGS / "cluster", "cluster")], task)

    (count,) = (row for row in rows if row.kind == "count")
    assert count.rule == "MY1" and count.looked_at > 10


def test_a_log_that_is_damaged_at_its_end_is_left_out_from_its_beginning(tmp_path: Path) -> None:
    """Its batches come before the damage is met, and count no more."""
    batches = list(read_run(KAFKA_LOGS / "cluster", "cluster").committed)
    path = write(tmp_path / "quorum", [batches[:-2], batches[:-2], batches])
    (segment,) = (path / "controller-3" / HOME).glob("*.log")
    content = bytearray(segment.read_bytes())
    content[-batches[-1].size - 5] ^= 255
    segment.write_bytes(bytes(content))

    (judged,) = judged_by_workers([path])

    assert judged.run.extent.end_offset == batches[-3].next_offset
    assert not judged.run.uncommitted
    check([path])


def most_memory(records: int, folder: Path) -> int:
    """The most bytes that a task holds while it judges a log whose rows come one by one."""
    path = write_long_log(records, folder / str(records))
    rows = scanned([Item.at(path, "long")]).to_batches(max_chunksize=20)
    tracemalloc.start()
    try:
        assert len(list(judge_rows(Task.of(RULES), DEFAULT_LIMITS, rows))) == 1
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def test_memory_does_not_grow_with_the_length_of_a_log(tmp_path: Path) -> None:
    most_memory(1_000, tmp_path / "first")  # loads what is loaded once
    short, long = most_memory(3_000, tmp_path), most_memory(9_000, tmp_path)

    assert long < 1.2 * short
