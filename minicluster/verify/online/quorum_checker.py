"""E06 while a cluster runs: a leader's high watermark is on the disks of a majority of its voters.

The rows are those of ``raft_event``, in the order of their events. In a quorum of one controller
nothing else shows that a leader counts what it has not flushed: nobody holds another log.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from minicluster.verify.online.findings import Findings
from minicluster.verify.rules.model import Finding
from minicluster.verify.rules.online import online_rule
from minicluster.verify.rules.promises import Promises
from minicluster.verify.rules.trace.quorum import GOES_BACK, HELD_BY_A_MAJORITY

JUDGED = frozenset({"begin", "flush", "hw"})
"""The kinds of events of what is on a disk, and of what counts as committed."""
_RULE = "E06"
_GOES_BACK, _MAJORITY = map(online_rule(_RULE).checks.index, (GOES_BACK, HELD_BY_A_MAJORITY))


class QuorumChecker:
    """Judges the events of the quorum's nodes one by one; each call returns the new findings."""

    def __init__(self, run: str, promises: Promises) -> None:
        counts = {_RULE: 0}, {_RULE: 0}
        self._new = Findings(run, promises, -1, *counts)
        self.looked_at = self._new.looked_at
        self._held: dict[int, int] = {}  # node -> the end of what is on its disk
        self._lost: dict[int, int] = {}  # node -> the end of what a lost disk held
        self._high_watermarks: dict[tuple[int, str | None], int] = {}  # of incarnations

    def on_raft_event(self, row: Mapping[str, Any]) -> list[Finding]:
        """An event of a node."""
        kind = row["kind"]
        if kind not in JUDGED:
            return []
        node, offset = row["node"], row.get("offset")
        if kind in ("flush", "begin") and offset is not None:
            before = self._held.get(node)
            if kind == "begin" and before is not None and offset < before:
                self._lost[node] = max(before, self._lost.get(node, -1))
            self._held[node] = offset
        elif kind == "hw" and offset is not None:
            self._on_high_watermark(node, row.get("incarnation"), offset, row.get("voters"))
        return self._new.take_new()

    def _on_high_watermark(
        self, node: int, incarnation: str | None, offset: int, voters: str | None
    ) -> None:
        before = self._high_watermarks.get((node, incarnation))
        self._high_watermarks[node, incarnation] = offset
        if before is not None:
            self._new.look(_RULE, _GOES_BACK, None)
            if offset < before:
                self._new.find(_RULE, _GOES_BACK, offset=offset, broker=node, number=before)
        if voters is None:
            return
        ids = _ids_of(voters)
        held, lost, holders, unrecorded = self._held, self._lost, 0, 0
        for one in ids:
            if one not in held:
                unrecorded += 1  # a voter in another process: its disk may hold it
            elif held[one] >= offset or lost.get(one, -1) >= offset:
                holders += 1
        self._new.look(_RULE, _MAJORITY, None)
        if 2 * (holders + unrecorded) <= len(ids):
            self._new.find(_RULE, _MAJORITY, offset=offset, broker=node, number=holders)


@lru_cache(maxsize=1024)
def _ids_of(voters: str) -> tuple[int, ...]:
    """The ids in ``101@<directory id>,102@…``, which changes only with the voters."""
    return tuple(int(voter.partition("@")[0]) for voter in voters.split(","))
