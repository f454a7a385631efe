"""Epochs that a request may leave out."""

from __future__ import annotations

from minicluster.log.epochs import NO_EPOCH


def optional_epoch(epoch: int) -> int | None:
    """The epoch in a request; None from a sender without one, as in RequestUtils.getLeaderEpoch."""
    return None if epoch == NO_EPOCH else epoch
