"""The znodes of brokers, the controller and the features.

Source:  KIP-584; kafka.zk.BrokerIdZNode, ControllerZNode, ControllerEpochZNode, FeatureZNode,
         ClusterIdZNode, ProducerIdBlockZNode.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec import field

from minicluster.protocol.errors import ProtocolError
from minicluster.values import Value
from minicluster.zookeeper.znodes.json_text import decode_object, encode_in_order, hashed


class ZnodeEndpoint(Value, kw_only=True):
    """A listener of a broker."""

    listener: str
    security_protocol: str
    host: str
    port: int


class BrokerRegistration(Value, kw_only=True):
    """The ephemeral znode of a broker: version 5 has features (IBP 2.7), version 4 has none."""

    endpoints: tuple[ZnodeEndpoint, ...]
    timestamp_ms: int
    version: int = 5
    jmx_port: int = -1
    rack: str | None = None
    features: Mapping[str, Mapping[str, int]] = field(default_factory=dict)

    def encode(self) -> bytes:
        """The text of the znode."""
        of_plain = (each for each in self.endpoints if each.security_protocol == "PLAINTEXT")
        plain = next(of_plain, None)
        value: dict[str, Any] = {
            "version": self.version,
            "host": plain.host if plain else None,
            "port": plain.port if plain else -1,
            "endpoints": [f"{each.listener}://{each.host}:{each.port}" for each in self.endpoints],
            "jmx_port": self.jmx_port,
            "timestamp": str(self.timestamp_ms),
        }
        if self.rack is not None:
            value["rack"] = self.rack
        protocols = {each.listener: each.security_protocol for each in self.endpoints}
        value["listener_security_protocol_map"] = protocols
        if self.version >= 5:
            value["features"] = {name: dict(levels) for name, levels in self.features.items()}
        return encode_in_order(hashed(value, made_from=6))

    @classmethod
    def decode(cls, data: bytes | None) -> BrokerRegistration:
        """Read the text of the znode."""
        value = decode_object(data, "broker registration")
        protocols = value.get("listener_security_protocol_map", {})
        try:
            return cls(
                endpoints=tuple(_endpoint(text, protocols) for text in value["endpoints"]),
                timestamp_ms=int(value["timestamp"]),
                version=value["version"],
                jmx_port=value["jmx_port"],
                rack=value.get("rack"),
                features=value.get("features", {}),
            )
        except (KeyError, TypeError, ValueError) as error:
            raise ProtocolError("broker registration", "", f"bad value: {error!r}") from error


def _endpoint(text: str, protocols: Mapping[str, str]) -> ZnodeEndpoint:
    listener, _, address = text.partition("://")
    host, _, port = address.rpartition(":")
    protocol = protocols.get(listener, listener)
    return ZnodeEndpoint(listener=listener, security_protocol=protocol, host=host, port=int(port))


def encode_controller(broker: int, timestamp_ms: int, *, with_kraft_epoch: bool) -> bytes:
    """The ephemeral znode of the controller; since release 3.4 it has an epoch for migration."""
    value: dict[str, Any] = {"version": 1, "brokerid": broker, "timestamp": str(timestamp_ms)}
    if with_kraft_epoch:
        value |= {"version": 2, "kraftControllerEpoch": -1}
    return encode_in_order(value)


def decode_controller(data: bytes | None) -> int:
    """The broker that is the controller."""
    broker = decode_object(data, "controller").get("brokerid")
    if not isinstance(broker, int):
        raise ProtocolError("controller", "brokerid", f"{broker!r} is not a number")
    return broker


def encode_controller_epoch(epoch: int) -> bytes:
    """A bare number."""
    return str(epoch).encode()


def decode_controller_epoch(data: bytes | None) -> int:
    """The epoch of the newest controller."""
    text = (data or b"").decode(errors="replace")
    if not text.isdigit():
        raise ProtocolError("controller epoch", "", f"{text!r} is not a number")
    return int(text)


def encode_features(version: int, *, enabled: bool, features: Mapping[str, int]) -> bytes:
    """The finalized features; version 1 has a lowest level as well (before IBP 3.3)."""

    def levels(level: int) -> dict[str, int]:
        low = {"min_version_level": level} if version == 1 else {}
        return {"max_version_level": level} | low

    value = {
        "version": version,
        "status": int(enabled),
        "features": {name: levels(level) for name, level in features.items()},
    }
    return encode_in_order(hashed(value, made_from=3))


def encode_cluster_id(cluster_id: str) -> bytes:
    """The id that the first broker chose."""
    return encode_in_order({"version": "1", "id": cluster_id})


def encode_producer_id_block(broker: int, first: int, last: int) -> bytes:
    """The newest block of producer ids (KIP-730)."""
    value = {"version": 1, "broker": broker, "block_start": str(first), "block_end": str(last)}
    return encode_in_order(value)


def decode_producer_id_block(data: bytes | None) -> tuple[int, int]:
    """The first and the last producer id of the newest block."""
    value = decode_object(data, "producer id block")
    try:
        return int(value["block_start"]), int(value["block_end"])
    except (KeyError, TypeError, ValueError) as error:
        raise ProtocolError("producer id block", "", f"bad value: {error!r}") from error
