"""DeleteAcls (31): an administrator removes the ACLs that filters find.

Versions:  1-3.
"""

from __future__ import annotations

from minicluster.controller.api import ControllerApi
from minicluster.controller.decision import Decision
from minicluster.controller.errors import ApiError, reject_too_many_records
from minicluster.controller.operations.create_acls import reject_without_authorizer
from minicluster.controller.state.cluster_state import ClusterState
from minicluster.protocol import ErrorCode
from minicluster.protocol.messages import DeleteAclsRequest, DeleteAclsResponse
from minicluster.protocol.records import RemoveAccessControlEntryRecord, VersionedRecord
from minicluster.security.acls import (
    Acl,
    AclFilter,
    Operation,
)

Filter = DeleteAclsRequest.DeleteAclsFilter
Result = DeleteAclsResponse.DeleteAclsFilterResult
Matching = DeleteAclsResponse.DeleteAclsMatchingAcl


def delete_acls(state: ClusterState, request: DeleteAclsRequest) -> Decision:
    """Remove what the filters find. An ACL that two of them find is in both results, removed once.

    Errors:  Rejected with SECURITY_DISABLED without an authorizer. Per filter INVALID_REQUEST for a
             field that is unknown.
    Source:  KIP-801; AclControlManager.deleteAcls.
    """
    reject_without_authorizer(state)
    entries = [(entry.id, Acl.of(entry)) for entry in state.image.acls.rows.values()]
    removed: dict[object, VersionedRecord] = {}
    results = []
    for requested in request.filters:
        acl_filter = AclFilter.of(requested)
        if acl_filter.problem is not None:
            error = ApiError(ErrorCode.INVALID_REQUEST, acl_filter.problem)
            results.append(Result(error_code=error.error, error_message=error.message))
            continue
        found = [(acl_id, acl) for acl_id, acl in entries if acl_filter.matches(acl)]
        for acl_id, _ in found:
            record = RemoveAccessControlEntryRecord(id=acl_id)
            removed[acl_id] = VersionedRecord(record, 0)
        matching = tuple(Matching(error_message=None, **acl.fields()) for _, acl in found)
        results.append(Result(error_message=None, matching_acls=matching))
    reject_too_many_records(len(removed))
    response = DeleteAclsResponse(filter_results=tuple(results))
    return Decision(records=tuple(removed.values()), response=response, atomic=True)


API = ControllerApi(
    DeleteAclsRequest,
    lambda call: delete_acls(call.state, call.request),
    right=Operation.ALTER,
)
