"""Producer ids: blocks from the controller, given out one by one.

A block is requested ahead of need; a producer that comes while there is none tries again.

Source:  KIP-98, KIP-730; RPCProducerIdManager.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from typing import Any

from minicluster.channel.backoff import RETRY_BACKOFF_MS
from minicluster.protocol import ErrorCode
from minicluster.protocol.messages import AllocateProducerIdsRequest

PREFETCH_AT = 0.90  # of a block used


class ProducerIds:
    """The blocks of one broker: the one in use and at most one more.

    ``next_request`` is what to send to the controller, if anything is to be sent now;
    ``on_response`` takes what came back (None: nothing).
    """

    def __init__(self, broker_id: int) -> None:
        self.broker_id = broker_id
        self._current: Iterator[int] = iter(())
        self._left = 0
        self._size = 0
        self._next: deque[tuple[int, int]] = deque()
        self._requested = False
        self._retry_at_ms = 0

    def take(self) -> int | None:
        """An id that was never given before, None if there is none."""
        if self._left == 0:
            if not self._next:
                return None
            start, self._size = self._next.popleft()
            self._current, self._left = iter(range(start, start + self._size)), self._size
        self._left -= 1
        return next(self._current)

    def next_request(self, broker_epoch: int, now_ms: int) -> AllocateProducerIdsRequest | None:
        """The request for a block, if one will be wanted soon and none is on its way."""
        wanted = not self._next and self._size - self._left >= self._size * PREFETCH_AT
        if not wanted or self._requested or now_ms < self._retry_at_ms:
            return None
        self._requested = True
        return AllocateProducerIdsRequest(broker_id=self.broker_id, broker_epoch=broker_epoch)

    def on_response(self, response: Any | None, now_ms: int) -> None:
        """Take a block, or wait a while before the next request."""
        self._requested = False
        if response is None or response.error_code != ErrorCode.NONE:
            self._retry_at_ms = now_ms + RETRY_BACKOFF_MS
            return
        self._next.append((response.producer_id_start, response.producer_id_len))
