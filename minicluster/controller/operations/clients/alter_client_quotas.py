"""AlterClientQuotas (49): the quotas of users, clients and addresses (KIP-546).

Versions:  0-1; the version decides nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from minicluster.controller.deciding.decision import Decision
from minicluster.controller.errors import ApiError
from minicluster.controller.state.cluster_state import ClusterState
from minicluster.metadata.image.quotas import Entity
from minicluster.protocol import ErrorCode
from minicluster.protocol.messages import AlterClientQuotasRequest, AlterClientQuotasResponse
from minicluster.protocol.records import ClientQuotaRecord, VersionedRecord

USER, CLIENT_ID, IP = "user", "client-id", "ip"
_OF_CLIENTS: Mapping[str, str] = {
    "producer_byte_rate": "LONG",
    "consumer_byte_rate": "LONG",
    "request_percentage": "DOUBLE",
    "controller_mutation_rate": "DOUBLE",
}
_OF_ADDRESSES: Mapping[str, str] = {"connection_creation_rate": "INT"}
_LARGEST = {"INT": 2**31 - 1, "LONG": 2**63 - 1}
_TOLERANCE = 1e-6

Response = AlterClientQuotasResponse


def alter_client_quotas(
    state: ClusterState, request: AlterClientQuotasRequest, version: int, now_ms: int
) -> Decision:
    """Set and remove quotas; an entity changes as a whole or not at all, all records are one batch.

    Errors:  INVALID_REQUEST per entity.
    Source:  ClientQuotaControlManager.alterClientQuotas.
    """
    records: list[VersionedRecord] = []
    results = []
    for entry in request.entries:
        error, new = _alter(state, entry.entity, entry.ops)
        records += new
        results.append(
            Response.EntryData(
                error_code=error.error,
                error_message=error.message,
                entity=tuple(
                    Response.EntityData(entity_type=kind, entity_name=name)
                    for kind, name in sorted(_names(entry.entity).items(), key=lambda e: e[0])
                ),
            )
        )
    return Decision(
        records=() if request.validate_only else tuple(records),
        response=Response(entries=tuple(results)),
        atomic=True,
    )


def _names(entity: Sequence[Any]) -> dict[str, str | None]:
    return {item.entity_type: item.entity_name for item in entity}


def _alter(
    state: ClusterState, entity: Sequence[Any], operations: Sequence[Any]
) -> tuple[ApiError, list[VersionedRecord]]:
    names = _names(entity)
    keys, problem = _valid_keys(names)
    if problem:
        return _refused(problem), []
    key_of: Entity = tuple(sorted(names.items()))
    current = state.image.client_quotas.table.group(key_of)
    changes = {op.key: None if op.remove else op.value for op in operations}
    new: list[VersionedRecord] = []
    for key, value in changes.items():
        if value is not None:
            problem = _value_problem(keys, key, value)
            if problem:
                return _refused(problem), []
        if current.get(key) != value:
            record = ClientQuotaRecord(
                entity=tuple(
                    ClientQuotaRecord.EntityData(entity_type=kind, entity_name=name)
                    for kind, name in names.items()
                ),
                key=key,
                value=0.0 if value is None else value,
                remove=value is None,
            )
            new.append(VersionedRecord(record, 0))
    return ApiError(), new


def _refused(problem: str) -> ApiError:
    return ApiError(ErrorCode.INVALID_REQUEST, problem)


def _valid_keys(names: Mapping[str, str | None]) -> tuple[Mapping[str, str], str]:
    """The quotas that an entity can have with their types, or why the entity cannot be."""
    if not names:
        return {}, "Invalid empty client quota entity"
    for kind, name in names.items():
        if kind not in (USER, CLIENT_ID, IP):
            return {}, f"Unhandled client quota entity type: {kind}"
        if name == "":
            return {}, f"Empty {kind} not supported"
    if IP not in names:
        return _OF_CLIENTS, ""
    if len(names) > 1:
        return {}, (
            "Invalid quota entity combination, IP entity shouldnot be combined with User or "
            "ClientId"
        )
    return _OF_ADDRESSES, ""


def _value_problem(keys: Mapping[str, str], key: str, value: float) -> str:
    if key not in keys:
        return f"Invalid configuration key {key}"
    if value <= 0:
        return f"Quota {key} must be greater than 0"
    type_ = keys[key]
    if type_ == "DOUBLE":
        return ""
    if value > _LARGEST[type_]:
        article = "an" if type_ == "INT" else "a"
        return f"Proposed value for {key} is too large for {article} {type_}."
    if abs(round(value) - value) > _TOLERANCE:
        return f"{key} cannot be a fractional value."
    return ""
