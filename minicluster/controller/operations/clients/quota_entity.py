"""An entity of quotas, and the quotas that it can have.

Leaves out: the resolution of a host's name, which needs a name server.
Source:  ClientQuotaEntity, ClientQuotaControlManager.validateEntity, configKeysForEntityType;
         InetAddress.getByName.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Mapping, Sequence
from typing import Any

from minicluster.java_order import hash_map_order, string_hash, string_map_hash
from minicluster.lazy_dataclass import dataclass

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


@dataclass(frozen=True, slots=True)
class QuotaEntity:
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
    return re.fullmatch(_HOST, text) is not None


def _is_ipv4(text: str) -> bool:
    """True for up to four numbers, of which the last one has the bytes that the others leave."""
    parts = text.split(".")
    if len(parts) > 4 or not all(parts):
        return False
    *first, last = (int(part) for part in parts)
    return all(number < 256 for number in first) and last < 256 ** (5 - len(parts))
