"""The partition rules in Python: per check, the steps that it judges and those that break it.

Each entry names a rule and the number of its check, which has the text of the finding.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import Enum
from typing import Any

from minicluster.lazy_dataclass import dataclass
from minicluster.verify.online.steps.transitions import Transition
from minicluster.verify.rules.log.partitions import FIELDS


class Of(Enum):
    """The steps that a check may judge; for others it is not looked at."""

    ANY = "any"
    STATE = "state"
    CHANGE = "change"
    ELR = "elr"
    UNCLEAN = "unclean"


@dataclass(frozen=True, slots=True)
class StepCheck:
    """One check of one rule over steps.

    Shapes:  when: among the steps that it may judge those that it does, None for all of them.
    """

    rule: str
    index: int
    of: Of
    when: Callable[[Transition], bool] | None
    bad: Callable[[Transition], bool]
    columns: Callable[[Transition], Mapping[str, Any]]


def _restated(step: Transition) -> bool:
    return step.sets["leader"] is not None and step.sets["leader"] == step.before["leader"]


def _changes_nothing(step: Transition) -> bool:
    return step.sets["leader"] is None and all(
        step.sets[name] is None or step.sets[name] == step.before[name]
        for name in FIELDS
        if name != "leader"
    )


def _no_candidates(step: Transition) -> bool:
    after = step.after
    return not after["isr"] and not after["elr"] and not after["last_elr"]


def _eligible(step: Transition) -> bool:
    return step.state and bool(step.after["elr"] or step.after["last_elr"])


def _old_bump(step: Transition) -> bool:
    return step.mv < 12 and step.shrank


def _moves(step: Transition) -> bool:
    sets = step.sets
    named = sets["isr"] is not None or sets["replicas"] is not None
    return named or _restated(step)


def _isrs(step: Transition) -> Mapping[str, Any]:
    return {"old": step.before["isr"], "new": step.after["isr"]}


def _led(step: Transition) -> Mapping[str, Any]:
    return {"broker": step.after["leader"], "new": step.after["isr"]}


def _outside(members: Any, replicas: Any) -> bool:
    return any(member not in replicas for member in members)


def _reassignment_ends(step: Transition) -> bool:
    before, after = step.before, step.after
    was_moving = bool(before["adding"] or before["removing"])
    return was_moving and not (after["adding"] or after["removing"])


def _joining(step: Transition) -> list[int]:
    """Adding replicas that stay."""
    return list(dict.fromkeys(m for m in step.before["adding"] if m in step.after["replicas"]))


CHECKS: tuple[StepCheck, ...] = (
    StepCheck(
        "C2",
        0,
        Of.CHANGE,
        lambda s: s.before["rec"] == 1,
        lambda s: len(s.after["isr"]) > max(1, len(s.before["isr"])) and s.after["rec"] != 0,
        _isrs,
    ),
    StepCheck(
        "C3",
        0,
        Of.CHANGE,
        lambda s: s.sets["rec"] == 1 and s.before["rec"] == 0,
        lambda s: (
            s.sets["leader"] is None
            or s.sets["leader"] < 0
            or list(s.after["isr"]) != [s.sets["leader"]]
        ),
        lambda s: {
            "broker": -1 if s.sets["leader"] is None else s.sets["leader"],
            "new": s.after["isr"],
        },
    ),
    StepCheck(
        "C4",
        0,
        Of.UNCLEAN,
        None,
        lambda s: not (s.after["rec"] == 1 and list(s.after["isr"]) == [s.after["leader"]]),
        lambda s: {**_isrs(s), "broker": s.after["leader"], "number": s.after["rec"]},
    ),
    StepCheck("C5", 0, Of.UNCLEAN, None, lambda s: False, _isrs),
    StepCheck(
        "E10",
        0,
        Of.STATE,
        None,
        lambda s: s.after["leader"] != -1 and s.after["leader"] not in s.after["isr"],
        _led,
    ),
    StepCheck(
        "E11",
        0,
        Of.STATE,
        None,
        lambda s: (
            _outside(s.after["isr"], s.after["replicas"])
            or len(set(s.after["isr"])) != len(s.after["isr"])
        ),
        lambda s: {"old": s.after["replicas"], "new": s.after["isr"]},
    ),
    StepCheck(
        "E11",
        1,
        Of.STATE,
        None,
        lambda s: _outside((*s.after["adding"], *s.after["removing"]), s.after["replicas"]),
        lambda s: {
            "old": s.after["replicas"],
            "new": [*s.after["adding"], *s.after["removing"]],
        },
    ),
    StepCheck(
        "E11",
        2,
        Of.STATE,
        None,
        lambda s: any(m in s.after["removing"] for m in s.after["adding"]),
        lambda s: {
            "new": list(dict.fromkeys(m for m in s.after["adding"] if m in s.after["removing"]))
        },
    ),
    StepCheck(
        "E12",
        0,
        Of.STATE,
        None,
        lambda s: not s.after["isr"] and s.sets["isr"] is not None and not s.elr_on,
        lambda s: {},
    ),
    StepCheck(
        "E12",
        1,
        Of.ELR,
        lambda s: s.state,
        lambda s: _no_candidates(s) and s.kind != "ClearElr",
        lambda s: {},
    ),
    StepCheck("E12", 2, Of.ELR, lambda s: s.kind == "ClearElr", _no_candidates, lambda s: {}),
    StepCheck(
        "E13",
        0,
        Of.ELR,
        _eligible,
        lambda s: any(m in s.after["isr"] for m in s.after["elr"]),
        lambda s: {"old": s.after["isr"], "new": s.after["elr"]},
    ),
    StepCheck(
        "E13",
        1,
        Of.ELR,
        _eligible,
        lambda s: _outside((*s.after["elr"], *s.after["last_elr"]), s.after["replicas"]),
        lambda s: {
            "old": s.after["replicas"],
            "new": [*s.after["elr"], *s.after["last_elr"]],
        },
    ),
    StepCheck(
        "E13",
        2,
        Of.ELR,
        lambda s: s.change and s.sets["isr"] is not None and s.min_isr is not None,
        lambda s: len(s.after["isr"]) >= (s.min_isr or 0) and bool(s.after["elr"]),
        lambda s: {"old": s.after["isr"], "new": s.after["elr"], "number": s.min_isr},
    ),
    StepCheck(
        "E14",
        0,
        Of.CHANGE,
        lambda s: not s.elr_on,
        _changes_nothing,
        lambda s: {"new": s.after["isr"]},
    ),
    StepCheck(
        "E16",
        0,
        Of.CHANGE,
        _moves,
        lambda s: (
            _restated(s) and s.sets["leader"] >= 0 and not s.replicas_removed and not _old_bump(s)
        ),
        lambda s: {**_isrs(s), "broker": s.sets["leader"]},
    ),
    StepCheck(
        "E16",
        1,
        Of.CHANGE,
        lambda s: s.replicas_removed,
        lambda s: s.sets["leader"] is None,
        lambda s: {"old": s.before["replicas"], "new": s.after["replicas"]},
    ),
    StepCheck(
        "E16",
        2,
        Of.CHANGE,
        _old_bump,
        lambda s: s.sets["leader"] is None,
        _isrs,
    ),
    StepCheck(
        "E17",
        0,
        Of.ANY,
        lambda s: s.judged and s.kind == "Partition" and s.alive_before is None,
        lambda s: (
            s.leader_epoch != 0
            or s.partition_epoch != 0
            or not s.after["isr"]
            or s.after["leader"] != s.after["isr"][0]
        ),
        _led,
    ),
    StepCheck(
        "D5",
        0,
        Of.STATE,
        lambda s: s.state and bool(s.after["directories"]),
        lambda s: len(s.after["directories"]) != len(s.after["replicas"]),
        lambda s: {"new": s.after["replicas"], "number": len(s.after["directories"])},
    ),
    StepCheck(
        "E28",
        0,
        Of.CHANGE,
        _reassignment_ends,
        lambda s: _outside(_joining(s), (*s.before["isr"], *s.after["isr"])),
        lambda s: {"old": _joining(s), "new": s.after["isr"]},
    ),
    StepCheck(
        "E26",
        1,
        Of.ANY,
        lambda s: s.judged and s.kind in ("Change", "RemoveTopic"),
        lambda s: not s.alive_before,
        lambda s: {},
    ),
)
"""The checks of one record; C1 is judged at the end of an operation."""


def checks_of(state: bool, change: bool, elr_on: bool, unclean: bool) -> tuple[StepCheck, ...]:
    """The checks that may judge such a step."""
    holds = {Of.ANY: True, Of.STATE: state, Of.CHANGE: change, Of.ELR: elr_on, Of.UNCLEAN: unclean}
    return tuple(check for check in CHECKS if holds[check.of])
