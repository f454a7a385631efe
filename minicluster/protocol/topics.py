"""Topic names: those of Kafka's own topics, and the rule for all.

Source:  org.apache.kafka.common.internals.Topic.
"""

from __future__ import annotations

from minicluster.java_order import string_hash

METADATA_TOPIC = "__cluster_metadata"
GROUP_METADATA_TOPIC = "__consumer_offsets"
TRANSACTION_STATE_TOPIC = "__transaction_state"
SHARE_GROUP_STATE_TOPIC = "__share_group_state"
ADMIN_CLIENT_ID = "__admin_client"
"""The only client id whose Produce may append to internal topics (KafkaApis, AdminUtils)."""

INTERNAL_TOPICS = frozenset(
    {GROUP_METADATA_TOPIC, TRANSACTION_STATE_TOPIC, SHARE_GROUP_STATE_TOPIC}
)

MAX_NAME_LENGTH = 249
_LEGAL = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-")


def invalid_name_reason(name: str) -> str | None:
    """The reason why no topic can have a name, None for a valid one."""
    if not name:
        return "the empty string is not allowed"
    if name in (".", ".."):
        return f"'{name}' is not allowed"
    if len(name) > MAX_NAME_LENGTH:
        return f"the length of '{name}' is longer than the max allowed length {MAX_NAME_LENGTH}"
    if not _LEGAL.issuperset(name):
        return (
            f"'{name}' contains one or more characters other than ASCII alphanumerics, "
            "'.', '_' and '-'"
        )
    return None


def partition_of(key: str, partitions: int) -> int:
    """The partition of an internal topic that has a group id or a transactional id.

    Source:  Utils.abs of String.hashCode.
    """
    code = string_hash(key)
    signed = code - (1 << 32) if code >= 1 << 31 else code
    return (abs(signed) & 0x7FFFFFFF) % partitions


def has_collision_chars(name: str) -> bool:
    """True for a name with a character that metric names fold into another.

    Source:  org.apache.kafka.common.internals.Topic.
    """
    return "." in name or "_" in name


def unify_collision_chars(name: str) -> str:
    """The form of a name in which topics may not be equal."""
    return name.replace(".", "_")
