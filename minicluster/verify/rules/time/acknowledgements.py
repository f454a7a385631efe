"""Produces with acks=all, from when the high watermarks have passed their records (G8).

A request waits for all of its partitions: the acknowledgements of one broker at one time count from
the last of their high watermarks, and where one of them times out uncommitted, none is late.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from minicluster.protocol.error_codes import ErrorCode
from minicluster.verify.rules.time.waits import Key, Waits

Row = Mapping[str, Any]
TIMED_OUT = "timed_out"
_MARK = f'"errorCode":{int(ErrorCode.REQUEST_TIMED_OUT)},'


def timed_out(rows: Iterable[Row]) -> Iterator[dict[str, Any]]:
    """The partitions for which the response to a Produce has an offset, and REQUEST_TIMED_OUT.

    Shapes:  rows in the form of a partition's events, of the kind ``TIMED_OUT``.
    """
    for row in rows:
        is_complete = row["resp_seq"] is not None and row["completed_ms"] is not None
        if row["api"] != "Produce" or not is_complete or _MARK not in (row["response"] or ""):
            continue
        event = {"kind": TIMED_OUT, "seq": row["resp_seq"], "vt": row["completed_ms"]}
        event |= {"handle_seq": row["handle_seq"], "broker": row["dst"]}
        for topic in json.loads(row["response"])["responses"]:
            for part in topic["partitionResponses"]:
                if part["errorCode"] == ErrorCode.REQUEST_TIMED_OUT and part["baseOffset"] >= 0:
                    place = {"topic": topic.get("name"), "part": part["index"]}
                    yield event | place | {"offset": part["baseOffset"]}


class Acknowledgements:
    """The partitions that a broker acknowledges at one time."""

    def __init__(self, waits: Waits) -> None:
        self._waits = waits
        self._passed: dict[int, dict[Key, tuple[int, int]]] = {}  # high watermark, response

    def add(self, key: Key, passed_ms: int | None, at_ms: int) -> None:
        """A partition is acknowledged, whose high watermark passed its records by then."""
        self._waits.case("G8", key)
        if key[2] is not None and passed_ms is not None:
            self._passed.setdefault(key[2], {})[key] = (passed_ms, at_ms)

    def time_out(self, key: Key, passed_ms: int | None, at_ms: int) -> None:
        """A partition times out: its records are committed, or others wait for it rightly."""
        if passed_ms is None and key[2] is not None:
            self._passed.pop(key[2], None)
        self.add(key, passed_ms, at_ms)

    def until(self, broker: int, at_ms: int) -> None:
        """Judge what a broker has acknowledged, once its time goes on."""
        passed = self._passed.get(broker)
        if passed is not None and at_ms > max(at for _, at in passed.values()):
            self._judge(self._passed.pop(broker))

    def end(self) -> None:
        """Judge what is left at the end of a run."""
        for passed in self._passed.values():
            self._judge(passed)

    def _judge(self, passed: dict[Key, tuple[int, int]]) -> None:
        since_ms = max(since for since, _ in passed.values())
        for key, (_, at_ms) in passed.items():
            self._waits.stretch("G8", key, since_ms, at_ms)
