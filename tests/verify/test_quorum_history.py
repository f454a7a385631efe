"""The controllers' logs, taken one batch at a time, as a divided judge does."""

from __future__ import annotations

import random
from collections.abc import Iterable

import pytest

from minicluster.log.batch import RecordBatch
from minicluster.verify.evidence.reading import read_run
from minicluster.verify.histories.releases import Releases
from minicluster.verify.judging import Judge
from minicluster.verify.quorum.controller_logs import ControllerLogs
from minicluster.verify.rules.every import BY_ID
from tests.verify.test_log_rules import KAFKA_LOGS, RUNS

SEVERAL = [name for name in RUNS if len(read_run(KAFKA_LOGS / name, name).nodes) > 1]


def changed(batches: list[RecordBatch], chance: random.Random) -> list[RecordBatch]:
    """A controller's copy: it has another batch somewhere, a batch is lost, it begins later."""
    copy, place = list(batches), chance.randrange(4, len(batches) - 1)
    match chance.choice(("other", "lost", "same")):
        case "other":
            here = copy[place]
            copy[place] = copy[place + 1].with_base(here.base_offset, here.leader_epoch)
        case "lost":
            del copy[place]
    return copy[chance.randrange(4) :]


def copies_found(batches: Iterable[tuple[int, RecordBatch]]) -> tuple[int, set[str]]:
    """E05 over batches of nodes in the order of their offsets: cases, sentences."""
    judge = Judge("run", [BY_ID["E05"]])
    logs = ControllerLogs(Releases())
    for node, batch in sorted(batches, key=lambda one: one[1].base_offset):
        judge.hear(logs.on_batch(node, batch))
    judge.hear(logs.at_end())
    tally = judge.tally("E05")
    return tally.looked_at, {finding.message for finding in tally.findings}


@pytest.mark.parametrize("seed", range(12))
def test_copies_are_compared_alike_in_any_number_of_shares(seed: int) -> None:
    """Shares of the offsets, each with the batches of all controllers there."""
    chance = random.Random(seed)
    print(f"seed {seed}")
    node = read_run(KAFKA_LOGS / SEVERAL[0], "run").nodes[0]
    logs = [changed(list(node.batches), chance) for _ in range(3)]
    every = [(number, batch) for number, log in enumerate(logs, 1) for batch in log]
    whole = copies_found(every)
    assert whole[0] > 0
    count = chance.randrange(2, 6)
    shares = [
        copies_found(one for one in every if one[1].base_offset % count == share)
        for share in range(count)
    ]
    assert (
        sum(cases for cases, _ in shares),
        set().union(*(found for _, found in shares)),
    ) == whole


def test_each_batch_of_a_long_log_is_a_case() -> None:
    batches = read_run(KAFKA_LOGS / SEVERAL[0], "run").nodes[0].batches
    judge = Judge("run", [BY_ID["E01"], BY_ID["E02"], BY_ID["E03"]])
    logs = ControllerLogs(Releases())
    for batch in batches:
        judge.hear(logs.on_batch(1, batch))
    last = batches[-1]
    for _ in range(1_000):
        last = last.with_base(last.last_offset + 1, last.leader_epoch)
        judge.hear(logs.on_batch(1, last))
    assert judge.tally("E01").looked_at == len(batches) + 1_000
    assert judge.tally("E01").findings == []
