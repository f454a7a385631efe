"""Truncation of a follower's log to where it agrees with the leader's.

Source:  KIP-101, KIP-279; AbstractFetcherThread.getOffsetTruncationState, truncateOnFetchResponse.
"""

from __future__ import annotations

from minicluster.log.epochs import UNDEFINED_EPOCH, UNDEFINED_OFFSET
from minicluster.planting import Plantable, step
from minicluster.replica.fetching.fetch_state import FetchState, Phase
from minicluster.replica.partition.follower_log import truncate


@step
def truncate_to_epoch_end(
    fetcher: Plantable, state: FetchState, epoch: int, end_offset: int
) -> None:
    """Truncate by the leader's end of an epoch; where that may not suffice, look up another epoch.

    Shapes:  epoch is the leader's largest one that is not above the requested one; either is -1
             where the leader has none.
    """
    partition = state.partition
    log_end = partition.log_end_offset
    if end_offset == UNDEFINED_OFFSET:
        # The leader has no such epoch: only what is committed is surely common to both logs.
        truncate_to(state, partition.high_watermark)
        return
    if epoch == UNDEFINED_EPOCH:
        # A leader of message format v0 or v1 has a log end, and no epochs.
        truncate_to(state, min(end_offset, log_end))
        return
    own_epoch, own_end = partition.log.end_offset_for(epoch)
    if own_end == UNDEFINED_OFFSET:
        truncate_to(state, min(end_offset, log_end))
    elif own_epoch == epoch:
        truncate_to(state, min(own_end, end_offset, log_end))
    else:
        # This log has no such epoch. Records of its epochs below may not be on the leader, so the
        # largest of those has to be looked up in turn (KIP-279).
        truncate_to(state, min(own_end, log_end))
        state.phase, state.last_fetched_epoch = Phase.TRUNCATING, UNDEFINED_EPOCH


def truncate_to_high_watermark(state: FetchState) -> None:
    """Truncate a log that has no epochs to compare."""
    partition = state.partition
    truncate_to(state, min(partition.high_watermark, partition.log_end_offset))


def truncate_to(state: FetchState, offset: int) -> None:
    """Truncate, and fetch from there."""
    truncate(state.partition, offset)
    state.resume(offset)
