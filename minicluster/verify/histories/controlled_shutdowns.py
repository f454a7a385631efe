"""Controlled shutdowns: how long each waited while no other node was disturbed.

========================  ========================================================================
takes                     ``fault`` rows
keeps                     the brokers that shut down and since when; the disturbances that last
yields                    ``shutdowns``: brokers with the milliseconds that each waited
========================  ========================================================================

Other than the rest of the promises about time it counts in the middle of a run, since a broker that
is down is itself a disturbance. It counts from the shutdown on, or from when the others must be
back after what disturbed them last; what disturbs them meanwhile restarts the wait, and what
disturbs the broker itself ends it.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any

from minicluster.trace import EXIT
from minicluster.verify.histories.traced_run import Row

_ENDS_PROCESS = ("kill", "bounce", "wipe", "fail_over", "controlled_shutdown")
_MOMENTS = ("resign", "snapshot", "compact", "restart")  # these last no time of their own
_OWN = ("fail_dir", "mutate")  # of one broker's disk, and planted: nothing waits for their end


def shutdowns(
    faults: Iterable[Row], brokers: Iterable[int], alive_ms: int, ended_ms: int
) -> Iterator[tuple[int, int]]:
    """The brokers that shut down, and the milliseconds that each waited.

    Shapes:  faults: in the order of their events. alive_ms: the time after a disturbance in which
             the others come back.
    """
    of_brokers, waiting = set(brokers), dict[int, int]()
    lasting: set[tuple[str, str]] = set()
    ready_ms = alive_ms

    def waited(broker: int, until_ms: int) -> Iterator[tuple[int, int]]:
        since_ms = waiting.pop(broker)
        if not lasting and until_ms >= max(since_ms, ready_ms):
            yield broker, until_ms - max(since_ms, ready_ms)

    for row in faults:
        action, phase, at_ms = row["action"], row["phase"], row["vt"]
        targets = json.loads(row["targets"] or "[]")
        if action == EXIT:
            for node in targets:
                if node in waiting:
                    yield from waited(node, at_ms)
                    lasting.add(("down", json.dumps(node)))
            continue
        if phase not in ("start", "stop") or action in _OWN or not targets:
            continue
        if action == "controlled_shutdown" and of_brokers.issuperset(targets):
            waiting |= dict.fromkeys(targets, at_ms)
            continue
        for node in [target for target in targets if isinstance(target, int)]:
            if node in waiting:
                yield from waited(node, at_ms)
        ready_ms = at_ms + alive_ms
        for target in targets:
            _disturb(lasting, action, phase, target)
    for broker in list(waiting):
        yield from waited(broker, ended_ms)


def _disturb(lasting: set[tuple[str, str]], action: str, phase: str, target: Any) -> None:
    """Begin or end what disturbs a node, or a link: whatever ends on a link ends all of it."""
    kind = "link" if isinstance(target, list) else action
    key = json.dumps([target[0], target[-1]] if kind == "link" and target else target)
    if action == "restart":
        lasting.discard(("down", key))
    elif action in _ENDS_PROCESS:
        lasting.add(("down", key))
    elif phase == "stop":
        lasting.discard(("pause" if action == "resume" else kind, key))
    elif action not in _MOMENTS:
        lasting.add((kind, key))
