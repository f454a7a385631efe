"""JSON as Kafka's znodes have it: no spaces, keys in the order of the Scala map that held them.

Source:  kafka.utils.Json, scala.collection.mutable.HashMap.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from minicluster.java_order import scala_map_order, string_hash
from minicluster.protocol.errors import ProtocolError


def encode_in_order(value: Mapping[str, Any]) -> bytes:
    """A text whose keys are in the order of the mapping, as of a small immutable map."""
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode()


def hashed(value: Mapping[str, Any], made_from: int = 0) -> dict[str, Any]:
    """The same entries in the order of a mutable Scala map, made from so many of them."""
    return {key: value[key] for key in scala_map_order(value, string_hash, made_from)}


class NotJson(ProtocolError):
    """A text that cannot be parsed at all; Kafka takes it for one without content."""


def decode_object(data: bytes | None, name: str) -> dict[str, Any]:
    """The JSON object of a znode.

    Errors:  NotJson if its data cannot be parsed, ProtocolError with the name of the znode if it
             is not a JSON object. A znode without data is the latter, as for Jackson.
    """
    if not (data or b"").strip():
        raise ProtocolError(name, "", "no JSON object but nothing")
    try:
        value = json.loads(data or b"")
    except (ValueError, RecursionError) as error:
        raise NotJson(name, "", f"no JSON: {error}") from error
    if not isinstance(value, dict):
        raise ProtocolError(name, "", "no JSON object")
    return value
