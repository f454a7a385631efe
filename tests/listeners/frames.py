"""Frames from a seed: requests with any values, the same with wrong bytes, and garbage."""

from __future__ import annotations

import itertools
import random
import uuid
from collections.abc import Iterator, Mapping
from typing import Any

from minicluster.errors import MiniclusterError
from minicluster.protocol import decode, decode_prefix, encode
from minicluster.protocol.api_keys import APIS
from minicluster.protocol.messages import (
    AddPartitionsToTxnRequest,
    RequestHeader,
    UnregisterBrokerRequest,
)
from minicluster.protocol.schema import FieldSpec, Struct
from tests.listeners.raw_client import sized

WAIT_MAX_MS = 5
FIRST_BATCHED = 4  # version of AddPartitionsToTxn
_WAITS = ("max_wait_ms", "timeout_ms", "session_timeout_ms", "rebalance_timeout_ms")
_NODES = ("broker_id", "voter_id", "replica_id")
_TEXTS = ("orders", "orders", "compacted", "other", "", "1", "-1", "segment.ms", "x" * 300, "ü\0")
_BITS = {"int8": 8, "int16": 16, "uint16": 15, "int32": 32, "uint32": 31, "int64": 64}


class Frames:
    """A source of frames.

    Shapes:  topic_ids: of the topics that are there.
    """

    def __init__(
        self, seed: int, served: Mapping[int, range], topic_ids: tuple[uuid.UUID, ...]
    ) -> None:
        self.chance = random.Random(seed)
        self.served = served
        self.topic_ids = topic_ids

    def __iter__(self) -> Iterator[bytes]:
        while True:
            kind = self.chance.random()
            if kind < 0.05:
                yield self.chance.randbytes(self.chance.randrange(200))
                continue
            body = self._request()
            if kind > 0.5:
                body = self._damaged(body)
            if not _is_left_out(body):
                yield sized(body)

    def connections(self, count: int, most: int) -> Iterator[list[bytes]]:
        """So many frames, by connection: the one that ends a connection is its last.

        Shapes:  most: frames of one connection.
        """
        frames: list[bytes] = []
        for frame in itertools.islice(self, count):
            frames.append(frame)
            if len(frames) == most or not self._is_served(frame[4:]):
                yield frames
                frames = []
        if frames:
            yield frames

    def _is_served(self, body: bytes) -> bool:
        key, version = int.from_bytes(body[:2], "big"), int.from_bytes(body[2:4], "big")
        return version in self.served.get(key, ()) and _decoded(body) is not None

    def _request(self) -> bytes:
        key = self.chance.choice(sorted(self.served))
        version = self.chance.choice(self.served[key])
        api = APIS[key]
        header = RequestHeader(
            request_api_key=key,
            request_api_version=version,
            correlation_id=self.chance.getrandbits(31),
            client_id=self.chance.choice((None, "", "app-1", "x" * 1_000)),
        )
        while True:
            try:
                body = encode(self._struct(api.request, version), version)
            except MiniclusterError:  # a value that no bytes can carry
                continue
            return encode(header, api.request_header_version(version)) + body

    def _damaged(self, body: bytes) -> bytes:
        damaged = bytearray(body)
        for _ in range(self.chance.randrange(1, 4)):
            at = self.chance.randrange(len(damaged))
            match self.chance.randrange(4):
                case 0:
                    damaged[at] = self.chance.randrange(256)
                case 1:
                    damaged[at : at + 4] = b"\x7f\xff\xff\xff"
                case 2:
                    del damaged[at : at + self.chance.randrange(1, 9)]
                case 3:
                    damaged[at:at] = self.chance.randbytes(self.chance.randrange(1, 9))
            if not damaged:
                break
        return bytes(damaged)

    def _struct(self, kind: type[Struct], version: int) -> Any:
        values = {
            spec.name: self._field(spec, version)
            for spec in kind.schema
            if version in spec.versions
        }
        return kind(**values)

    def _field(self, spec: FieldSpec, version: int) -> Any:
        chance = self.chance
        if version in spec.nullable and chance.random() < 0.2:
            return None
        if version in spec.tagged and chance.random() < 0.3:
            return spec.default
        if spec.name in _WAITS:
            return chance.randrange(WAIT_MAX_MS)
        if spec.name in _NODES:
            return chance.choice((-1, 2, 7, -(2**31)))
        if spec.type_ == "array":
            count = chance.choice((0, 1, 1, 2))
            return tuple(self._item(spec, version) for _ in range(count))
        return self._item(spec, version)

    def _item(self, spec: FieldSpec, version: int) -> Any:
        chance = self.chance
        if spec.struct is not None:
            return self._struct(spec.struct, version)
        match spec.element:
            case "string":
                return chance.choice(_TEXTS)
            case "uuid":
                return chance.choice((*self.topic_ids, uuid.UUID(int=chance.getrandbits(128))))
            case "boolean":
                return chance.random() < 0.5
            case "float64":
                return chance.choice((0.0, -1.0, 1e300, float("inf"), float("nan")))
            case "bytes" | "records":
                return chance.randbytes(chance.randrange(100))
            case number:
                bits = _BITS[number]
                low = 0 if number.startswith("u") else -(1 << bits - 1)
                return chance.choice((0, 0, 1, 2, -1 if low else 3, low, (1 << bits - 1) - 1))


def _is_left_out(body: bytes) -> bool:
    """A request that waits long, because damage has hit its time; or that ends the broker.

    And a batch of AddPartitionsToTxn without transactions, which gets no response.
    """
    request = _decoded(body)
    if isinstance(request, AddPartitionsToTxnRequest):
        return int.from_bytes(body[2:4], "big") >= FIRST_BATCHED and not request.transactions
    if isinstance(request, UnregisterBrokerRequest):
        return request.broker_id == 1
    return any(getattr(request, name, 0) > WAIT_MAX_MS for name in _WAITS)


def _decoded(body: bytes) -> Any:
    """The request of these bytes, None where they are no request."""
    try:
        key, version = int.from_bytes(body[:2], "big"), int.from_bytes(body[2:4], "big")
        api = APIS[key]
        _, end = decode_prefix(RequestHeader, body, api.request_header_version(version))
        return decode(api.request, body[end:], version, rest_allowed=True)
    except (MiniclusterError, KeyError):
        return None
