"""The header of a run, ``run.json``, as it was written at the end: one step by itself.

========================  ========================================================================
takes                     ``run.json``
keeps                     nothing
yields                    ``RunHeader``
========================  ========================================================================

It reads no table, but a plain log has no header, and a damaged one is empty.
"""

from __future__ import annotations

from minicluster.verify.evidence.run_header import RunHeader
from minicluster.verify.histories.traced_run import TracedRun, history
from minicluster.verify.judging import Judge


@history(RunHeader, reads=())
def header(run: TracedRun, judge: Judge) -> None:
    """The header of the run."""
    if run.evidence.header is not None:
        judge.take(run.evidence.header)
