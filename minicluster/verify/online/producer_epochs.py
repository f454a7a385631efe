"""The epochs of transactional producers, as coordinators gave them out (H7)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

Row = Mapping[str, Any]


class ProducerEpochs:
    """Each epoch of a producer id with the event at which it was given out."""

    def __init__(self) -> None:
        self._given: dict[int, list[tuple[int, int]]] = {}  # producer id -> event, epoch

    def on_init(self, row: Row) -> None:
        """A transactional id got this epoch; every lower one is fenced from now on."""
        given = self._given.setdefault(row["producer_id"], [])
        if not given or row["producer_epoch"] > given[-1][1]:
            given.append((row["resp_seq"], row["producer_epoch"]))

    def is_of_fenced(self, row: Row) -> bool | None:
        """The record was sent once its epoch was fenced; None where no epoch was given before."""
        before = [
            epoch
            for event, epoch in self._given.get(row["producer_id"], ())
            if event < row["send_seq"]
        ]
        return before[-1] > row["producer_epoch"] if before else None
