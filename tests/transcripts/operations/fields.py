"""The fields of requests in controller transcripts."""

from __future__ import annotations

from typing import Any

# What requests have; another field means something that the operations below do not do.
_KNOWN_FIELDS = """
    allow_replication_factor_change assignments broker_epoch broker_id broker_ids cluster_id
    configs cordoned_log_dirs count current_metadata_offset directories election_type feature id
    incarnation_id leader_epoch leader_recovery_state log_dirs max_version_level name
    new_isr_with_epochs
    num_partitions offline_log_dirs operation partition_epoch partition_index partition_indexes
    partitions previous_broker_epoch rack replicas replication_factor resource_name resource_type
    topic topic_id topic_name topic_partitions topics updates upgrade_type validate_only value
    version want_fence
    want_shut_down
"""
KNOWN_FIELDS = frozenset(_KNOWN_FIELDS.split())


def unknown_fields(request: Any) -> list[str]:
    """The fields of a request, however deep, that no operation reads."""
    if isinstance(request, list):
        return sorted({name for item in request for name in unknown_fields(item)})
    if not isinstance(request, dict):
        return []
    below = {name for value in request.values() for name in unknown_fields(value)}
    return sorted(below | (request.keys() - KNOWN_FIELDS))
