"""Online rules about the state that an operation leaves (A1, A2, A8, C1, C5, D1)."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from minicluster.metadata.image.directory_id import is_online
from minicluster.verify.online.history import Step
from minicluster.verify.online.log_state import LogState, OperationInHand
from minicluster.verify.online.steps.transitions import Judgement
from minicluster.verify.online.topic_rules import end_of_topics


def end_of_operation(state: LogState) -> None:
    """Judge the operation in hand as a whole, and begin the next one."""
    operation = state.operation
    placed: list[Step] = []
    allowed = state.allowed_in_isr()
    for history, step in operation.steps.items():
        state.intervals.pop(history, None)
        judgement = step.judgement
        if judgement.is_state:
            state.intervals[history] = step
            _judge_begun(state, step, judgement, allowed)
            if judgement.directories:
                placed.append(step)
    end_of_topics(state)
    for step in placed:
        _judge_lost_before(state, step)
    for broker_id, offset in operation.new_incarnations:
        _judge_new_incarnation(state, broker_id, offset)
    for broker_id, directory, offset in operation.lost_directories:
        _judge_lost_now(state, broker_id, directory, offset)
    for step, candidates in operation.unclean:
        _judge_unclean(state, step, candidates)
    for broker_id, offset in operation.brokers.items():
        if not state.may_be_in_isr(broker_id):
            _judge_inactive(state, broker_id, offset)
    state.operation = OperationInHand()


def _where(step: Step, broker_id: int) -> dict[str, Any]:
    return {"topic": step.topic, "part": step.part, "broker": broker_id}


def _judge_begun(
    state: LogState, step: Step, judgement: Judgement, allowed: frozenset[int]
) -> None:
    for counts, rule, cases in judgement.counted_at_end:
        counts[rule] += cases
    if judgement.recovers_badly:
        isr = step.transition.after["isr"]
        columns = {"topic": step.topic, "part": step.part, "new": isr}
        state.findings.find("C1", 0, offset=step.offset, **columns)
    if not allowed.issuperset(judgement.members):
        for member in judgement.members:
            if member not in allowed:
                _member_inactive(state, step, member, step.offset)
    if judgement.leader is not None and judgement.leader not in allowed:
        _leader_inactive(state, step, step.offset)


def _member_inactive(state: LogState, step: Step, member: int, offset: int) -> None:
    transition, findings = step.transition, state.findings
    is_new = member not in step.inactive
    if is_new and not transition.keep and findings.promised("A1", transition.mv):
        isr = transition.after["isr"]
        findings.find("A1", 0, offset=offset, new=isr, **_where(step, member))
    step.inactive |= {member}


def _leader_inactive(state: LogState, step: Step, offset: int) -> None:
    after, findings = step.transition.after, state.findings
    if not step.leader_inactive and findings.promised("A2", step.transition.mv):
        where = _where(step, after["leader"])
        findings.find("A2", 0, offset=offset, new=after["isr"], **where)
    step.leader_inactive = True


def _judge_inactive(state: LogState, broker_id: int, offset: int) -> None:
    """A broker ends the operation inactive: partitions that still name it are judged."""
    for history, step in state.intervals.items():
        if history not in state.operation.steps:
            after = step.transition.after
            if broker_id in after["isr"]:
                _member_inactive(state, step, broker_id, offset)
            if broker_id == after["leader"] >= 0:
                _leader_inactive(state, step, offset)


def _judge_new_incarnation(state: LogState, broker_id: int, offset: int) -> None:
    for step in state.intervals.values():
        transition, isr = step.transition, step.transition.after["isr"]
        if broker_id not in isr or transition.keep or broker_id in step.reincarnated:
            continue
        if state.findings.promised("A8", transition.mv):
            step.reincarnated |= {broker_id}
            state.findings.find("A8", 1, offset=offset, new=isr, **_where(step, broker_id))


def _judge_unclean(state: LogState, step: Step, candidates: tuple[int, ...]) -> None:
    transition = step.transition
    if not state.findings.promised("C5", transition.mv):
        return
    replicas = list(transition.after["replicas"])
    for member in candidates:
        if member not in replicas or not state.is_active(member):
            continue
        directory, log_dirs = transition.directory_of(member), state.brokers[member].log_dirs
        if directory is not None and not is_online(directory, log_dirs):
            continue
        isr = transition.before["isr"]
        state.findings.find("C5", 1, offset=step.offset, old=isr, **_where(step, member))


def _judge_lost_before(state: LogState, step: Step) -> None:
    """Members of a new ISR in directories that are offline already."""
    findings, transition = state.findings, step.transition
    for member, directory in step.judgement.directories:
        lost_at = state.lost.get((member, directory)) if state.lost else None
        if lost_at is not None and step.since[member] > lost_at:
            findings.not_promised["D1"] += 1
            continue
        findings.look("D1", 0, transition.mv)
        if lost_at is not None and not transition.keep:
            _in_lost_directory(state, step, member, step.offset)


def _judge_lost_now(state: LogState, broker_id: int, directory: UUID, offset: int) -> None:
    """Members of any ISR in a directory that this operation records as offline."""
    for step in state.intervals.values():
        transition = step.transition
        if broker_id not in transition.after["isr"] or transition.keep:
            continue
        is_new = broker_id not in step.in_lost_directory
        if is_new and transition.directory_of(broker_id) == directory:
            _in_lost_directory(state, step, broker_id, offset)


def _in_lost_directory(state: LogState, step: Step, member: int, offset: int) -> None:
    step.in_lost_directory |= {member}
    isr = step.transition.after["isr"]
    state.findings.find("D1", 0, offset=offset, new=isr, **_where(step, member))
