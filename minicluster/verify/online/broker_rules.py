"""Online rules about the registrations of brokers (A4, A8, D4, D5, E20 to E23)."""

from __future__ import annotations

from collections.abc import Iterable
from uuid import UUID

from minicluster.protocol import records as r
from minicluster.protocol.schema import Message
from minicluster.verify.online.history import BrokerHistory
from minicluster.verify.online.log_state import LogState


def on_registration(state: LogState, record: r.RegisterBrokerRecord) -> None:
    """Judge and apply a registration."""
    broker = state.brokers.setdefault(record.broker_id, BrokerHistory())
    epoch, broker_id, findings = record.broker_epoch, record.broker_id, state.findings
    if state.judged and broker.registered and broker.incarnation == record.incarnation_id:
        findings.look("E22", 0, state.level)
        flags = (epoch, record.fenced, record.in_controlled_shutdown)
        if flags != (broker.epoch, broker.fenced, broker.in_controlled_shutdown):
            findings.find("E22", 0, broker=broker_id, number=epoch)
    elif state.judged:
        findings.look("E20", 0, state.level)
        if not state.clean_from <= epoch <= findings.offset:
            findings.find("E20", 0, broker=broker_id, number=epoch)
        if broker.highest_epoch is not None and epoch <= broker.highest_epoch:
            findings.find("E20", 1, broker=broker_id, number=epoch)
    is_new = state.judged and broker.incarnation not in (None, record.incarnation_id)
    broker.may_stay = is_new and state.level < findings.promises.new_incarnation_leaves_from
    if is_new:
        findings.look("A8", 0, state.level)
        state.operation.new_incarnations.append((broker_id, findings.offset))
    _register_directories(state, record, broker.log_dirs)
    highest = broker.highest_epoch
    broker.highest_epoch = epoch if highest is None else max(highest, epoch)
    broker.registered, broker.epoch = True, epoch
    broker.incarnation = record.incarnation_id
    broker.fenced = record.fenced
    broker.in_controlled_shutdown = record.in_controlled_shutdown
    broker.log_dirs = record.log_dirs
    state.operation.brokers[broker_id] = findings.offset
    state.allowed = None


def on_broker_record(state: LogState, record: Message) -> None:
    """Judge and apply fencing, unfencing, a registration change or the end of a registration."""
    fenced: bool | None = None
    match record:
        case r.FenceBrokerRecord():
            broker_id, epoch, fenced = record.id, record.epoch, True
        case r.UnfenceBrokerRecord():
            broker_id, epoch, fenced = record.id, record.epoch, False
        case r.BrokerRegistrationChangeRecord():
            broker_id, epoch = record.broker_id, record.broker_epoch
            fenced = None if record.fenced == 0 else record.fenced > 0
        case r.UnregisterBrokerRecord():
            broker_id, epoch = record.broker_id, record.broker_epoch
        case _:
            return
    broker = state.brokers.setdefault(broker_id, BrokerHistory())
    if state.judged:
        _judge(state, broker, broker_id, epoch, fenced)
        if fenced and broker.registered and not broker.fenced:
            _judge_fenced(state, broker_id)
    if fenced is not None:
        broker.fenced, broker.may_stay = fenced, False
    if isinstance(record, r.UnregisterBrokerRecord):
        broker.registered = broker.may_stay = False
        for directory in broker.log_dirs:
            state.owners.pop(directory, None)
    elif isinstance(record, r.BrokerRegistrationChangeRecord):
        if record.in_controlled_shutdown:
            broker.in_controlled_shutdown = record.in_controlled_shutdown > 0
        if record.log_dirs:
            _lose_directories(state, broker_id, broker.log_dirs, record.log_dirs)
        broker.log_dirs = record.log_dirs or broker.log_dirs
    state.operation.brokers[broker_id] = state.findings.offset
    state.allowed = None


def _judge(
    state: LogState, broker: BrokerHistory, broker_id: int, epoch: int, fenced: bool | None
) -> None:
    findings = state.findings
    findings.look("E23", 0, state.level)
    if not broker.registered:
        findings.find("E23", 0, broker=broker_id)
        return
    findings.look("D4", 0, state.level)
    if epoch != broker.epoch:
        findings.find("D4", 0, broker=broker_id, number=epoch)
    if fenced is not None:
        findings.look("E21", 0, state.level)
        if not fenced and not broker.fenced:
            findings.find("E21", 0, broker=broker_id)


def _judge_fenced(state: LogState, broker_id: int) -> None:
    """A broker that is fenced is in no ISR, whatever follows in the same operation."""
    findings = state.findings
    findings.look("A4", 0, state.level)
    for history in state.partitions.values():
        step = history.step
        if step is None or not step.judgement.is_state:
            continue
        after = step.transition
        isr = after.after["isr"]
        if broker_id not in isr or after.keep:
            continue
        if broker_id not in step.fenced_inside and findings.promised("A4", after.mv):
            step.fenced_inside |= {broker_id}
            findings.find("A4", 1, topic=step.topic, part=step.part, broker=broker_id, new=isr)


def _register_directories(
    state: LogState, record: r.RegisterBrokerRecord, before: Iterable[UUID]
) -> None:
    if not record.log_dirs:
        return
    broker_id = record.broker_id
    _lose_directories(state, broker_id, before, record.log_dirs)
    for directory in record.log_dirs:
        owner = state.owners.get(directory, broker_id)
        if state.judged and owner != broker_id:
            state.findings.find("D5", 1, broker=broker_id, number=owner)
        state.owners[directory] = broker_id
        state.lost.pop((broker_id, directory), None)


def _lose_directories(
    state: LogState, broker_id: int, before: Iterable[UUID], after: Iterable[UUID]
) -> None:
    remaining, offset = {*after}, state.findings.offset
    for directory in dict.fromkeys(before):
        if directory not in remaining:
            state.lost[broker_id, directory] = offset
            state.operation.lost_directories.append((broker_id, directory, offset))
            if state.owners.get(directory) == broker_id:
                del state.owners[directory]
