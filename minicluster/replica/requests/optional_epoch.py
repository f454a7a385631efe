"""Epochs that a request may leave out."""

from __future__ import annotations

from minicluster.log.epochs import NO_EPOCH


def optional_epoch(epoch: int) -> int | None:
    """The epoch in a request; None from a sender without one, as in RequestUtils.getLeaderEpoch."""
    return None if epoch == NO_EPOCH else epoch


def fetch_epoch(epoch: int) -> int | None:
    """The epoch in a Fetch; None where it is negative, as in FetchRequest.optionalEpoch."""
    return None if epoch < 0 else epoch
