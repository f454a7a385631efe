"""AlterClientQuotas (49): the quotas of users, clients and addresses (KIP-546).

Versions:  0-1; the version decides nothing.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from minicluster.controller.deciding.decision import Decision
from minicluster.controller.errors import ApiError, refuse_too_many_records
from minicluster.controller.operations.clients.quota_entity import QuotaEntity, quota_types
from minicluster.controller.state.cluster_state import ClusterState
from minicluster.java_order import hash_map_order, string_hash
from minicluster.protocol import ErrorCode
from minicluster.protocol.messages import AlterClientQuotasRequest, AlterClientQuotasResponse
from minicluster.protocol.records import ClientQuotaRecord, VersionedRecord

_LARGEST = {"INT": 2**31 - 1, "LONG": 2**63}  # as a double has them
_TOLERANCE = 1e-6

Response = AlterClientQuotasResponse


def alter_client_quotas(
    state: ClusterState, request: AlterClientQuotasRequest, version: int, now_ms: int
) -> Decision:
    """Set and remove quotas; an entity changes as a whole or not at all, all records are one batch.

    An entity that comes twice is refused, and yet its first changes are made. So is one with a key
    that comes twice, which changes nothing.
    Errors:  INVALID_REQUEST per entity. Refused with POLICY_VIOLATION for too many changes.
    Source:  ClientQuotaControlManager.alterClientQuotas.
    """
    records: list[VersionedRecord] = []
    results: dict[QuotaEntity, ApiError] = {}
    for entry in request.entries:
        entity = QuotaEntity.of(entry.entity)
        keys = [operation.key for operation in entry.ops]
        if entity in results or len(set(keys)) < len(keys):
            results[entity] = _refused(f"Ignoring duplicate entity {entity}")
            continue
        results[entity], new = _alter(state, entity, entry.ops)
        records += new
    refuse_too_many_records(len(records))
    return Decision(
        records=() if request.validate_only else tuple(records),
        response=Response(
            entries=tuple(
                _result(entity, results[entity])
                for entity in hash_map_order(results, lambda entity: entity.java_hash)
            )
        ),
        atomic=True,
    )


def _result(entity: QuotaEntity, error: ApiError) -> Response.EntryData:
    return Response.EntryData(
        error_code=error.error,
        error_message=error.message,
        entity=tuple(
            Response.EntityData(entity_type=kind, entity_name=name) for kind, name in entity.names
        ),
    )


def _alter(
    state: ClusterState, entity: QuotaEntity, operations: Sequence[Any]
) -> tuple[ApiError, list[VersionedRecord]]:
    types, problem = quota_types(entity)
    if problem:
        return _refused(problem), []
    current = state.image.client_quotas.table.group(tuple(sorted(entity.names)))
    changes = {op.key: None if op.remove else op.value for op in operations}
    new: list[VersionedRecord] = []
    for key in hash_map_order(changes, string_hash, len(operations)):
        value = changes[key]
        if value is not None:
            problem = _value_problem(types, key, value)
            if problem:
                return _refused(problem), []
        if current.get(key) != value:
            record = ClientQuotaRecord(
                entity=tuple(
                    ClientQuotaRecord.EntityData(entity_type=kind, entity_name=name)
                    for kind, name in entity.of_records
                ),
                key=key,
                value=0.0 if value is None else value,
                remove=value is None,
            )
            new.append(VersionedRecord(record, 0))
    return ApiError(), new


def _refused(problem: str) -> ApiError:
    return ApiError(ErrorCode.INVALID_REQUEST, problem)


def _value_problem(types: Mapping[str, str], key: str, value: float) -> str:
    if key not in types:
        return f"Invalid configuration key {key}"
    if value <= 0:
        return f"Quota {key} must be greater than 0"
    type_ = types[key]
    if type_ == "DOUBLE":
        return ""
    if value > _LARGEST[type_]:
        article = "an" if type_ == "INT" else "a"
        return f"Proposed value for {key} is too large for {article} {type_}."
    if math.fmod(value, 1.0) > _TOLERANCE:
        return f"{key} cannot be a fractional value."
    return ""
