"""The follower's end of its fetch session: each request names what has changed since the last one.

    full request, epoch 0 --session id--> incremental, epoch 1 --> incremental, epoch 2 ...
    incremental --FETCH_SESSION_ID_NOT_FOUND--> full, without the old id
    incremental --any other error, no response--> full, closes the old session

A leader without room for a session responds with id 0, and every request is a full one.

Source:  KIP-227; FetchSessionHandler, FetchMetadata.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Sequence
from typing import Any

from minicluster.protocol import ErrorCode
from minicluster.replica.fetching.fetch_state import FetchKey
from minicluster.replica.sessions.fetch_session import (
    INITIAL_EPOCH,
    INVALID_SESSION_ID,
    next_epoch,
)

Named = tuple[str, uuid.UUID, Any]  # a topic's name and id, and a partition as requests have it


class FetchSessionHandler:
    """The session with one leader.

    Shapes:  ``partitions`` has each partition as the leader was last sent it, with its topic.
             ``id`` and ``epoch`` are those of the next request.
    """

    def __init__(self) -> None:
        self.id = INVALID_SESSION_ID
        self.epoch = INITIAL_EPOCH
        self.partitions: dict[FetchKey, Named] = {}
        self._by_name: dict[tuple[str, int], FetchKey] | None = None

    @property
    def is_full(self) -> bool:
        """The next request has all partitions."""
        return self.epoch == INITIAL_EPOCH

    def keys_by_name(self) -> dict[tuple[str, int], FetchKey]:
        """The partitions as requests and responses without topic ids name them."""
        if self._by_name is None:
            self._by_name = {(name, key[1]): key for key, (name, _, _) in self.partitions.items()}
        return self._by_name

    def update(
        self, changed: Iterable[tuple[FetchKey, Named | None]]
    ) -> tuple[list[FetchKey], list[tuple[FetchKey, Named]]]:
        """Take the partitions of the next request: with its data, or None to leave it out.

        Shapes:  -> the keys to send, and the keys to forget with what was sent of them.
        Source:  FetchSessionHandler.Builder.build.
        """
        partitions, is_full = self.partitions, self.is_full
        to_send: list[FetchKey] = []
        to_forget: list[tuple[FetchKey, Named]] = []
        for key, named in changed:
            before = partitions.get(key)
            if named is None:
                if before is not None:
                    del partitions[key]
                    self._by_name = None
                    to_forget.append((key, before))
            elif before != named:
                if before is None:
                    self._by_name = None
                partitions[key] = named
                to_send.append(key)
        return (list(partitions), []) if is_full else (to_send, to_forget)

    def on_response(self, response: Any, keys: Sequence[FetchKey]) -> bool:
        """Take a response and the partitions that it has.

        Shapes:  -> whether its partitions may be used.
        Source:  FetchSessionHandler.handleResponse.
        """
        if response.error_code == ErrorCode.FETCH_SESSION_ID_NOT_FOUND:
            self._open_another()
            return False
        if response.error_code != ErrorCode.NONE:
            self.on_failure()
            return False
        sent = self.partitions
        if self.is_full:
            if set(keys) != sent.keys():
                self._open_another()
                return False
        elif any(key not in sent for key in keys):
            self.on_failure()
            return False
        if response.session_id == INVALID_SESSION_ID:
            self._open_another()
        else:
            self.id, self.epoch = response.session_id, next_epoch(self.epoch)
        return True

    def on_failure(self) -> None:
        """Close the session with the next request, which is a full one.

        Source:  FetchSessionHandler.handleError, FetchMetadata.nextCloseExistingAttemptNew.
        """
        self.epoch = INITIAL_EPOCH

    def _open_another(self) -> None:
        self.id, self.epoch = INVALID_SESSION_ID, INITIAL_EPOCH
