"""When records of the metadata log were committed: by the quorum's first high watermark above."""

from __future__ import annotations

from bisect import bisect_left, bisect_right

from minicluster.verify.histories.timeline import CommittedPartition
from minicluster.verify.histories.traced_run import TracedRun


class Commits:
    """When each offset of the metadata log was committed."""

    def __init__(self, run: TracedRun) -> None:
        self._ends: list[int] = []  # high watermarks, each higher than all before it
        self._seqs: list[int] = []
        self._times: list[int] = []
        for row in run.rows("raft_event"):
            if row["kind"] != "hw" or row["offset"] is None:
                continue
            if not self._ends or row["offset"] > self._ends[-1]:
                self._ends.append(row["offset"])
                self._seqs.append(row["seq"])
                self._times.append(row["vt"])

    def seq_of(self, offset: int) -> int | None:
        """The event by which an offset was committed; None if the trace does not show it."""
        place = bisect_right(self._ends, offset)
        return self._seqs[place] if place < len(self._seqs) else None

    def end_before(self, event: int) -> int | None:
        """The high watermark by an event; None before the first."""
        place = bisect_left(self._seqs, event)
        return self._ends[place - 1] if place else None

    @property
    def last_ms(self) -> int | None:
        """The time at which something was committed last."""
        return self._times[-1] if self._times else None

    def at_ms(self, offset: int) -> int | None:
        """The time at which an offset was committed; None if the trace does not show it."""
        place = bisect_right(self._ends, offset)
        return self._times[place] if place < len(self._times) else None

    def last_at(self, at_ms: int) -> int | None:
        """The last offset that was committed by a moment; None where none was."""
        place = bisect_right(self._times, at_ms) - 1
        return self._ends[place] - 1 if place >= 0 and self._ends[place] else None


def commits(run: TracedRun) -> Commits:
    """Context: when each offset of the metadata log was committed."""
    return Commits(run)


def commits_of_partitions(run: TracedRun) -> list[tuple[int, CommittedPartition]]:
    """The committed states of partitions, in order, each with the event that committed it.

    Without the last ones, of which the trace does not show when they were committed.
    """
    committed = run.context(commits)
    states = [
        (seq, state)
        for states in run.timeline.partitions.values()
        for state in states
        if state.step.leaves_a_state and (seq := committed.seq_of(state.offset)) is not None
    ]
    return sorted(states, key=lambda known: (known[0], known[1].offset))
