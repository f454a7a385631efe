"""Users' programs in a run: lives, log lines, rebalances, last requests, in virtual time.

It is read from rows, of a saved run or of a cluster that runs: ``client_record`` rows of what
members own, some columns of ``rpc``, ``program_log``, and the lives of ``run.json``.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from operator import attrgetter
from typing import Any

from minicluster.errors import counted
from minicluster.values import Value
from minicluster.verify.evidence.run_header import ProgramLife, ProgramRun

LINES_SHOWN = 200  # of the programs' logs, the latest
LAST_REQUESTS = 4  # of each program
_ENDED = {"ended": "ended", "failed": "died", "killed": "was killed", "cancelled": "was cancelled"}

Row = Mapping[str, Any]


class Moment(Value):
    """An act of a program at a moment, a response to it, or a line of its log."""

    at_ms: int
    text: str
    is_line: bool = False


def moments_of_programs(
    apps: Sequence[ProgramRun], lines: Sequence[Row], owned: Iterable[Row], requests: Iterable[Row]
) -> list[Moment]:
    """The moments of all programs, in order.

    Shapes:  lines: of ``program_log``. owned: of ``client_record``, what members were given.
             requests: of ``rpc``: id, api, src, dst, sent_ms, error.
    """
    names = {app.node: app.name for app in apps}
    senders: dict[int, str] = {}
    last: dict[str, deque[Row]] = {}
    for row in requests:
        if (name := names.get(row["src"])) is not None:
            senders[row["id"]] = name
            last.setdefault(name, deque(maxlen=LAST_REQUESTS)).append(row)
    return sorted(
        [
            *_lives(apps),
            *_lines(lines),
            *_rebalances(owned, senders),
            *_last_requests(last),
        ],
        key=attrgetter("at_ms"),  # those of one moment stay in the order of a life
    )


def _lives(apps: Sequence[ProgramRun]) -> Iterator[Moment]:
    for app in apps:
        for number, life in enumerate(app.lives, 1):
            again = f" again (process {number})" if number > 1 else ""
            yield Moment(life.started_ms, f"{app.name} starts{again}")
            if life.ended not in (None, "stopped") and life.ended_ms is not None:
                yield Moment(life.ended_ms, f"{app.name} {_ended(life)}")


def _ended(life: ProgramLife) -> str:
    how = _ENDED.get(str(life.ended), f"was ended by {life.ended}")
    return how if life.error is None else f"{how} of {life.error}"


def _lines(lines: Sequence[Row]) -> Iterator[Moment]:
    left = len(lines) - LINES_SHOWN
    for row in lines[-LINES_SHOWN:]:
        at = f"{row['program']} {row['level']} {row['logger']}"
        yield Moment(row["vt"], f"{at}: {row['text']}", is_line=True)
    if left > 0:
        text = f"{counted(left, 'line')} that programs logged before: minicluster trace"
        yield Moment(lines[left]["vt"], text, is_line=True)


def _rebalances(owned: Iterable[Row], senders: Mapping[int, str]) -> Iterator[Moment]:
    """Who owns what in each generation of each group, when the last member was told."""
    generations: dict[tuple[str, int], dict[str, list[str]]] = {}
    told: dict[tuple[str, int], int] = {}
    for row in owned:
        name = senders.get(row["rpc"])
        if name is not None:
            key = row["group_id"], row["generation"]
            place = f"{row['topic'] or row['topic_id']}-{row['part']}"
            generations.setdefault(key, {}).setdefault(name, []).append(place)
            told[key] = max(row["vt"], told.get(key, 0))
    for key, owners in generations.items():
        each = "; ".join(
            f"{name} owns {', '.join(dict.fromkeys(sorted(places)))}"
            for name, places in sorted(owners.items())
        )
        yield Moment(told[key], f"group {key[0]}, generation {key[1]}: {each}")


def _last_requests(last: Mapping[str, Iterable[Row]]) -> Iterator[Moment]:
    for name, rows in last.items():
        shown = [
            f"{row['api']} to {row['dst']} at {row['sent_ms'] / 1000:.3f}s "
            f"({row['error'] or 'no response'})"
            for row in rows
        ]
        at_ms = max(row["sent_ms"] for row in rows)
        yield Moment(at_ms, f"the last requests of {name}: {', '.join(shown)}")
