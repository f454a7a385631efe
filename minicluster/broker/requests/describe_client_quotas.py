"""DescribeClientQuotas (48): the quotas of entities that match a filter (KIP-546).

Versions:  0-1; the version decides nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from minicluster.broker.api_state import ApiState
from minicluster.java_order import hash_map_order, string_hash, string_map_hash
from minicluster.metadata.image.quotas import Entity
from minicluster.protocol import ErrorCode
from minicluster.protocol.messages import (
    DescribeClientQuotasRequest,
    DescribeClientQuotasResponse,
)

_ENTITY_TYPES = ("user", "client-id", "ip")

Response = DescribeClientQuotasResponse


class _Rejected(Exception):
    """A filter that cannot be."""

    def __init__(self, message: str, error: ErrorCode = ErrorCode.INVALID_REQUEST) -> None:
        super().__init__(message)
        self.error = error


def describe_client_quotas(
    state: ApiState, request: DescribeClientQuotasRequest, version: int, now_ms: int
) -> DescribeClientQuotasResponse:
    """The entities that match every component; strict ones have no other component.

    Errors:  INVALID_REQUEST, UNSUPPORTED_VERSION (an entity type that there is not).
    Source:  ClientQuotasImage.describe.
    """
    try:
        exact, specified = _filter(request.components)
    except _Rejected as rejection:
        return Response(error_code=rejection.error, error_message=str(rejection), entries=None)
    quotas = state.image.client_quotas
    entries = [
        _entry(entity, quotas.table.group(entity))
        for entity in hash_map_order(quotas.table, _code, room=1)
        if _matches(entity, exact, specified, request.strict)
    ]
    return Response(error_message="", entries=tuple(entries))


def _filter(components: Sequence[Any]) -> tuple[dict[str, str | None], set[str]]:
    """The names that components require by type, and the types with any name or default."""
    exact: dict[str, str | None] = {}
    specified: set[str] = set()
    for component in components:
        kind, match = component.entity_type, component.match
        if not kind:
            raise _Rejected("Invalid empty entity type.")
        if kind in exact or kind in specified:
            raise _Rejected(f"Entity type {kind} cannot appear more than once in the filter.")
        if kind not in _ENTITY_TYPES:
            unsupported = ErrorCode.UNSUPPORTED_VERSION
            raise _Rejected(f"Unsupported entity type {kind}", unsupported)
        match component.match_type:
            case 0 if match is None:
                raise _Rejected("Request specified MATCH_TYPE_EXACT, but set match string to null.")
            case 0:
                exact[kind] = match
            case 1 if match is not None:
                raise _Rejected(
                    "Request specified MATCH_TYPE_DEFAULT, but also specified a match string."
                )
            case 1:
                exact[kind] = None
            case 2 if match is not None:
                raise _Rejected(
                    "Request specified MATCH_TYPE_SPECIFIED, but also specified a match string."
                )
            case 2:
                specified.add(kind)
            case unknown:
                raise _Rejected(f"Unknown match type {unknown}")
    kinds = {*exact, *specified}
    if "ip" in kinds and len(kinds) > 1:
        raise _Rejected(
            "Invalid entity filter component combination. IP filter component should not be used "
            "with user or clientId filter component."
        )
    return exact, specified


def _matches(
    entity: Entity, exact: dict[str, str | None], specified: set[str], strict: bool
) -> bool:
    names = dict(entity)
    if strict and len(names) != len(exact) + len(specified):
        return False
    return (
        all(kind in names and names[kind] == name for kind, name in exact.items())
        and specified <= names.keys()
    )


def _code(entity: Entity) -> int:
    """Source:  ClientQuotaEntity.hashCode."""
    return (31 + string_map_hash(dict(entity))) & 0xFFFFFFFF


def _entry(entity: Entity, quotas: dict[str, float]) -> Any:
    return Response.EntryData(
        entity=tuple(
            Response.EntityData(entity_type=kind, entity_name=name)
            for kind, name in hash_map_order(entity, lambda pair: string_hash(pair[0]))
        ),
        values=tuple(
            Response.ValueData(key=key, value=quotas[key])
            for key in hash_map_order(quotas, string_hash, room=1)
        ),
    )
