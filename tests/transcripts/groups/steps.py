"""Commands to a coordinator, and what comes of each: the form of both sides and of recordings.

| command | fields |
|---|---|
| ``start`` | ``now_ms``, ``config``: an empty log |
| ``metadata`` | ``records`` (framed, base64), ``offset`` of the last one |
| ``request`` | ``token``, ``api``, ``version``, ``client``, ``body`` (base64) |
| ``end_txn`` | ``producer_id``, ``epoch``, ``commit`` |
| ``advance`` | ``ms``; what works in the background is done first |
| ``group_config`` | ``group_id``, ``config`` |
| ``restart`` | the log is loaded again |

A step has ``responses`` (token and body in base64, null for none) and ``written``: batches with
``producer_id``, ``control`` and ``records``, which are pairs of key and value in base64.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

Row = tuple[bytes, bytes | None]
Command = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Batch:
    """A batch of the internal topic."""

    producer_id: int
    is_control: bool
    rows: tuple[Row, ...]


@dataclass(slots=True)
class Step:
    """What came of one command.

    Shapes:  responses: token and bytes, None for a request that has no response; failure: what
             ended ours.
    """

    responses: list[tuple[int, bytes | None]] = field(default_factory=list)
    batches: list[Batch] = field(default_factory=list)
    failure: str | None = None

    @classmethod
    def of(cls, form: Mapping[str, Any]) -> Step:
        """A step from its form."""
        return cls(
            [(token, _bytes(body)) for token, body in form["responses"]],
            [
                Batch(
                    batch["producer_id"],
                    batch["control"],
                    tuple((_bytes(key) or b"", _bytes(value)) for key, value in batch["records"]),
                )
                for batch in form["written"]
            ],
        )

    def form(self) -> dict[str, Any]:
        """The form of a step."""
        return {
            "responses": [[token, _text(body)] for token, body in self.responses],
            "written": [
                {
                    "producer_id": batch.producer_id,
                    "control": batch.is_control,
                    "records": [[_text(key), _text(value)] for key, value in batch.rows],
                }
                for batch in self.batches
            ],
        }


def _bytes(text: str | None) -> bytes | None:
    return None if text is None else base64.b64decode(text)


def _text(data: bytes | None) -> str | None:
    return None if data is None else base64.b64encode(data).decode()
