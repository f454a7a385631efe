"""AlterConfigs (33): replace all configs of a resource.

Versions:  0-2; the version decides nothing.
"""

from __future__ import annotations

from minicluster.controller.deciding.config_changes import (
    ConfigChange,
    ConfigOperation,
    alter_resource,
    clear_elr_records,
)
from minicluster.controller.deciding.decision import Decision
from minicluster.controller.errors import refuse_too_many_records
from minicluster.controller.state.cluster_state import ClusterState
from minicluster.java_order import string_hash, timeline_order
from minicluster.protocol.messages import AlterConfigsRequest, AlterConfigsResponse
from minicluster.protocol.records import VersionedRecord


def alter_configs(
    state: ClusterState, request: AlterConfigsRequest, version: int, forwarded: bool, now_ms: int
) -> Decision:
    """Replace all configs of resources: what the request does not name is deleted.

    Shapes:  forwarded: a broker passed the request on, and has checked its own directories.
    Errors:  per resource. Refused with POLICY_VIOLATION for too many changes.
    Source:  ConfigurationControlManager.legacyAlterConfigs.
    """
    records: list[VersionedRecord] = []
    responses = []
    for resource in request.resources:
        key = (resource.resource_type, resource.resource_name)
        wanted = {config.name: config.value for config in resource.configs}
        changes = [ConfigChange(n, ConfigOperation.SET, value) for n, value in wanted.items()]
        changes += [
            ConfigChange(name, ConfigOperation.DELETE, None)
            for name in timeline_order(state.image.configs.of(*key), string_hash)
            if name not in wanted
        ]
        error, new = alter_resource(state, key, changes, forwarded=forwarded)
        records += new
        responses.append(
            AlterConfigsResponse.AlterConfigsResourceResponse(
                error_code=error.error,
                error_message=error.message,
                resource_type=resource.resource_type,
                resource_name=resource.resource_name,
            )
        )
    records += clear_elr_records(state, records)
    refuse_too_many_records(len(records))
    return Decision(
        records=() if request.validate_only else tuple(records),
        response=AlterConfigsResponse(responses=tuple(responses)),
        atomic=True,
    )
