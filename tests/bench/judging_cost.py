"""What it costs to judge a run in this process, for the benchmarks of the judge."""

from __future__ import annotations

import time
import tracemalloc
from collections.abc import Iterable

from minicluster.verify.evidence.run import Run
from minicluster.verify.rules.every import RULES
from minicluster.verify.whole import judge_whole


def seconds_and_bytes(run: Run, judged_by: Iterable[str]) -> tuple[float, int]:
    """The processor time of a judgement, and Python's memory at its peak in another one.

    Shapes:  judged_by: rules that must have had a case, or the benchmark measures nothing.
    """
    begun = time.process_time()
    judged = judge_whole(run, RULES)
    seconds = time.process_time() - begun
    assert not judged.crashes
    for rule in judged_by:
        assert judged.tallies[rule].looked_at, rule
    tracemalloc.start()
    judge_whole(run, RULES)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return seconds, peak
