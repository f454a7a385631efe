"""IncrementalAlterConfigs (44): set, delete, append to or subtract from single configs (KIP-339).

Versions:  0-1; the version decides nothing.
"""

from __future__ import annotations

from collections.abc import Sequence

from minicluster.controller.deciding.config_changes import (
    ConfigChange,
    ConfigOperation,
    alter_resource,
    clear_elr_records,
)
from minicluster.controller.deciding.decision import Decision
from minicluster.controller.errors import ApiError, ControllerFault, refuse_too_many_records
from minicluster.controller.state.cluster_state import ClusterState
from minicluster.protocol import ErrorCode
from minicluster.protocol.messages import (
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)
from minicluster.protocol.records import VersionedRecord


def incremental_alter_configs(
    state: ClusterState,
    request: IncrementalAlterConfigsRequest,
    version: int,
    forwarded: bool,
    now_ms: int,
) -> Decision:
    """Change single configs; a resource is changed as a whole or not at all.

    Shapes:  forwarded: a broker passed the request on, and has checked its own directories.
    Errors:  per resource. Refused with POLICY_VIOLATION for too many changes. ControllerFault
             where ``Rules.malformed_config_change_is_fatal``.
    Source:  KIP-339; ConfigurationControlManager.incrementalAlterConfigs.
    """
    records: list[VersionedRecord] = []
    responses = []
    for resource in request.resources:
        key = (resource.resource_type, resource.resource_name)
        changes = _changes(resource.configs)
        new: list[VersionedRecord] = []
        if changes is None and state.rules.malformed_config_change_is_fatal:
            raise ControllerFault("a config operation that there is not, or one without a value")
        if changes is None:
            error = ApiError(
                ErrorCode.INVALID_REQUEST, "Unknown config operation, or one without a value."
            )
        else:
            error, new = alter_resource(state, key, changes, forwarded=forwarded)
        records += new
        responses.append(
            IncrementalAlterConfigsResponse.AlterConfigsResourceResponse(
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
        response=IncrementalAlterConfigsResponse(responses=tuple(responses)),
        atomic=True,
    )


def _changes(
    configs: Sequence[IncrementalAlterConfigsRequest.AlterableConfig],
) -> list[ConfigChange] | None:
    """The changes, or None where one has no known operation, or lacks the entries of a list."""
    try:
        changes = [
            ConfigChange(config.name, ConfigOperation(config.config_operation), config.value)
            for config in configs
        ]
    except ValueError:
        return None
    of_lists = (ConfigOperation.APPEND, ConfigOperation.SUBTRACT)
    if any(change.operation in of_lists and change.value is None for change in changes):
        return None
    return changes
