"""The quota on partitions that clients create and delete (KIP-599), in the order of its checks.

Source:  ControllerMutationQuotaManagerTest, ControllerMutationQuotaTest.
"""

from __future__ import annotations

from typing import Any

import pytest

from minicluster import MiniCluster
from minicluster.actors import exchange
from minicluster.actors.cluster.client import CLIENT_ID
from minicluster.actors.cluster.mini_cluster import inside
from minicluster.controller.mutation_quotas import QuotaClient
from minicluster.protocol import ErrorCode
from minicluster.protocol import messages as m
from tests.controller.kit import Cluster

APP = QuotaClient(client_id="app")
NONE, EXCEEDED = ErrorCode.NONE, ErrorCode.THROTTLING_QUOTA_EXCEEDED
BURST = 11  # seconds of the rate, by the defaults of controller.quota.window.*
Names = dict[str, str | None]


def alter(rate: float, **names: str | None) -> m.AlterClientQuotasRequest:
    kind = m.AlterClientQuotasRequest
    entity = tuple(
        kind.EntityData(entity_type=key.replace("_", "-"), entity_name=name)
        for key, name in names.items()
    )
    op = kind.OpData(key="controller_mutation_rate", value=rate)
    return kind(entries=(kind.EntryData(entity=entity, ops=(op,)),))


def with_quota(rate: float = 1.0, **names: str | None) -> Cluster:
    """Three brokers, and a quota on some entity."""
    cluster = Cluster()
    cluster.start(1, 2, 3)
    if rate >= 0:
        cluster.request(alter(rate, **(names or {"client_id": "app"})))
    return cluster


def create(
    cluster: Cluster, *sizes: int, version: int = 7, client: QuotaClient = APP, start: int = 0
) -> tuple[list[int], int]:
    """Create topics of so many partitions; their errors, and the throttle time."""
    kind = m.CreateTopicsRequest
    topics = tuple(
        kind.CreatableTopic(name=f"t{n}", num_partitions=size, replication_factor=1)
        for n, size in enumerate(sizes, start)
    )
    response = cluster.request(kind(topics=topics), version, client=client)
    return [topic.error_code for topic in response.topics], response.throttle_time_ms


def test_a_strict_quota_takes_a_burst_and_refuses_until_the_bucket_is_filled() -> None:
    cluster = with_quota()
    assert create(cluster, BURST + 2, 1) == ([NONE, EXCEEDED], 2_000)  # what exceeds it is a debt
    cluster.now_ms += 1_999
    assert create(cluster, 1, start=5) == ([EXCEEDED], 1)
    cluster.now_ms += 1
    assert create(cluster, 1, start=5) == ([NONE], 0)
    cluster.now_ms += 1_000_000  # no more than a burst
    assert create(cluster, BURST, 1, 1, start=6) == ([NONE, NONE, EXCEEDED], 1_000)


def test_an_old_version_is_refused_nothing_and_shown_the_time() -> None:
    cluster = with_quota()
    assert create(cluster, BURST + 2, 1, version=5) == ([NONE, NONE], 3_000)


def test_partitions_that_are_added_and_topics_that_are_deleted_count() -> None:
    cluster = with_quota()
    create(cluster, 1, 1, 1)
    add = m.CreatePartitionsRequest
    more = tuple(
        add.CreatePartitionsTopic(name=f"t{n}", count=11, assignments=None) for n in (0, 1)
    )
    response = cluster.request(add(topics=more), client=APP)
    assert [topic.error_code for topic in response.results] == [NONE, EXCEEDED]
    assert response.throttle_time_ms == 2_000
    delete = m.DeleteTopicsRequest
    named = delete(topics=(delete.DeleteTopicState(name="t2"),))
    refused = cluster.request(named, client=APP)
    assert [topic.error_code for topic in refused.responses] == [EXCEEDED]
    assert (refused.responses[0].error_message, refused.throttle_time_ms) == (None, 2_000)
    by_another = cluster.request(named, client=QuotaClient(client_id="other"))
    assert by_another.responses[0].error_code == NONE


def test_a_refusal_before_the_quota_takes_nothing() -> None:
    cluster = with_quota()
    kind = m.CreatePartitionsRequest
    create(cluster, BURST)
    unfit = kind.CreatePartitionsTopic(name="t0", count=20, assignments=())
    response = cluster.request(kind(topics=(unfit,)), client=APP)
    assert response.results[0].error_code == ErrorCode.INVALID_REPLICA_ASSIGNMENT
    assert create(cluster, 1, start=5) == ([NONE], 0)


@pytest.mark.parametrize(
    ("names", "shared_by_clients", "shared_by_users"),
    [
        ({"user": "me", "client_id": "app"}, False, False),
        ({"user": "me", "client_id": None}, False, False),
        ({"user": "me"}, True, False),
        ({"user": None, "client_id": "app"}, False, False),
        ({"user": None, "client_id": None}, False, False),
        ({"user": None}, True, False),
        ({"client_id": "app"}, False, True),
        ({"client_id": None}, False, True),
    ],
)
def test_a_bucket_is_shared_by_those_that_a_quota_names_together(
    names: Names, shared_by_clients: bool, shared_by_users: bool
) -> None:
    cluster = with_quota(1.0, **names)
    create(cluster, BURST + 5, client=QuotaClient("me", "app"))
    assert create(cluster, 1, client=QuotaClient("me", "app"), start=1)[0] == [EXCEEDED]
    other_client = create(cluster, 1, client=QuotaClient("me", "other"), start=2)[0]
    assert (other_client == [EXCEEDED]) is shared_by_clients
    other_user = create(cluster, 1, client=QuotaClient("you", "app"), start=3)[0]
    assert (other_user == [EXCEEDED]) is shared_by_users


def test_the_most_specific_quota_decides() -> None:
    """Each entity comes before those that follow it, though its rate is higher."""
    order: list[Names] = [
        {"user": "me", "client_id": "app"},
        {"user": "me", "client_id": None},
        {"user": "me"},
        {"user": None, "client_id": "app"},
        {"user": None, "client_id": None},
        {"user": None},
        {"client_id": "app"},
        {"client_id": None},
    ]
    for first, chosen in enumerate(order):
        cluster = with_quota(-1)
        cluster.request(alter(10.0, **chosen))
        for other in order[first + 1 :]:
            cluster.request(alter(1.0, **other))
        sizes = (10 * BURST, 1, 1)
        assert create(cluster, *sizes, client=QuotaClient("me", "app"))[1] == 100, chosen


class Sender:
    """The sender of a request, with the response to it."""

    response: Any = None

    def deliver(self, completion: Any) -> None:
        self.response = completion.response


def test_a_client_of_a_broker_is_throttled_and_another_is_not() -> None:
    """The broker forwards its requests in the client's name (KIP-590)."""

    def creates(name: str, client_id: str) -> tuple[int, int]:
        kind, caller = m.CreateTopicsRequest, Sender()
        topic = kind.CreatableTopic(name=name, num_partitions=20, replication_factor=1)
        inside(cluster).network.request(
            src=CLIENT_ID,
            dst=1,
            body=kind(topics=(topic,)),
            version=7,
            caller=caller,
            sender=exchange.Sender(client_id=client_id),
        )
        cluster.wait_until(lambda: caller.response is not None, within="10s")
        return caller.response.topics[0].error_code, caller.response.throttle_time_ms

    config = {"controller.quota.window.num": 2}
    with MiniCluster(brokers=1, controllers=1, seed=1, config=config) as cluster:
        cluster.admin(alter(5.0, client_id="app"))
        assert creates("a", "app") == (NONE, 0)
        error, throttle_time_ms = creates("b", "app")
        assert error == EXCEEDED and 1_900 < throttle_time_ms <= 2_000
        assert creates("c", "another") == (NONE, 0)
        cluster.run_for(f"{throttle_time_ms}ms")
        assert creates("b", "app") == (NONE, 0)
