"""The metadata sink: follows the committed metadata log while the cluster runs.

Every controller reports its committed batches to the inlet. The inlet passes each batch on once, in
order, and the sink delivers it to its followers: the image that tests look at, the live checks
(``live_checks.py``), the streams onto disk (``streams.py``).
"""

from __future__ import annotations

import threading
from collections.abc import Iterable
from typing import Any, Protocol

import pykka

from minicluster.actors.recording.committed_image import CommittedImage
from minicluster.actors.runtime.runtime import ClusterActor
from minicluster.log.batch import RecordBatch
from minicluster.values import Value


class CommitFollower(Protocol):
    """A receiver of every committed batch, once and in the order of the log.

    An exception of ``on_committed`` ends the run and reaches the test.
    """

    def on_committed(self, batch: RecordBatch) -> None:
        """The next committed batch, data or control."""

    def close(self) -> None:
        """End of the run; no batch follows."""


class CommittedBatches(Value):
    """Batches that have become committed."""

    batches: tuple[RecordBatch, ...]


class Follow(Value):
    """Add a follower, which receives the log from its start."""

    follower: CommitFollower


class Inlet:
    """Where the controllers report commits; safe to use from any actor."""

    def __init__(self) -> None:
        self.next_offset = 0
        self._lock = threading.Lock()
        self._sink: pykka.ActorRef[MetadataSink] | None = None

    def connect(self, sink: pykka.ActorRef[MetadataSink]) -> None:
        """Name the actor that takes the batches."""
        self._sink = sink

    def offer(self, batches: Iterable[RecordBatch]) -> None:
        """Report batches that a node has seen committed; the first report of each counts."""
        with self._lock:
            new = tuple(batch for batch in batches if batch.base_offset >= self.next_offset)
            if new and self._sink is not None:
                self.next_offset = new[-1].next_offset
                self._sink.tell(CommittedBatches(new))


class MetadataSink(ClusterActor):
    """The actor that hands committed batches to the followers."""

    def __init__(self, followers: list[CommitFollower], committed: CommittedImage) -> None:
        super().__init__()
        self.followers = followers
        self.committed = committed

    def on_receive(self, message: Any) -> None:
        if isinstance(message, CommittedBatches):
            for batch in message.batches:
                for follower in self.followers:
                    follower.on_committed(batch)
        elif isinstance(message, Follow):
            for batch in self.committed.batches:
                message.follower.on_committed(batch)
            self.followers.append(message.follower)
        else:
            raise NotImplementedError(f"{self.name} does not understand {message!r}")

    def on_stop(self) -> None:
        for follower in self.followers:
            follower.close()
