"""A table by request that loads no message before one of its rows is needed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, TypeVar

from minicluster.protocol import messages

V = TypeVar("V")


class RequestTable(Mapping[type[Any], V]):
    """One row per request, found by the request's class.

    A row names its API. So a node that never gets a request of an API does not load its messages,
    which are a twelfth of an import.

    Errors:  AttributeError while it is walked for a name that is no API's.
    """

    __slots__ = ("_rows",)

    def __init__(self, rows: Mapping[str, V]) -> None:
        self._rows = {f"{api}Request": row for api, row in rows.items()}

    def __getitem__(self, request: type[Any]) -> V:
        return self._rows[request.__name__]

    def __iter__(self) -> Iterator[type[Any]]:
        for name in self._rows:
            yield getattr(messages, name)

    def __len__(self) -> int:
        return len(self._rows)
