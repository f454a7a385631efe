"""A batch that the quorum refuses: its request fails, and another controller goes on."""

from __future__ import annotations

import pytest

from minicluster import MiniCluster
from minicluster.protocol import ErrorCode
from minicluster.protocol.messages import CreateTopicsRequest

TOPICS = 110  # two records each: few records are not measured


def test_a_request_of_too_many_bytes_fails_and_does_not_stop_the_cluster(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with MiniCluster(brokers=1, controllers=3, seed=1) as cluster:
        monkeypatch.setattr("minicluster.quorum.state.batch_accumulator.MAX_BATCH_BYTES", 1_000)
        topics = tuple(
            CreateTopicsRequest.CreatableTopic(
                name=f"t{number}", num_partitions=1, replication_factor=1
            )
            for number in range(TOPICS)
        )
        response = cluster.admin(CreateTopicsRequest(topics=topics))
        assert {topic.error_code for topic in response.topics} == {ErrorCode.UNKNOWN_SERVER_ERROR}
        assert cluster.create_topic("small", partitions=1, replicas=1)[0].leader is not None
