"""AlterClientQuotas (49): the quotas of users, clients and addresses (KIP-546).

Versions:  0-1; the version decides nothing.
Leaves out: the resolution of a host's name, which needs a name server: a name counts as one that
           resolves, but those below "invalid", which resolve nowhere (RFC 6761).
Source:  ClientQuotaControlManager, ClientQuotaEntity; InetAddress.getByName.
"""

from __future__ import annotations

import ipaddress
import math
import re
from collections.abc import Mapping, Sequence
from operator import attrgetter
from typing import Any

from minicluster.controller.api import ControllerApi
from minicluster.controller.decision import Decision
from minicluster.controller.errors import ApiError, reject_too_many_records
from minicluster.controller.state.cluster_state import ClusterState
from minicluster.java_order import hash_map_order, string_hash, string_map_hash
from minicluster.protocol import ErrorCode
from minicluster.protocol.messages import AlterClientQuotasRequest, AlterClientQuotasResponse
from minicluster.protocol.records import ClientQuotaRecord, VersionedRecord
from minicluster.security.acls import Operation
from minicluster.values import Value

USER, CLIENT_ID, IP = "user", "client-id", "ip"
_OF_CLIENTS: Mapping[str, str] = {
    "producer_byte_rate": "LONG",
    "consumer_byte_rate": "LONG",
    "request_percentage": "DOUBLE",
    "controller_mutation_rate": "DOUBLE",
}
_OF_ADDRESSES: Mapping[str, str] = {"connection_creation_rate": "INT"}
_HOST = r"(?=.{1,253}\.?$)([A-Za-z0-9_-]{1,63}\.)*[A-Za-z0-9_-]{1,63}\.?"
_NUMBERS = r"[0-9.]*"
_ROOM_OF_RECORD = 3
_LARGEST = {"INT": 2**31 - 1, "LONG": 2**63}  # as a double has them
_TOLERANCE = 1e-6

Response = AlterClientQuotasResponse


def alter_client_quotas(
    state: ClusterState, request: AlterClientQuotasRequest, version: int, now_ms: int
) -> Decision:
    """Set and remove quotas; an entity changes as a whole or not at all, all records are one batch.

    An entity that comes twice is rejected, and yet its first changes are made. So is one with a key
    that comes twice, which changes nothing.
    Errors:  INVALID_REQUEST per entity. Rejected with POLICY_VIOLATION for too many changes.
    Source:  ClientQuotaControlManager.alterClientQuotas.
    """
    records: list[VersionedRecord] = []
    results: dict[QuotaEntity, ApiError] = {}
    for entry in request.entries:
        entity = QuotaEntity.of(entry.entity)
        keys = [operation.key for operation in entry.ops]
        if entity in results or len(set(keys)) < len(keys):
            results[entity] = _rejected(f"Ignoring duplicate entity {entity}")
            continue
        results[entity], new = _alter(state, entity, entry.ops)
        records += new
    reject_too_many_records(len(records))
    in_order = hash_map_order(results, attrgetter("java_hash"))
    return Decision(
        records=() if request.validate_only else tuple(records),
        response=Response(entries=tuple(_result(entity, results[entity]) for entity in in_order)),
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
        return _rejected(problem), []
    current = state.image.client_quotas.table.group(tuple(sorted(entity.names)))
    changes = {op.key: None if op.remove else op.value for op in operations}
    new: list[VersionedRecord] = []
    for key in hash_map_order(changes, string_hash, len(operations)):
        value = changes[key]
        if value is not None:
            problem = _value_problem(types, key, value)
            if problem:
                return _rejected(problem), []
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


def _rejected(problem: str) -> ApiError:
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


class QuotaEntity(Value):
    """The names of an entity by their types, in the order of Kafka's hash map."""

    names: tuple[tuple[str, str | None], ...]

    @staticmethod
    def of(entity: Sequence[Any]) -> QuotaEntity:
        """The entity of a request; the last name of a type counts."""
        names = {item.entity_type: item.entity_name for item in entity}
        ordered = hash_map_order(names, string_hash, len(entity))
        return QuotaEntity(tuple((kind, names[kind]) for kind in ordered))

    @property
    def java_hash(self) -> int:
        """Java's hash code."""
        return (31 + string_map_hash(dict(self.names))) & 0xFFFFFFFF

    @property
    def of_records(self) -> tuple[tuple[str, str | None], ...]:
        """The names in the order of a record."""
        names = dict(self.names)
        order = hash_map_order(names, string_hash, _ROOM_OF_RECORD)
        return tuple((kind, names[kind]) for kind in order)

    def __str__(self) -> str:
        """The text that Kafka's messages have."""
        names = ", ".join(f"{k}={'null' if v is None else v}" for k, v in self.names)
        return f"ClientQuotaEntity(entries={{{names}}})"


def quota_types(entity: QuotaEntity) -> tuple[Mapping[str, str], str]:
    """The quotas that an entity can have with their types, or why the entity cannot be."""
    if not entity.names:
        return {}, "Invalid empty client quota entity"
    for kind, name in entity.names:
        if kind not in (USER, CLIENT_ID, IP):
            return {}, f"Unhandled client quota entity type: {kind}"
        if name == "":
            return {}, f"Empty {kind} not supported"
    names = dict(entity.names)
    if IP not in names:
        return _OF_CLIENTS, ""
    if len(names) > 1:
        return {}, (
            "Invalid quota entity combination, IP entity shouldnot be combined with User or "
            "ClientId"
        )
    address = names[IP]
    if address is not None and not _may_be_host(address):
        return {}, f"{address} is not a valid IP or resolvable host."
    return _OF_ADDRESSES, ""


def _may_be_host(text: str) -> bool:
    """True for an address, and for a name that a host can have."""
    if re.fullmatch(_NUMBERS, text):
        return _is_ipv4(text)
    if ":" in text:
        inner = text[1:-1] if text.startswith("[") and text.endswith("]") else text
        try:
            ipaddress.IPv6Address(inner)
        except ValueError:
            return False
        return True
    is_name = re.fullmatch(_HOST, text) is not None
    return is_name and text.rstrip(".").rpartition(".")[2].lower() != "invalid"


def _is_ipv4(text: str) -> bool:
    """True for up to four numbers, of which the last one has the bytes that the others leave."""
    parts = text.split(".")
    if len(parts) > 4 or not all(parts):
        return False
    *first, last = (int(part) for part in parts)
    return all(number < 256 for number in first) and last < 256 ** (5 - len(parts))


API = ControllerApi(
    AlterClientQuotasRequest,
    lambda call: alter_client_quotas(*call.plain),
    items=("entries",),
    nothing=AlterClientQuotasResponse(),
    right=Operation.ALTER_CONFIGS,
)
