"""Stories of groups that change their kind, and of members of both protocols in one group."""

from __future__ import annotations

from typing import Any

import pytest

from minicluster.coordinator.group.conversion.embedded import assignment_of
from minicluster.protocol import ErrorCode
from minicluster.protocol import messages as m
from minicluster.protocol.codec import encode
from minicluster.rules import Rules
from minicluster.values import replace
from tests.coordinator.groups import Groups

Subscription = m.ConsumerProtocolSubscription
Assignment = m.ConsumerProtocolAssignment
VERSION = 3


def subscription(topics: tuple[str, ...], owned: dict[str, tuple[int, ...]] | None = None) -> bytes:
    item = Subscription.TopicPartition
    value = Subscription(
        topics=topics,
        owned_partitions=tuple(item(topic=t, partitions=p) for t, p in (owned or {}).items()),
    )
    return VERSION.to_bytes(2, "big") + encode(value, VERSION)


def assignment(partitions: dict[str, tuple[int, ...]], user_data: bytes | None = None) -> bytes:
    item = Assignment.TopicPartition
    value = Assignment(
        assigned_partitions=tuple(item(topic=t, partitions=p) for t, p in partitions.items()),
        user_data=user_data,
    )
    return VERSION.to_bytes(2, "big") + encode(value, VERSION)


class ClassicMember:
    """A member of the classic protocol."""

    def __init__(
        self, groups: Groups, name: str, instance_id: str | None = None, version: int = 9
    ) -> None:
        self.groups = groups
        self.version = version
        self.name = name
        self.instance_id = instance_id
        self.member_id = ""
        self.generation_id = -1
        self.is_leader = False

    def join(
        self, topics: tuple[str, ...] = ("orders",), owned: dict[str, Any] | None = None
    ) -> Any:
        """Join; a dynamic member does so a second time with the id that it is given."""
        token = self.send_join(topics, owned)
        self.groups.advance(0)
        return self.joined(self.groups.responses[token])

    def send_join(
        self, topics: tuple[str, ...] = ("orders",), owned: dict[str, Any] | None = None
    ) -> int:
        """Send a JoinGroup; its response may come later."""
        self.topics, self.owned = topics, owned
        request = m.JoinGroupRequest(
            group_id="g",
            session_timeout_ms=10_000,
            rebalance_timeout_ms=20_000 if self.version else -1,
            member_id=self.member_id,
            group_instance_id=self.instance_id,
            protocol_type="consumer",
            protocols=(
                m.JoinGroupRequest.JoinGroupRequestProtocol(
                    name="cooperative-sticky", metadata=subscription(topics, owned)
                ),
            ),
        )
        return self.groups.send(request, self.version, self.name)

    def joined(self, response: Any) -> Any:
        self.member_id = response.member_id
        if response.error_code == ErrorCode.MEMBER_ID_REQUIRED:
            return self.join(self.topics, self.owned)
        self.is_leader = response.leader == self.member_id
        self.generation_id = response.generation_id
        return response

    def sync(self, assignments: dict[str, bytes] | None = None) -> Any:
        item = m.SyncGroupRequest.SyncGroupRequestAssignment
        request = m.SyncGroupRequest(
            group_id="g",
            generation_id=self.generation_id,
            member_id=self.member_id,
            group_instance_id=self.instance_id,
            protocol_type="consumer",
            protocol_name="cooperative-sticky",
            assignments=tuple(
                item(member_id=i, assignment=data) for i, data in (assignments or {}).items()
            ),
        )
        return self.groups.request(request, 5, self.name)

    def heartbeat(self) -> int:
        request = m.HeartbeatRequest(
            group_id="g",
            generation_id=self.generation_id,
            member_id=self.member_id,
            group_instance_id=self.instance_id,
        )
        return int(self.groups.request(request, 4, self.name).error_code)

    def leave(self) -> int:
        identity = m.LeaveGroupRequest.MemberIdentity(
            member_id=self.member_id, group_instance_id=self.instance_id
        )
        request = m.LeaveGroupRequest(group_id="g", members=(identity,))
        return int(self.groups.request(request, 5).members[0].error_code)

    def partitions(self, synced: Any) -> dict[str, tuple[int, ...]]:
        assert synced.error_code == ErrorCode.NONE, synced
        topics = assignment_of(synced.assignment).assigned_partitions
        return {topic.topic: topic.partitions for topic in topics}


def classic_group(groups: Groups, user_data: bytes | None = None) -> ClassicMember:
    """A classic group whose one member has all partitions of orders."""
    member = ClassicMember(groups, "old")
    member.join()
    member.sync({member.member_id: assignment({"orders": (0, 1)}, user_data)})
    assert member.heartbeat() == ErrorCode.NONE
    return member


def kind(groups: Groups) -> tuple[str, str]:
    group = groups.request(m.ListGroupsRequest(), 5).groups[0]
    return group.group_type, group.group_state


def test_an_application_migrates_member_by_member_and_back() -> None:
    groups = Groups(orders=2)
    old = classic_group(groups)
    new = groups.heartbeat("new", 0, topics=("orders",))
    assert kind(groups) == ("consumer", "Reconciling")
    assert (new.member_epoch, groups.assignment(new)) == (2, {})

    # The classic member gives up one partition with a join, and the new one gets it.
    assert old.heartbeat() == ErrorCode.REBALANCE_IN_PROGRESS
    first = old.join(owned={"orders": (0, 1)})
    assert first.generation_id == 1
    assert old.partitions(old.sync()) == {"orders": (0,)}
    assert old.heartbeat() == ErrorCode.REBALANCE_IN_PROGRESS
    assert old.join(owned={"orders": (0,)}).generation_id == 2
    assert old.partitions(old.sync()) == {"orders": (0,)}
    assert old.heartbeat() == ErrorCode.NONE
    assert groups.assignment(groups.heartbeat("new", 2)) == {"orders": [1]}
    assert {member.member_type for member in groups.describe().members} == {0, 1}
    groups.restart()
    assert kind(groups) == ("consumer", "Stable")

    # The last member of the new protocol leaves, and the group is classic again.
    groups.heartbeat("new", -1)
    assert kind(groups) == ("classic", "PreparingRebalance")
    assert old.heartbeat() == ErrorCode.REBALANCE_IN_PROGRESS
    joined = old.join()
    assert (joined.generation_id, joined.leader) == (3, old.member_id)
    synced = old.sync({old.member_id: assignment({"orders": (0, 1)})})
    assert old.partitions(synced) == {"orders": (0, 1)}
    groups.restart()
    assert kind(groups) == ("classic", "Stable")


def test_topics_of_earlier_members_refresh_a_group_that_was_downgraded() -> None:
    """GroupMetadataManager.convertToClassicGroup removes the group, not what it subscribed to.

    The tombstones of its members are written and not replayed, so its id stays in groupsByTopics.
    """
    groups = Groups(orders=3, payments=1)
    old = classic_group(groups)
    groups.heartbeat("first", 0, topics=("payments",))
    groups.heartbeat("first", -1)
    assert kind(groups)[0] == "classic"
    assert old.leave() == ErrorCode.NONE
    groups.heartbeat("new", 0, subscribed_topic_regex="orders")
    groups.create_topic("payments", 2)

    # The expression of the next member is not resolved yet, so its join alone compares nothing:
    # but for the refresh, the group would be homogeneous, and its assignor would give nobody
    # anything.
    groups.heartbeat("next", 0, subscribed_topic_regex=".*")
    members = {member.member_id: member for member in groups.describe().members}
    target = members["new"].target_assignment.topic_partitions
    assert groups.partitions(target) == {"orders": [0, 1, 2]}


def test_members_that_wait_for_a_classic_generation_join_the_consumer_group() -> None:
    groups = Groups(orders=2)
    old = classic_group(groups)
    second = ClassicMember(groups, "second")
    first = groups.send(
        m.JoinGroupRequest(
            group_id="g",
            session_timeout_ms=10_000,
            rebalance_timeout_ms=20_000,
            member_id=second.member_id,
            protocol_type="consumer",
            protocols=(
                m.JoinGroupRequest.JoinGroupRequestProtocol(
                    name="cooperative-sticky", metadata=subscription(("orders",))
                ),
            ),
        ),
        3,
    )
    assert first not in groups.responses  # it waits for the first member
    groups.heartbeat("new", 0, topics=("orders",))
    assert groups.responses[first].error_code == ErrorCode.REBALANCE_IN_PROGRESS
    assert old.heartbeat() == ErrorCode.REBALANCE_IN_PROGRESS


def test_a_group_before_its_first_generation_cannot_be_upgraded() -> None:
    """Source: ConsumerGroup.fromClassicGroup: without a generation there is no protocol."""
    groups = Groups({"group.initial.rebalance.delay.ms": "3000"}, orders=2)
    first = ClassicMember(groups, "first", version=3)
    token = first.send_join()
    refused = groups.heartbeat("new", 0, topics=("orders",))
    assert refused.error_code == ErrorCode.UNKNOWN_SERVER_ERROR
    assert groups.responses[token].error_code == ErrorCode.REBALANCE_IN_PROGRESS
    groups.advance(3_000)
    assert groups.heartbeat("new", 0, topics=("orders",)).error_code == ErrorCode.NONE


@pytest.mark.parametrize(
    ("policy", "upgraded", "downgraded"),
    [
        ("BIDIRECTIONAL", True, True),
        ("upgrade", True, False),
        ("downgrade", False, False),
        ("disabled", False, False),
    ],
)
def test_the_policy_allows_each_change(policy: str, upgraded: bool, downgraded: bool) -> None:
    groups = Groups({"group.consumer.migration.policy": policy}, orders=2)
    classic_group(groups)
    response = groups.heartbeat("new", 0, topics=("orders",))
    expected = ErrorCode.NONE if upgraded else ErrorCode.GROUP_ID_NOT_FOUND
    assert response.error_code == expected
    assert kind(groups)[0] == ("consumer" if upgraded else "classic")
    if upgraded:
        groups.heartbeat("new", -1)
        assert kind(groups)[0] == ("classic" if downgraded else "consumer")


def test_a_group_with_data_of_its_own_assignor_is_not_upgraded() -> None:
    groups = Groups(orders=2)
    classic_group(groups, user_data=b"of a custom assignor")
    refused = groups.heartbeat("new", 0, topics=("orders",))
    assert refused.error_code == ErrorCode.GROUP_ID_NOT_FOUND
    assert "custom assignor" in refused.error_message
    assert kind(groups) == ("classic", "Stable")


def test_an_empty_group_is_of_the_kind_of_its_next_member() -> None:
    groups = Groups(orders=2)
    old = classic_group(groups)
    assert old.leave() == ErrorCode.NONE
    assert kind(groups) == ("classic", "Empty")
    groups.heartbeat("new", 0, topics=("orders",))
    assert kind(groups) == ("consumer", "Stable")
    groups.heartbeat("new", -1)
    assert kind(groups) == ("consumer", "Empty")
    again = classic_group(groups)
    assert (kind(groups), again.generation_id) == (("classic", "Stable"), 1)
    groups.restart()
    assert kind(groups) == ("classic", "Stable")


def test_a_classic_member_that_does_not_join_again_is_removed() -> None:
    groups = Groups(orders=2)
    old = classic_group(groups)
    groups.heartbeat("new", 0, topics=("orders",))
    for _ in range(20):
        assert old.heartbeat() == ErrorCode.REBALANCE_IN_PROGRESS
        groups.advance(1_000)
        groups.heartbeat("new", 2)
    assert old.heartbeat() == ErrorCode.UNKNOWN_MEMBER_ID
    assert [member.member_id for member in groups.describe().members] == ["new"]


def test_the_first_version_waits_for_a_session_timeout() -> None:
    """Source: JoinGroupRequest.maybeOverrideRebalanceTimeout."""
    groups = Groups(orders=2)
    groups.heartbeat("new", 0, topics=("orders",))
    first = ClassicMember(groups, "old", version=0)
    assert first.join().error_code == ErrorCode.NONE
    groups.advance(9_000)
    assert first.sync().error_code == ErrorCode.NONE


def test_a_classic_static_member_replaces_a_new_one_and_the_group_goes_back() -> None:
    groups = Groups(orders=2)
    groups.heartbeat("new", 0, topics=("orders",), instance_id="one")
    groups.heartbeat("other", 0, topics=("orders",))
    groups.heartbeat("new", 2, owned={"orders": (0,)}, instance_id="one")
    groups.heartbeat("other", -1)
    back = ClassicMember(groups, "old", instance_id="one")
    joined = back.join()
    assert joined.error_code == ErrorCode.NONE
    assert kind(groups)[0] == "classic"
    groups.restart()
    assert kind(groups)[0] == "classic"


def test_a_member_with_unreadable_metadata_is_refused_by_a_consumer_group() -> None:
    groups = Groups(orders=2)
    groups.heartbeat("new", 0, topics=("orders",))
    request = m.JoinGroupRequest(
        group_id="g",
        session_timeout_ms=10_000,
        rebalance_timeout_ms=20_000,
        member_id="old",
        protocol_type="consumer",
        protocols=(m.JoinGroupRequest.JoinGroupRequestProtocol(name="range", metadata=b"?"),),
    )
    assert groups.request(request, 9).error_code == ErrorCode.UNKNOWN_SERVER_ERROR


# --- faults of Kafka --------------------------------------------------------------------------

LENGTH_BEYOND_THE_END = b"\0\0\0\0\0\1\0\x20t"
ENDS_IN_A_NUMBER = b"\0\0\0\0\0\1\0"
AS_SHIPPED = replace(Rules.KAFKA_4_3, unreadable_subscription_hangs_group=True)


def _join_with(groups: Groups, metadata: bytes) -> int:
    protocol = m.JoinGroupRequest.JoinGroupRequestProtocol(name="range", metadata=metadata)
    request = m.JoinGroupRequest(
        group_id="g",
        session_timeout_ms=10_000,
        rebalance_timeout_ms=20_000,
        protocol_type="consumer",
        protocols=(protocol,),
    )
    return groups.send(request, 3)


@pytest.mark.parametrize(
    ("rules", "metadata", "hangs"),
    [
        (AS_SHIPPED, LENGTH_BEYOND_THE_END, True),
        (AS_SHIPPED, ENDS_IN_A_NUMBER, False),
        (Rules.KAFKA_4_3, LENGTH_BEYOND_THE_END, False),
    ],
    ids=["as shipped", "as shipped, but for a short number", "mended"],
)
def test_a_join_with_a_subscription_that_cannot_be_read(
    rules: Rules, metadata: bytes, hangs: bool
) -> None:
    groups = Groups(rules=rules, orders=1)
    token = _join_with(groups, metadata)
    groups.advance(290_000)  # sessions of those who wait do not end; a new member has 5 minutes
    assert (token not in groups.responses) == hangs
    second = _join_with(groups, subscription(("orders",)))
    groups.advance(1_000)
    assert (second not in groups.responses) == hangs  # nobody begins the generation any more


@pytest.mark.parametrize("forgets", [True, False], ids=["as shipped", "mended"])
def test_a_refused_join_to_an_empty_consumer_group(forgets: bool) -> None:
    rules = replace(Rules.KAFKA_4_3, refused_join_forgets_empty_group=forgets)
    groups = Groups(rules=rules, orders=1)
    groups.heartbeat("new", 0, topics=("orders",))
    groups.heartbeat("new", -1)
    stranger = ClassicMember(groups, "old")
    stranger.member_id = "of another group"
    assert stranger.join().error_code == ErrorCode.UNKNOWN_MEMBER_ID
    error = groups.heartbeat("new", 3).error_code
    assert error == (ErrorCode.GROUP_ID_NOT_FOUND if forgets else ErrorCode.UNKNOWN_MEMBER_ID)
    groups.restart()
    assert kind(groups) == ("consumer", "Empty")
