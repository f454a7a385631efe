"""Examples of the rules in `partition/served.py`."""

from __future__ import annotations

from minicluster.protocol.error_codes import ErrorCode
from minicluster.verify.partition.served import (
    clients_read_committed_records_only,
    fetches_with_another_leader_epoch_are_rejected,
    the_last_stable_offset_is_at_most_the_high_watermark,
)
from tests.verify.examples.example import breaks, keeps
from tests.verify.handwritten.clients import (
    client,
    history,
    leads,
    read,
    read_committed,
    reads,
)
from tests.verify.handwritten.run import EVERYBODY, TOPIC_ID, RunBuilder, as_json, plain_run


@breaks(clients_read_committed_records_only)
def f6_bad() -> RunBuilder:
    """The high watermark is 2, and a consumer gets the record at 2."""
    return read(leads(plain_run()), 2, "c", hw=3)


@breaks(clients_read_committed_records_only)
def f6_beyond_the_response() -> RunBuilder:
    """A consumer gets the record at 1 in a response with high watermark 1."""
    return read(leads(plain_run()), 1, "b", hw=1)


@breaks(clients_read_committed_records_only)
def f6_raised() -> RunBuilder:
    """The high watermark is 2, and a response without records returns 3."""
    run = read(leads(plain_run()), 1, "b")
    return client(run, "fetch", high_watermark=3)


@keeps(clients_read_committed_records_only)
def f6_near() -> RunBuilder:
    """A consumer gets the last committed record; follower 2, whose high watermark is 1, gives the
    one below it."""
    run = read(leads(plain_run()), 1, "b", topic=None, topic_id=TOPIC_ID)
    run.partition("become_follower", broker=2, leo=2)
    run.partition("hw", broker=2, leo=2, hw_old=0, hw_new=1)
    read(run, 0, "a", hw=1, broker=2)
    return client(run, "list", high_watermark=2)


@breaks(the_last_stable_offset_is_at_most_the_high_watermark)
def h5_bad() -> RunBuilder:
    """The high watermark is 5, and a response has last stable offset 6."""
    return client(history(), "fetch", high_watermark=5, last_stable_offset=6)


@breaks(the_last_stable_offset_is_at_most_the_high_watermark)
def h5_beyond() -> RunBuilder:
    """The last stable offset is 4, and a read_committed consumer gets the record at 4."""
    return read_committed(history(), 4, last_stable_offset=4)


@keeps(the_last_stable_offset_is_at_most_the_high_watermark)
def h5_near() -> RunBuilder:
    """read_uncommitted goes beyond the last stable offset, and a response with an error has none
    (-1)."""
    run = client(history(), "fetch", high_watermark=5, last_stable_offset=5)
    client(run, "fetch", high_watermark=5, last_stable_offset=-1)
    return reads(
        read_committed(run, 3, last_stable_offset=4), "m2", 4, isolation=0, last_stable_offset=4
    )


def _fetched(epoch: int, error: int = 0) -> RunBuilder:
    """A Fetch of broker 2 with a current leader epoch; leader 1 is in epoch 0."""
    run = plain_run().partition("become_leader", leo=0, leader_epoch=0, **EVERYBODY)
    topic = {"topicId": TOPIC_ID, "topic": ""}
    requested = {"partition": 0, "currentLeaderEpoch": epoch}
    reported = {"partitionIndex": 0, "errorCode": error}
    return run.rpc(
        "Fetch",
        2,
        dst=1,
        request=as_json({"topics": [{**topic, "partitions": [requested]}]}),
        response=as_json({"responses": [{**topic, "partitions": [reported]}]}),
    )


@breaks(fetches_with_another_leader_epoch_are_rejected)
def f15_bad() -> RunBuilder:
    """The partition is at leader epoch 0, and a Fetch with 1 gets records."""
    return _fetched(1)


@keeps(fetches_with_another_leader_epoch_are_rejected)
def f15_near() -> RunBuilder:
    """The partition is at leader epoch 0; a Fetch with 1 gets an error, and one with 0 records."""
    run = _fetched(1, ErrorCode.UNKNOWN_LEADER_EPOCH)
    run.rows["rpc"] += _fetched(0).rows["rpc"]
    return run
