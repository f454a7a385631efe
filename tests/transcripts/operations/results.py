"""Results of transcript operations, and the draws that they take as recorded."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any
from uuid import UUID

from minicluster.controller.decision import Decision
from minicluster.protocol import ErrorCode, parse_uuid
from minicluster.protocol.records import VersionedRecord


class Draws:
    """The recorded draws, one after the other; another bound or too few of them is a difference."""

    def __init__(self, recorded: list[list[int]]) -> None:
        self._left = list(recorded)
        self.problem = ""

    def __call__(self, bound: int) -> int:
        if not self._left or self._left[0][0] != bound:
            self.problem = f"drew below {bound}, recorded: {self._left[:1]}"
            return 0
        return self._left.pop(0)[1]

    @property
    def remaining(self) -> str:
        """The difference between all draws and the recorded ones; empty when there is none."""
        return self.problem or (f"not drawn: {self._left}" if self._left else "")


@dataclass(slots=True)
class Result:
    """The decision of the machine in the transcript's terms."""

    response: Any = None
    error: str | None = None
    records: tuple[VersionedRecord, ...] = ()
    atomic: bool | None = None
    message: str | None = None
    problem: str = ""


def uuids(texts: list[str]) -> tuple[UUID, ...]:
    return tuple(parse_uuid(text) for text in texts)


def error_name(code: int) -> str:
    return ErrorCode(code).name


def result_of(decision: Decision, response: Any) -> Result:
    return Result(response, None, decision.records, decision.atomic)


def single_result(decision: Decision, item: Any) -> Result:
    """The result of an operation on one topic or resource."""
    result = result_of(decision, error_name(item.error_code))
    result.message = item.error_message
    return result
