"""Online rules about the state that an operation leaves (A1, A2, A8, C1, C5, D1)."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from minicluster.metadata.image.directory_id import is_online, is_reserved
from minicluster.verify.online.history import Interval, Step
from minicluster.verify.online.log_state import LogState, OperationInHand
from minicluster.verify.online.topic_rules import end_of_topics


def end_of_operation(state: LogState) -> None:
    """Judge the operation in hand as a whole, and begin the next one."""
    operation = state.operation
    begun: list[Interval] = []
    for key, step in operation.steps.items():
        state.intervals.pop(key, None)
        if step.state:
            state.intervals[key] = Interval(step=step)
            begun.append(state.intervals[key])
            _judge_begun(state, state.intervals[key])
    end_of_topics(state)
    for interval in begun:
        _judge_lost_before(state, interval)
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


def _judge_begun(state: LogState, interval: Interval) -> None:
    step, findings = interval.step, state.findings
    isr, leader = step.after["isr"], step.after["leader"]
    if step.after["rec"] == 1 and findings.look("C1", 0, step.mv):
        allowed = step.elr_on and leader == -1
        if len(isr) > 1 or (not isr and not allowed):
            findings.find("C1", 0, offset=step.offset, topic=step.topic, part=step.part, new=isr)
    for member in isr:
        if findings.look("A1", 0, step.mv) and not state.may_be_in_isr(member):
            _member_inactive(state, interval, member, step.offset)
    if leader >= 0 and findings.look("A2", 0, step.mv) and not state.may_be_in_isr(leader):
        _leader_inactive(state, interval, step.offset)


def _member_inactive(state: LogState, interval: Interval, member: int, offset: int) -> None:
    step, findings = interval.step, state.findings
    if member not in interval.inactive and not step.keep and findings.promised("A1", step.mv):
        findings.find("A1", 0, offset=offset, new=step.after["isr"], **_where(step, member))
    interval.inactive.add(member)


def _leader_inactive(state: LogState, interval: Interval, offset: int) -> None:
    step, findings = interval.step, state.findings
    if not interval.leader_inactive and findings.promised("A2", step.mv):
        leader, isr = step.after["leader"], step.after["isr"]
        findings.find("A2", 0, offset=offset, new=isr, **_where(step, leader))
    interval.leader_inactive = True


def _judge_inactive(state: LogState, broker_id: int, offset: int) -> None:
    """A broker ends the operation inactive: partitions that still name it are judged."""
    for key, interval in state.intervals.items():
        if key not in state.operation.steps:
            if broker_id in interval.step.after["isr"]:
                _member_inactive(state, interval, broker_id, offset)
            if broker_id == interval.step.after["leader"] >= 0:
                _leader_inactive(state, interval, offset)


def _judge_new_incarnation(state: LogState, broker_id: int, offset: int) -> None:
    for interval in state.intervals.values():
        step, isr = interval.step, interval.step.after["isr"]
        if broker_id not in isr or step.keep or broker_id in interval.reincarnated:
            continue
        if state.findings.promised("A8", step.mv):
            interval.reincarnated.add(broker_id)
            state.findings.find("A8", 1, offset=offset, new=isr, **_where(step, broker_id))


def _judge_unclean(state: LogState, step: Step, candidates: tuple[int, ...]) -> None:
    if not state.findings.promised("C5", step.mv):
        return
    replicas = list(step.after["replicas"])
    for member in candidates:
        if member not in replicas or not state.is_active(member):
            continue
        directory, log_dirs = step.directory_of(member), state.brokers[member].log_dirs
        if directory is not None and not is_online(directory, log_dirs):
            continue
        isr = step.before["isr"]
        state.findings.find("C5", 1, offset=step.offset, old=isr, **_where(step, member))


def _judge_lost_before(state: LogState, interval: Interval) -> None:
    """Members of a new ISR in directories that are offline already."""
    step, findings = interval.step, state.findings
    if not step.after["directories"]:
        return
    for member in step.after["isr"]:
        directory = step.directory_of(member)
        if directory is None or is_reserved(directory):
            continue
        lost_at = state.lost.get((member, directory))
        if lost_at is not None and step.since[member] > lost_at:
            findings.not_promised["D1"] += 1
            continue
        findings.look("D1", 0, step.mv)
        if lost_at is not None and not step.keep:
            _in_lost_directory(state, interval, member, step.offset)


def _judge_lost_now(state: LogState, broker_id: int, directory: UUID, offset: int) -> None:
    """Members of any ISR in a directory that this operation records as offline."""
    for interval in state.intervals.values():
        step = interval.step
        if broker_id not in step.after["isr"] or step.keep:
            continue
        is_new = broker_id not in interval.in_lost_directory
        if is_new and step.directory_of(broker_id) == directory:
            _in_lost_directory(state, interval, broker_id, offset)


def _in_lost_directory(state: LogState, interval: Interval, member: int, offset: int) -> None:
    step = interval.step
    interval.in_lost_directory.add(member)
    state.findings.find("D1", 0, offset=offset, new=step.after["isr"], **_where(step, member))
