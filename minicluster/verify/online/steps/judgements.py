"""The judgement of a transition: everything that no broker's state and no offset can change."""

from __future__ import annotations

from uuid import UUID

from minicluster.metadata.image.directory_id import is_reserved
from minicluster.verify.online.findings import Counts, Findings
from minicluster.verify.online.steps.checks import checks_of
from minicluster.verify.online.steps.transitions import Counted, Judgement, Situation, Transition


class _Cases:
    """The cases that a transition is, by rule."""

    def __init__(self, findings: Findings, mv: int) -> None:
        self._findings, self._mv = findings, mv
        self._counted: dict[tuple[int, str], tuple[Counts, int]] = {}

    def look(self, rule_id: str, index: int, cases: int = 1) -> bool:
        """Count cases of a check; True if its rule promises something about them."""
        counts, promised = self._findings.counter(rule_id, index, self._mv)
        if counts is not None and cases:
            _, before = self._counted.get((id(counts), rule_id), (counts, 0))
            self._counted[id(counts), rule_id] = (counts, before + cases)
        return promised

    def counted(self) -> Counted:
        """All of them."""
        return tuple((counts, rule, n) for (_, rule), (counts, n) in self._counted.items())


def judgement_of(findings: Findings, transition: Transition, following: Situation) -> Judgement:
    """Judge a transition to a situation."""
    t, cases = transition, _Cases(findings, transition.mv)
    is_unclean = t.unclean
    found = []
    for check in checks_of(t.state, t.change, t.elr_on, is_unclean):
        if check.when is not None and not check.when(t):
            continue
        if cases.look(check.rule, check.index) and check.bad(t):
            found.append((check.rule, check.index, check.columns(t)))
    if t.elected is not None:
        cases.look("D2", 0)
    added = t.added
    is_judged_state = t.judged and t.state and t.kind != "ClearElr"
    entering = added if is_judged_state else ()
    if not cases.look("A3", 0, len(entering)) or (entering and t.keep):
        entering = ()
    placed_on = t.after["replicas"] if t.created else ()
    if not cases.look("E17", 1, len(placed_on)):
        placed_on = ()
    at_end = _Cases(findings, t.mv)
    isr, leader = t.after["isr"], t.after["leader"]
    members: tuple[int, ...] = ()
    directories: tuple[tuple[int, UUID], ...] = ()
    recovers_badly = must_lead = False
    if t.state:
        if t.after["rec"] == 1 and at_end.look("C1", 0):
            allowed = t.elr_on and leader == -1
            recovers_badly = len(isr) > 1 or (not isr and not allowed)
        members = isr if at_end.look("A1", 0, len(isr)) else ()
        must_lead = leader >= 0 and at_end.look("A2", 0)
        directories = _recorded_directories(t)
    return Judgement(
        transition=t,
        following=following,
        counted=cases.counted(),
        found=tuple(found),
        added=added,
        is_unclean=is_unclean,
        entering=entering,
        placed_on=placed_on,
        elected=t.elected,
        counted_at_end=at_end.counted(),
        is_state=t.state,
        recovers_badly=recovers_badly,
        members=members,
        leader=leader if must_lead else None,
        directories=directories,
    )


def _recorded_directories(transition: Transition) -> tuple[tuple[int, UUID], ...]:
    """The members of the ISR with their log directories, of those whose directory has a name."""
    if not transition.after["directories"]:
        return ()
    placed = ((m, transition.directory_of(m)) for m in transition.after["isr"])
    return tuple((m, one) for m, one in placed if one is not None and not is_reserved(one))
