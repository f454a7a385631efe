"""AlterPartition and AlterIsr, every version: of the refusals that meet, the earliest wins.

A proposal is right except for what is made wrong in it. Everything that can be wrong is tried
alone, then every pair, then every triple. The response is that of the earliest in the order of the
table, and no record is written, neither at once nor later. What is accepted, on the other hand,
advances the partition epoch by one if it changes something, and by nothing if it does not.

Source:  KIP-497, KIP-704, KIP-841, KIP-903; ReplicationControlManager.alterPartition,
         validateAlterPartitionData; ControllerApis.handleAlterPartition.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from itertools import combinations
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from minicluster.metadata.image.partition import RECOVERED, RECOVERING
from minicluster.protocol import ErrorCode
from minicluster.protocol import messages as m
from minicluster.protocol.messages.kip_texts import kip_497, kip_704
from minicluster.protocol.uuids import ZERO_UUID
from minicluster.rules import IsrChanges, Rules
from minicluster.security.screening import EVERYTHING, Access
from minicluster.values import replace
from tests.controller.kit import Cluster, nobody

SHIPPED = Rules.KAFKA_4_3
BY_497 = replace(SHIPPED, isr_changes_by=IsrChanges.ALTER_ISR_OF_KIP_497)
BY_704 = replace(SHIPPED, isr_changes_by=IsrChanges.ALTER_ISR_OF_KIP_704)
NOT_AUTHORIZED = ErrorCode.CLUSTER_AUTHORIZATION_FAILED
LEADER, FENCED, LEAVING, GONE, NO_REPLICA = 0, 4, 5, 6, 7


@dataclass(kw_only=True)
class Proposal:
    """The proposal of a leader; a valid one by default."""

    authorized: bool = True

    @property
    def access(self) -> Access:
        """What the sender may do."""
        return EVERYTHING if self.authorized else nobody()

    sender: int = LEADER
    broker_epoch_delta: int = 0
    topic_known: bool = True
    index: int = 0
    named_leader: int = LEADER
    leader_epoch: int = 3
    partition_epoch: int = 7
    isr: tuple[int, ...] = (0, 1)
    recovery: int = RECOVERED
    member_epochs: dict[int, int] = field(default_factory=dict)


@dataclass(frozen=True)
class Api:
    """One version of one request: a function that sends it and reads the response."""

    name: str
    version: int
    rules: Rules
    request: Callable[[Cluster, Proposal, int], tuple[ErrorCode, Any]]

    @property
    def label(self) -> str:
        return f"{self.name} v{self.version}"


def send_shipped(cluster: Cluster, requested: Proposal, version: int) -> tuple[ErrorCode, Any]:
    Request = m.AlterPartitionRequest
    part = Request.PartitionData(
        partition_index=requested.index,
        leader_epoch=requested.leader_epoch,
        partition_epoch=requested.partition_epoch,
        leader_recovery_state=requested.recovery,
        new_isr=requested.isr if version < 3 else (),
        new_isr_with_epochs=tuple(
            Request.BrokerState(
                broker_id=b, broker_epoch=requested.member_epochs.get(b, cluster.epoch(b))
            )
            for b in (requested.isr if version >= 3 else ())
        ),
    )
    topic = Request.TopicData(
        topic_name="foo" if requested.topic_known else "nowhere",
        topic_id=cluster.topic_id("foo") if requested.topic_known else ZERO_UUID,
        partitions=(part,),
    )
    epoch = cluster.epoch(requested.sender) + requested.broker_epoch_delta
    request = Request(broker_id=requested.sender, broker_epoch=epoch, topics=(topic,))
    return _outcome(cluster.request(request, version, access=requested.access))


def send_704(cluster: Cluster, requested: Proposal, version: int) -> tuple[ErrorCode, Any]:
    Request = kip_704.AlterIsrRequest
    part = Request.PartitionData(
        partition_index=requested.index,
        leader_epoch=requested.leader_epoch,
        current_isr_version=requested.partition_epoch,
        new_is_unclean=requested.recovery == RECOVERING,
        new_isr=requested.isr,
    )
    topic = Request.TopicData(
        name="foo" if requested.topic_known else "nowhere", partitions=(part,)
    )
    epoch = cluster.epoch(requested.sender) + requested.broker_epoch_delta
    request = Request(broker_id=requested.sender, broker_epoch=epoch, topics=(topic,))
    return _outcome(cluster.request(request, version, access=requested.access))


def send_497(cluster: Cluster, requested: Proposal, version: int) -> tuple[ErrorCode, Any]:
    Request = kip_497.AlterIsrRequest
    part = Request.PartitionData(
        partition_id=requested.index,
        leader=requested.named_leader,
        leader_epoch=requested.leader_epoch,
        isr=requested.isr,
        current_zk_version=requested.partition_epoch,
    )
    topic = Request.TopicData(
        topic="foo" if requested.topic_known else "nowhere", partitions=(part,)
    )
    epoch = cluster.epoch(requested.sender) + requested.broker_epoch_delta
    request = Request(broker_id=requested.sender, broker_epoch=epoch, topics=(topic,))
    response = _outcome(cluster.request(request, version, access=requested.access))
    cluster.run(cluster.now_ms)  # the decision follows the response
    return response


def _outcome(response: Any) -> tuple[ErrorCode, Any]:
    if response.error_code:
        assert not response.topics
        return ErrorCode(response.error_code), None
    part = response.topics[0].partitions[0]
    return ErrorCode(part.error_code), part


APIS = (
    *(Api("AlterPartition", version, SHIPPED, send_shipped) for version in range(4)),
    *(Api("AlterIsr of KIP-704", version, BY_704, send_704) for version in range(2)),
    Api("AlterIsr of KIP-497", 0, BY_497, send_497),
)


@dataclass(frozen=True)
class Wrong:
    """One thing that can be wrong. Two that set the same field exclude each other."""

    name: str
    error: ErrorCode | Callable[[Api], ErrorCode]
    fields: dict[str, Any] = field(default_factory=dict)
    members: Callable[[tuple[int, ...]], tuple[int, ...]] | None = None

    def error_of(self, api: Api) -> ErrorCode:
        return self.error if isinstance(self.error, ErrorCode) else self.error(api)


def unknown_topic(api: Api) -> ErrorCode:
    if api.version >= 2:
        return ErrorCode.UNKNOWN_TOPIC_ID
    return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def ineligible(api: Api) -> ErrorCode:
    return ErrorCode.INELIGIBLE_REPLICA if api.version >= 2 else ErrorCode.OPERATION_NOT_ATTEMPTED


E = ErrorCode
UNAUTHORIZED = Wrong("no permission", NOT_AUTHORIZED, {"authorized": False})
STALE_BROKER = Wrong("stale broker epoch", E.STALE_BROKER_EPOCH, {"broker_epoch_delta": -1})
UNKNOWN_BROKER = Wrong("unknown broker", E.STALE_BROKER_EPOCH, {"sender": GONE})
UNKNOWN_TOPIC = Wrong("unknown topic", unknown_topic, {"topic_known": False})
UNKNOWN_PARTITION = Wrong("unknown partition", E.UNKNOWN_TOPIC_OR_PARTITION, {"index": 9})
LEADER_EPOCH_OLD = Wrong("leader epoch behind", E.FENCED_LEADER_EPOCH, {"leader_epoch": 2})
NOT_THE_LEADER = Wrong("not the leader", E.INVALID_REQUEST, {"sender": 1})
VERSION_OLD = Wrong("partition epoch behind", E.INVALID_UPDATE_VERSION, {"partition_epoch": 6})
BAD_MEMBERS = (
    Wrong("twice", E.INVALID_REQUEST, {}, lambda isr: (*isr, 1)),
    Wrong("no replica", E.INVALID_REQUEST, {}, lambda isr: (*isr, NO_REPLICA)),
    Wrong("negative", E.INVALID_REQUEST, {}, lambda isr: (*isr, -1)),
    Wrong("leader left out", E.INVALID_REQUEST, {}, lambda isr: tuple(b for b in isr if b)),
)

# The order of Kafka's controller; KIP-704's text changes no refusal.
SHIPPED_ORDER: tuple[Wrong, ...] = (
    UNAUTHORIZED,
    STALE_BROKER,
    UNKNOWN_BROKER,
    UNKNOWN_TOPIC,
    UNKNOWN_PARTITION,
    Wrong("leader epoch ahead", E.NOT_CONTROLLER, {"leader_epoch": 4}),
    Wrong("partition epoch ahead", E.NOT_CONTROLLER, {"partition_epoch": 8}),
    LEADER_EPOCH_OLD,
    NOT_THE_LEADER,
    VERSION_OLD,
    *BAD_MEMBERS,
    Wrong("sets the recovery state", E.INVALID_REQUEST, {"recovery": RECOVERING}),
    Wrong("fenced member", ineligible, {}, lambda isr: (*isr, FENCED)),
    Wrong("member shuts down", ineligible, {}, lambda isr: (*isr, LEAVING)),
    Wrong("member unregistered", ineligible, {}, lambda isr: (*isr, GONE)),
    Wrong("member of an old epoch", ineligible, {"member_epochs": {1: 1}}),
)
# KIP-497's text: epochs ahead are no reason to look for another controller, the version comes last,
# and who is alive is judged when the proposal is carried out.
ORDER_OF_497: tuple[Wrong, ...] = (
    UNAUTHORIZED,
    STALE_BROKER,
    UNKNOWN_BROKER,
    UNKNOWN_TOPIC,
    UNKNOWN_PARTITION,
    LEADER_EPOCH_OLD,
    Wrong("leader epoch ahead", E.INVALID_REQUEST, {"leader_epoch": 4}),
    NOT_THE_LEADER,
    Wrong("names another leader", E.INVALID_REQUEST, {"named_leader": 1}),
    *BAD_MEMBERS,
    VERSION_OLD,
    Wrong("partition epoch ahead", E.INVALID_UPDATE_VERSION, {"partition_epoch": 8}),
)


def order_of(api: Api) -> tuple[Wrong, ...]:
    if api.request is send_497:
        return ORDER_OF_497
    left_out = set() if api.version >= 3 else {"member of an old epoch"}
    if api.version == 0:
        left_out.add("sets the recovery state")  # v0 has no such field
    return tuple(w for w in SHIPPED_ORDER if w.name not in left_out)


def with_vote(api: Api) -> Cluster:
    """foo-0 at epochs 3/7, led by 0, ISR 0 1 2; of its replicas 4 to 6 none is eligible."""
    cluster = Cluster(rules=api.rules)
    cluster.start(*range(8))
    assert cluster.create("foo", (0, 1, 2, 3, FENCED, LEAVING, GONE)).error_code == 0
    assert cluster.create("bar", (LEAVING, 1)).error_code == 0  # what it has to hand over
    cluster.fence(FENCED)
    cluster.heartbeat(LEAVING, want_shut_down=True)
    cluster.request(m.UnregisterBrokerRequest(broker_id=GONE))
    cluster.put("foo", isr=(0, 1, 2), leader_epoch=3, partition_epoch=7)
    return cluster


def together(wrongs: Iterable[Wrong]) -> Proposal | None:
    """The proposal with all of this wrong, None if two of them exclude each other."""
    fields: dict[str, Any] = {}
    isr: tuple[int, ...] = (0, 1)
    for wrong in wrongs:
        if fields.keys() & wrong.fields.keys():
            return None
        fields |= wrong.fields
    for wrong in wrongs:
        isr = isr if wrong.members is None else wrong.members(isr)
    return Proposal(isr=isr, **fields)


@pytest.mark.parametrize("api", APIS, ids=lambda api: api.label)
@pytest.mark.parametrize("count", [1, 2, 3])
def test_of_the_refusals_that_meet_the_earliest_wins_and_nothing_is_written(
    api: Api, count: int
) -> None:
    cluster = with_vote(api)
    before, end, tried = cluster.partition("foo"), cluster.end, 0
    for wrongs in combinations(order_of(api), count):
        proposal = together(wrongs)
        if proposal is None:
            continue
        error, _ = api.request(cluster, proposal, api.version)
        assert error is wrongs[0].error_of(api), [w.name for w in wrongs]
        assert cluster.end == end and cluster.partition("foo") is before, [w.name for w in wrongs]
        tried += 1
    assert tried >= {1: 15, 2: 90, 3: 300}[count]


@pytest.mark.parametrize("api", APIS, ids=lambda api: api.label)
def test_a_standby_refuses_before_it_looks_at_anything_but_the_permission(api: Api) -> None:
    cluster = with_vote(api)
    cluster.take(cluster.machine.on_renounce(cluster.now_ms))
    for wrong in order_of(api):
        proposal = together([wrong])
        assert proposal is not None
        error, _ = api.request(cluster, proposal, api.version)
        expected = NOT_AUTHORIZED if wrong is UNAUTHORIZED else E.NOT_CONTROLLER
        assert error is expected, wrong.name


@pytest.mark.parametrize("api", APIS, ids=lambda api: api.label)
def test_a_recovering_partition_takes_one_member_or_the_word_that_it_has_recovered(
    api: Api,
) -> None:
    if api.version == 0:
        return  # version 0 has no such field
    cluster = with_vote(api)
    cluster.put("foo", isr=(0,), leader_recovery_state=RECOVERING)
    before, end = cluster.partition("foo"), cluster.end
    grows = Proposal(recovery=RECOVERING)
    assert api.request(cluster, grows, api.version)[0] is E.INVALID_REQUEST
    fenced_too = Proposal(recovery=RECOVERING, isr=(0, FENCED))
    assert api.request(cluster, fenced_too, api.version)[0] is E.INVALID_REQUEST
    stays = Proposal(recovery=RECOVERING, isr=(0,))
    assert api.request(cluster, stays, api.version)[0] is E.NONE
    assert cluster.end == end and cluster.partition("foo") is before
    assert api.request(cluster, Proposal(), api.version)[0] is E.NONE
    after = cluster.partition("foo")
    assert (after.isr, after.is_recovering, after.partition_epoch) == ((0, 1), False, 8)


ISRS = st.lists(st.permutations([1, 2, 3]).flatmap(lambda p: st.integers(0, 3).map(
    lambda n: (LEADER, *p[:n])
)), min_size=1, max_size=8)  # fmt: skip


@pytest.mark.parametrize("api", APIS, ids=lambda api: api.label)
@settings(max_examples=25, deadline=None, derandomize=True)
@given(isrs=ISRS)
def test_an_accepted_change_advances_the_partition_epoch_by_one(
    api: Api, isrs: list[tuple[int, ...]]
) -> None:
    cluster = with_vote(api)
    for isr in isrs:
        before, end = cluster.partition("foo"), cluster.end
        proposal = Proposal(isr=isr, partition_epoch=before.partition_epoch)
        error, part = api.request(cluster, proposal, api.version)
        changes = isr != before.isr
        after = cluster.partition("foo")
        assert error is E.NONE
        assert after.isr == isr and after.leader_epoch == before.leader_epoch
        assert after.partition_epoch == before.partition_epoch + changes
        assert cluster.end == end + changes
        if api.request is send_shipped:
            assert part.partition_epoch == after.partition_epoch
        elif api.request is send_704:
            assert part.current_isr_version == after.partition_epoch
