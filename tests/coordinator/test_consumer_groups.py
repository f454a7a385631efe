"""Stories of consumer groups (KIP-848): members, epochs, reconciliation, time-outs, fail-over."""

from __future__ import annotations

from typing import Any

import pytest

from minicluster.metadata.image.configs import BROKER
from minicluster.protocol import ErrorCode
from minicluster.protocol import messages as m
from minicluster.protocol.records import ConfigRecord
from minicluster.values import replace
from tests.coordinator.groups import Groups

SESSION_MS = 45_000


def test_a_first_member_gets_all_and_a_second_waits_for_what_the_first_gives_up() -> None:
    groups = Groups(orders=4)
    first = groups.heartbeat("a", 0, topics=("orders",))
    assert (first.member_epoch, groups.assignment(first)) == (2, {"orders": [0, 1, 2, 3]})

    second = groups.heartbeat("b", 0, topics=("orders",))
    assert (second.member_epoch, groups.assignment(second)) == (3, {})
    assert groups.describe().group_state == "Reconciling"

    target = groups.heartbeat("a", 2, owned={"orders": (0, 1, 2, 3)})
    assert (target.member_epoch, groups.assignment(target)) == (2, {"orders": [0, 1]})
    done = groups.heartbeat("a", 2, owned={"orders": (0, 1)})
    assert (done.member_epoch, groups.assignment(done)) == (3, None)

    released = groups.heartbeat("b", 3)
    assert groups.assignment(released) == {"orders": [2, 3]}
    assert groups.describe().group_state == "Stable"


def test_a_response_that_was_lost_is_given_again_in_the_epoch_before() -> None:
    groups = Groups(orders=2)
    groups.heartbeat("a", 0, topics=("orders",))
    groups.heartbeat("b", 0, topics=("orders",))
    groups.heartbeat("a", 2, owned={"orders": (0,)})  # its response, with epoch 3, is lost
    again = groups.heartbeat("a", 2, owned={"orders": (0,)})
    assert (again.error_code, again.member_epoch) == (ErrorCode.NONE, 3)


@pytest.mark.parametrize(("epoch", "side"), [(9, "greater"), (1, "smaller")])
def test_a_member_with_another_epoch_is_fenced(epoch: int, side: str) -> None:
    groups = Groups(orders=2)
    groups.heartbeat("a", 0, topics=("orders",))
    refused = groups.heartbeat("a", epoch)
    assert refused.error_code == ErrorCode.FENCED_MEMBER_EPOCH
    assert f"has a {side} member epoch ({epoch})" in refused.error_message


def test_a_member_that_leaves_frees_its_partitions() -> None:
    groups = Groups(orders=2)
    groups.heartbeat("a", 0, topics=("orders",))
    groups.heartbeat("b", 0, topics=("orders",))
    left = groups.heartbeat("a", -1)
    assert (left.member_epoch, left.assignment) == (-1, None)
    after = groups.heartbeat("b", 3)
    assert groups.assignment(after) == {"orders": [0, 1]}
    assert [member.member_id for member in groups.describe().members] == ["b"]


def test_a_silent_member_loses_its_session_and_the_group_is_empty() -> None:
    groups = Groups(orders=2)
    groups.heartbeat("a", 0, topics=("orders",))
    groups.advance(SESSION_MS - 1)
    assert groups.describe().group_state == "Stable"
    groups.advance(1)
    assert groups.describe().group_state == "Empty"
    assert groups.heartbeat("a", 2).error_code == ErrorCode.UNKNOWN_MEMBER_ID


def test_a_member_that_gives_up_nothing_in_time_is_fenced() -> None:
    groups = Groups(orders=2)
    groups.heartbeat("a", 0, topics=("orders",), rebalance_timeout_ms=5_000)
    groups.heartbeat("b", 0, topics=("orders",))
    for _ in range(5):
        groups.heartbeat("a", 2, owned={"orders": (0, 1)})
        groups.heartbeat("b", 3)
        groups.advance(1_000)
    assert groups.heartbeat("a", 2).error_code == ErrorCode.UNKNOWN_MEMBER_ID
    assert groups.assignment(groups.heartbeat("b", 3)) == {"orders": [0, 1]}


def test_a_topic_that_grows_is_assigned_again() -> None:
    groups = Groups(orders=1)
    groups.heartbeat("a", 0, topics=("orders", "later"))
    groups.create_topic("orders", 3)
    grown = groups.heartbeat("a", 2)
    assert (grown.member_epoch, groups.assignment(grown)) == (3, {"orders": [0, 1, 2]})
    groups.create_topic("later", 1)
    more = groups.heartbeat("a", 3)
    assert groups.assignment(more) == {"orders": [0, 1, 2], "later": [0]}


def test_a_topic_that_nobody_reads_changes_nothing() -> None:
    groups = Groups(orders=1)
    groups.heartbeat("a", 0, topics=("orders",))
    groups.create_topic("other", 3)
    assert groups.heartbeat("a", 2).member_epoch == 2


def test_the_target_is_not_computed_again_within_its_interval() -> None:
    groups = Groups({"group.consumer.assignment.interval.ms": "1000"}, orders=2)
    groups.heartbeat("a", 0, topics=("orders",))
    early = groups.heartbeat("b", 0, topics=("orders",))
    assert (early.member_epoch, groups.assignment(early)) == (2, {})
    assert groups.describe().group_state == "Assigning"
    groups.advance(1_000)
    assert groups.heartbeat("b", 2).member_epoch == 3


def test_the_interval_of_targets_is_a_dynamic_config_of_brokers() -> None:
    groups = Groups(orders=2)
    name = "group.consumer.assignment.interval.ms"
    groups.publish(ConfigRecord(resource_type=BROKER, resource_name="", name=name, value="1000"))
    groups.heartbeat("a", 0, topics=("orders",))
    assert groups.heartbeat("b", 0, topics=("orders",)).member_epoch == 2
    groups.publish(ConfigRecord(resource_type=BROKER, resource_name="1", name=name, value="0"))
    assert groups.heartbeat("b", 2).member_epoch == 3


def test_an_assignor_can_be_named_by_its_class() -> None:
    kafkas = "org.apache.kafka.coordinator.group.assignor.RangeAssignor"
    groups = Groups({"group.consumer.assignors": f"{kafkas},uniform"}, orders=1)
    groups.heartbeat("a", 0, topics=("orders",))
    assert groups.describe().assignor_name == "range"


def test_a_full_group_refuses_new_members_only() -> None:
    groups = Groups({"group.consumer.max.size": "1"}, orders=2)
    groups.heartbeat("a", 0, topics=("orders",))
    refused = groups.heartbeat("b", 0, topics=("orders",))
    assert refused.error_code == ErrorCode.GROUP_MAX_SIZE_REACHED
    assert groups.heartbeat("a", 2).error_code == ErrorCode.NONE


# --- static members ---------------------------------------------------------------------------


def test_a_static_member_that_comes_back_has_its_partitions_again() -> None:
    groups = Groups(orders=4)
    groups.heartbeat("a", 0, topics=("orders",), instance_id="one")
    groups.heartbeat("b", 0, topics=("orders",), instance_id="two")
    groups.heartbeat("a", 2, owned={"orders": (0, 1)}, instance_id="one")
    groups.heartbeat("b", 3, instance_id="two")

    taken = groups.heartbeat("c", 0, topics=("orders",), instance_id="one")
    assert taken.error_code == ErrorCode.UNRELEASED_INSTANCE_ID
    assert groups.heartbeat("a", -2, instance_id="one").member_epoch == -2
    back = groups.heartbeat("c", 0, topics=("orders",), instance_id="one")
    assert (back.member_epoch, groups.assignment(back)) == (3, {"orders": [0, 1]})

    fenced = groups.heartbeat("a", 3, instance_id="one")
    assert fenced.error_code == ErrorCode.FENCED_INSTANCE_ID
    assert groups.heartbeat("b", 3, instance_id="two").member_epoch == 3  # no rebalance


def test_a_static_member_that_does_not_come_back_is_removed() -> None:
    groups = Groups(orders=2)
    groups.heartbeat("a", 0, topics=("orders",), instance_id="one")
    groups.heartbeat("a", -2, instance_id="one")
    groups.advance(SESSION_MS)
    assert groups.describe().group_state == "Empty"
    unknown = groups.heartbeat("a", 2, instance_id="one")
    assert unknown.error_code == ErrorCode.UNKNOWN_MEMBER_ID


# --- regular expressions ----------------------------------------------------------------------


def test_an_expression_gets_its_topics_with_a_later_heartbeat() -> None:
    groups = Groups(orders=1, ordinary=1, other=1)
    joined = groups.heartbeat("a", 0, subscribed_topic_regex="ord.*")
    assert (joined.member_epoch, groups.assignment(joined)) == (1, {})
    resolved = groups.heartbeat("a", 1)
    assert groups.assignment(resolved) == {"orders": [0], "ordinary": [0]}


def test_a_new_topic_matches_once_the_expressions_are_matched_again() -> None:
    groups = Groups(orders=1)
    groups.heartbeat("a", 0, subscribed_topic_regex="ord.*")
    groups.heartbeat("a", 1)
    groups.create_topic("ordinary", 1)
    groups.heartbeat("a", 2)
    assert groups.heartbeat("a", 2).member_epoch == 2  # not within 10 s of the last match
    groups.advance(10_001)
    groups.heartbeat("a", 2)
    assert groups.assignment(groups.heartbeat("a", 2)) == {"orders": [0], "ordinary": [0]}


def resolved_topics(groups: Groups) -> set[str]:
    """The topics that the only expression of the group matched last."""
    group = groups.machine.state.runtime._contexts[0].shard.consumer_group("g")
    (resolved,) = group.resolved_regexes.values()
    return set(resolved.topics)


def test_a_matched_topic_that_is_deleted_and_created_again_is_assigned_without_another_match() -> (
    None
):
    """Its name stays matched, so the hash of the group's topics changes with each heartbeat."""
    groups = Groups(orders=1, ordinary=1)
    groups.heartbeat("a", 0, subscribed_topic_regex="ord.*")
    groups.heartbeat("a", 1)
    groups.delete_topic("orders")
    given_up = groups.heartbeat("a", 2, owned={"orders": (0,), "ordinary": (0,)})
    assert groups.assignment(given_up) == {"ordinary": [0]}
    assert groups.heartbeat("a", 2, owned={"ordinary": (0,)}).member_epoch == 3
    assert resolved_topics(groups) == {"orders", "ordinary"}
    groups.create_topic("orders", 2)
    assert groups.assignment(groups.heartbeat("a", 3)) == {"orders": [0, 1], "ordinary": [0]}


def test_a_deleted_topic_starts_no_match_and_the_next_one_forgets_it() -> None:
    groups = Groups({"group.consumer.regex.refresh.interval.ms": "60000"}, orders=1, ordinary=1)
    groups.heartbeat("a", 0, subscribed_topic_regex="ord.*")
    groups.heartbeat("a", 1)
    groups.delete_topic("ordinary")
    groups.advance(20_000)
    groups.heartbeat("a", 2, owned={"orders": (0,)})
    assert resolved_topics(groups) == {"orders", "ordinary"}
    groups.advance(40_001)
    groups.heartbeat("a", 3)
    assert resolved_topics(groups) == {"orders"}
    # The expression matches other topics, though those that exist are the same.
    assert groups.heartbeat("a", 3).member_epoch == 4


def test_a_topic_that_is_gone_before_the_next_match_raises_no_epoch() -> None:
    groups = Groups(orders=1)
    groups.heartbeat("a", 0, subscribed_topic_regex="ord.*")
    groups.heartbeat("a", 1)
    groups.create_topic("ordinary", 1)
    groups.delete_topic("ordinary")
    groups.advance(10_001)
    groups.heartbeat("a", 2)
    assert groups.heartbeat("a", 2).member_epoch == 2


def test_an_expression_that_replaces_one_in_a_match_is_matched_with_the_next_heartbeat() -> None:
    """Only one match is under way, and it is of the expressions that its heartbeat knew."""
    groups = Groups(orders=1, other=1)
    first = m.ConsumerGroupHeartbeatRequest(
        group_id="g",
        member_id="a",
        member_epoch=0,
        rebalance_timeout_ms=5_000,
        subscribed_topic_regex="ord.*",
        topic_partitions=(),
    )
    groups.send(first, 1)
    groups.send(replace(first, member_epoch=1, subscribed_topic_regex="oth.*"), 1)
    groups.advance(0)  # the match of ord.*, to which nobody subscribes any more
    assert groups.assignment(groups.heartbeat("a", 1)) is None
    assert resolved_topics(groups) == {"other"}
    assert groups.assignment(groups.heartbeat("a", 1)) == {"other": [0]}


def test_the_next_coordinator_matches_again_what_the_last_one_matched_before_a_new_topic() -> None:
    groups = Groups(orders=1)
    groups.heartbeat("a", 0, subscribed_topic_regex="ord.*")
    groups.heartbeat("a", 1)
    groups.create_topic("ordinary", 1)
    groups.restart()
    groups.advance(10_001)
    groups.heartbeat("a", 2)
    assert groups.assignment(groups.heartbeat("a", 2)) == {"orders": [0], "ordinary": [0]}


def test_an_expression_of_the_last_member_ends_with_it() -> None:
    groups = Groups(orders=1)
    groups.heartbeat("a", 0, subscribed_topic_regex="ord.*")
    groups.heartbeat("b", 0, topics=())
    groups.heartbeat("a", 1, subscribed_topic_regex="")
    group = groups.machine.state.runtime._contexts[0].shard.consumer_group("g")
    assert (group.resolved_regexes, group.subscribed_topics) == ({}, {})


@pytest.mark.parametrize(
    ("expression", "reason"),
    [
        ("(a", "missing closing )"),
        ("[a", "missing closing ]"),
        ("*a", "missing argument to repetition operator"),
        ("a**", "invalid nested repetition operator"),
        ("(?=a)", "invalid or unsupported Perl syntax"),
        ("\\8", "invalid escape sequence"),
        ("a{2,1}", "invalid repeat count"),
        ("[z-a]", "invalid character class range"),
        ("\\", "trailing backslash at end of expression"),
    ],
)
def test_a_bad_expression_is_refused_in_the_words_of_re2j(expression: str, reason: str) -> None:
    groups = Groups(orders=1)
    refused = groups.heartbeat("a", 0, subscribed_topic_regex=expression)
    assert refused.error_code == ErrorCode.INVALID_REGULAR_EXPRESSION
    assert refused.error_message.endswith(f" is not a valid regular expression: {reason}.")


# --- offsets ----------------------------------------------------------------------------------


def commit(groups: Groups, member_id: str, epoch: int, partition: int = 0, **given: Any) -> int:
    topic = m.OffsetCommitRequest.OffsetCommitRequestTopic(
        topic_id=groups.topic_ids["orders"],
        partitions=(
            m.OffsetCommitRequest.OffsetCommitRequestPartition(
                partition_index=partition, committed_offset=7
            ),
        ),
    )
    request = m.OffsetCommitRequest(
        group_id="g",
        member_id=member_id,
        generation_id_or_member_epoch=epoch,
        topics=(topic,),
        **given,
    )
    return groups.request(request, 10).topics[0].partitions[0].error_code


def test_a_member_commits_in_its_epoch_or_in_that_of_the_partition() -> None:
    groups = Groups(orders=2)
    groups.heartbeat("a", 0, topics=("orders",))
    groups.heartbeat("b", 0, topics=("orders",))
    groups.heartbeat("a", 2, owned={"orders": (0,)})
    assert commit(groups, "a", 3) == ErrorCode.NONE
    assert commit(groups, "a", 2) == ErrorCode.NONE  # 0 was assigned in epoch 2
    assert commit(groups, "a", 1) == ErrorCode.STALE_MEMBER_EPOCH
    assert commit(groups, "a", 2, partition=1) == ErrorCode.STALE_MEMBER_EPOCH
    assert commit(groups, "a", 4) == ErrorCode.STALE_MEMBER_EPOCH
    assert commit(groups, "x", 3) == ErrorCode.UNKNOWN_MEMBER_ID
    assert commit(groups, "", -1) == ErrorCode.UNKNOWN_MEMBER_ID  # the group has members


def test_a_group_of_offsets_alone_becomes_a_consumer_group_and_keeps_them() -> None:
    groups = Groups(orders=2)
    assert commit(groups, "", -1) == ErrorCode.NONE
    groups.heartbeat("a", 0, topics=("orders",))
    assert groups.describe().group_state == "Stable"
    groups.restart()
    request = m.OffsetFetchRequest.OffsetFetchRequestGroup(
        group_id="g", member_id="a", member_epoch=2, topics=None
    )
    fetched = groups.request(m.OffsetFetchRequest(groups=(request,)), 9).groups[0]
    assert fetched.topics[0].partitions[0].committed_offset == 7


# --- configs, deletion, fail-over -------------------------------------------------------------


def test_a_group_has_configs_of_its_own_within_the_brokers_bounds() -> None:
    groups = Groups(orders=1)
    groups.set_group_config("g", "consumer.heartbeat.interval.ms", "7000")
    groups.set_group_config("g", "consumer.session.timeout.ms", "50000")
    assert groups.heartbeat("a", 0, topics=("orders",)).heartbeat_interval_ms == 7_000
    groups.advance(49_999)
    assert groups.describe().group_state == "Stable"
    groups.advance(1)
    assert groups.describe().group_state == "Empty"


def test_an_empty_group_is_deleted_and_one_with_members_is_not() -> None:
    groups = Groups(orders=1)
    groups.heartbeat("a", 0, topics=("orders",))

    def delete() -> int:
        response = groups.request(m.DeleteGroupsRequest(groups_names=("g",)), 2)
        return response.results[0].error_code

    assert delete() == ErrorCode.NON_EMPTY_GROUP
    groups.heartbeat("a", -1)
    assert delete() == ErrorCode.NONE
    assert groups.describe().error_code == ErrorCode.GROUP_ID_NOT_FOUND
    groups.restart()
    assert groups.describe().error_code == ErrorCode.GROUP_ID_NOT_FOUND


def test_the_next_coordinator_goes_on_where_the_last_one_stopped() -> None:
    groups = Groups(orders=4)
    groups.heartbeat("a", 0, topics=("orders",), server_assignor="range")
    groups.heartbeat("b", 0, subscribed_topic_regex="ord.*")
    groups.heartbeat("b", 2)
    groups.heartbeat("a", 2, owned={"orders": (0, 1, 2, 3)})
    before = groups.describe()
    groups.restart()
    assert groups.describe() == before
    groups.heartbeat("a", 2, owned={"orders": (0, 1)})
    assert groups.assignment(groups.heartbeat("b", before.group_epoch)) == {"orders": [2, 3]}
    groups.advance(SESSION_MS)
    assert groups.describe().group_state == "Empty"  # sessions begin anew, and end


def test_the_protocol_is_off_below_its_feature_level() -> None:
    groups = Groups({"group.coordinator.rebalance.protocols": "classic"}, orders=1)
    refused = groups.heartbeat("a", 0, topics=("orders",))
    assert refused.error_code == ErrorCode.UNSUPPORTED_VERSION
    assert groups.describe().error_code == ErrorCode.UNSUPPORTED_VERSION
