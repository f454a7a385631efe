"""Large events of the controller: the longest part, for which the quorum's requests wait.

The controller is among ten brokers, and its records are committed at once.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from minicluster.controller.effects import Append
from minicluster.effects import Continue
from minicluster.protocol import messages as m
from minicluster.quorum.state.batch_accumulator import BatchAccumulator
from tests.bench.test_controller import BROKERS, Controller, image_of

pytestmark = pytest.mark.benchmark(timer=time.process_time)

RetentionMs = m.IncrementalAlterConfigsRequest.AlterableConfig(name="retention.ms", value="1000000")
CleanupPolicy = m.IncrementalAlterConfigsRequest.AlterableConfig(
    name="cleanup.policy", value="compact"
)


def creation(topics: int, partitions: int) -> m.CreateTopicsRequest:
    Request = m.CreateTopicsRequest
    return Request(
        timeout_ms=60_000,
        topics=tuple(
            Request.CreatableTopic(
                name=f"t{number}", num_partitions=partitions, replication_factor=3
            )
            for number in range(topics)
        ),
    )


def more_partitions(topics: int, count: int) -> m.CreatePartitionsRequest:
    Request = m.CreatePartitionsRequest
    return Request(
        timeout_ms=60_000,
        topics=tuple(
            Request.CreatePartitionsTopic(name=f"t{number}", count=count, assignments=None)
            for number in range(topics)
        ),
    )


def other_configs(topics: int) -> m.IncrementalAlterConfigsRequest:
    Request = m.IncrementalAlterConfigsRequest
    return Request(
        resources=tuple(
            Request.AlterConfigsResource(
                resource_type=2,
                resource_name=f"t{number}",
                configs=(RetentionMs, CleanupPolicy),
            )
            for number in range(topics)
        )
    )


def deletion(topics: int) -> m.DeleteTopicsRequest:
    Request = m.DeleteTopicsRequest
    return Request(
        timeout_ms=60_000,
        topics=tuple(Request.DeleteTopicState(name=f"t{number}") for number in range(topics)),
    )


def reassignment(topics: int, partitions: int) -> m.AlterPartitionReassignmentsRequest:
    """Every partition moves to three other brokers."""
    Request = m.AlterPartitionReassignmentsRequest
    return Request(
        timeout_ms=60_000,
        topics=tuple(
            Request.ReassignableTopic(
                name=f"t{number}",
                partitions=tuple(
                    Request.ReassignablePartition(
                        partition_index=index,
                        replicas=tuple((index + n) % BROKERS + 1 for n in range(3)),
                    )
                    for index in range(partitions)
                ),
            )
            for number in range(topics)
        ),
    )


def fencing(broker_id: int) -> m.BrokerHeartbeatRequest:
    return m.BrokerHeartbeatRequest(
        broker_id=broker_id, broker_epoch=broker_id, current_metadata_offset=0, want_fence=True
    )


EVENTS: dict[str, tuple[list[Any], Any]] = {
    "CreateTopics, 500 with 10": ([], creation(500, 10)),
    "CreateTopics, 4,999 with one": ([], creation(4_999, 1)),
    "CreateTopics, one with 9,000": ([], creation(1, 9_000)),
    "CreatePartitions, 900 by 10": ([creation(900, 10)], more_partitions(900, 20)),
    "IncrementalAlterConfigs, 2,000": ([creation(2_000, 1)], other_configs(2_000)),
    "DeleteTopics, 900 with 10": ([creation(900, 10)], deletion(900)),
    "AlterPartitionReassignments, 9,000": ([creation(900, 10)], reassignment(900, 10)),
    "a broker with 2,700 replicas is fenced": ([creation(900, 10)], fencing(1)),
}


def taken(act: Callable[[], Any]) -> tuple[float, Any]:
    begun = time.process_time()
    result = act()
    return time.process_time() - begun, result


def parts_s(before: list[Any], request: Any) -> list[float]:
    """The seconds of each step of the node that leads the quorum."""
    controller = Controller(image_of(0, 1))
    for earlier in before:
        controller.request(earlier)
    gc.collect()
    gc.freeze()  # as a runtime with clients does: no step visits every object
    machine, version = controller.machine, type(request).latest_version
    found = []
    seconds, effects = taken(lambda: machine.on_request(1, request, version, 0))
    while effects and isinstance(effects[0], Continue):
        found.append(seconds)
        seconds, effects = taken(partial(effects[0].next_part, 0))
    appends = [effect for effect in effects if isinstance(effect, Append)]
    accumulator = BatchAccumulator(
        epoch=appends[0].epoch, next_offset=appends[0].base_offset, linger_ms=0
    )
    for append in appends:
        last = seconds
        seconds, _ = taken(
            lambda append=append: accumulator.append(  # type: ignore[misc]
                append.epoch, append.records, 0, append.values
            )
        )
        seconds += last
    found.append(seconds)  # the last part has its effects performed in the same step
    written, batches = taken(accumulator.drain)
    found.append(written + taken(lambda: [batch.encoded for batch in batches])[0])
    found.append(taken(lambda: machine.on_committed(batches[-1].next_offset, 0))[0])
    gc.unfreeze()
    return found


@pytest.mark.parametrize("name", EVENTS)
def test_no_step_of_a_large_event_takes_more_than_a_fifth_of_it(benchmark: Any, name: str) -> None:
    before, request = EVENTS[name]
    found: list[list[float]] = []
    benchmark.pedantic(lambda: found.append(parts_s(before, request)), rounds=3)
    longest, whole = (min(map(of, found)) for of in (max, sum))
    benchmark.extra_info["steps"] = len(found[0])
    benchmark.extra_info["milliseconds"] = [round(1e3 * s, 1) for s in (longest, whole)]
    assert longest < whole / 5
