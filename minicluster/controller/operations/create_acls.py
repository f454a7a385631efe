"""CreateAcls (30): an administrator adds ACLs.

Versions:  1-3.
"""

from __future__ import annotations

from collections.abc import Callable
from uuid import UUID

from minicluster.controller.api import ControllerApi, Screened
from minicluster.controller.decision import Decision
from minicluster.controller.errors import Rejected, reject_too_many_records
from minicluster.controller.state.cluster_state import ClusterState
from minicluster.protocol import ErrorCode
from minicluster.protocol.messages import CreateAclsRequest, CreateAclsResponse
from minicluster.protocol.records import AccessControlEntryRecord, VersionedRecord
from minicluster.security.acls import (
    CLUSTER_NAME,
    Acl,
    Operation,
    PatternType,
    Permission,
    ResourceType,
    problem_of,
)
from minicluster.security.authorizer import AUTHORIZER
from minicluster.values import replace

Creation = CreateAclsRequest.AclCreation
Result = CreateAclsResponse.AclCreationResult


def create_acls(
    state: ClusterState, request: CreateAclsRequest, new_id: Callable[[], UUID]
) -> Decision:
    """Add what is not there yet; each ACL has a result of its own, whatever the others have.

    One that exists, or stands twice in the request, is a success without a record.

    Errors:  per ACL INVALID_REQUEST.
    Source:  KIP-801; AclControlManager.createAcls.
    """
    known = {Acl.of(entry) for entry in state.image.acls.rows.values()}
    records, results = [], []
    for acl in map(_acl, request.creations):
        problem = problem_of(acl)
        if problem is not None:
            results.append(_invalid(problem))
            continue
        if acl not in known:
            known.add(acl)
            records.append(
                VersionedRecord(AccessControlEntryRecord(id=new_id(), **acl.fields()), 0)
            )
        results.append(Result())
    reject_too_many_records(len(records))
    response = CreateAclsResponse(results=tuple(results))
    return Decision(records=tuple(records), response=response, atomic=True)


def screen_create_acls(state: ClusterState, request: CreateAclsRequest) -> Screened:
    """Reject names that no resource has, before the ACLs themselves are looked at.

    Errors:  Rejected with SECURITY_DISABLED without an authorizer. Per ACL INVALID_REQUEST. With
             Kafka's bug, a filter's ANY in one of them makes all of them UNKNOWN_SERVER_ERROR.
    Source:  AclApis.handleCreateAcls.
    """
    reject_without_authorizer(state)
    acls = [_acl(creation) for creation in request.creations]
    if state.rules.any_in_acl_fails_request and any(_is_of_filter(acl) for acl in acls):
        raise Rejected(ErrorCode.UNKNOWN_SERVER_ERROR)
    problems = [_problem_of_name(acl) for acl in acls]
    left = tuple(
        creation
        for creation, problem in zip(request.creations, problems, strict=True)
        if problem is None
    )

    def complete(response: CreateAclsResponse) -> CreateAclsResponse:
        decided = iter(response.results)
        results = tuple(
            next(decided) if problem is None else _invalid(problem) for problem in problems
        )
        return replace(response, results=results)

    return Screened(replace(request, creations=left), complete)


def reject_without_authorizer(state: ClusterState) -> None:
    """ACLs are nobody's where no node has an authorizer.

    Errors:  Rejected with SECURITY_DISABLED.
    """
    if not state.settings.static_config.get(AUTHORIZER):
        raise Rejected(ErrorCode.SECURITY_DISABLED, "No Authorizer is configured.")


def _invalid(problem: str) -> Result:
    return Result(error_code=ErrorCode.INVALID_REQUEST, error_message=problem)


def _acl(creation: Creation) -> Acl:
    return Acl(
        resource_type=ResourceType(creation.resource_type),
        resource_name=creation.resource_name,
        pattern_type=PatternType(creation.resource_pattern_type),
        principal=creation.principal,
        host=creation.host,
        operation=Operation(creation.operation),
        permission=Permission(creation.permission_type),
    )


def _is_of_filter(acl: Acl) -> bool:
    """True for what Kafka's own classes do not let exist (ResourcePattern, AccessControlEntry)."""
    return (
        acl.resource_type is ResourceType.ANY
        or acl.pattern_type in (PatternType.ANY, PatternType.MATCH)
        or acl.operation is Operation.ANY
        or acl.permission is Permission.ANY
    )


def _problem_of_name(acl: Acl) -> str | None:
    """The problem of a resource's name, which is looked at before the rest of the ACL."""
    if acl.resource_type is ResourceType.CLUSTER and acl.resource_name != CLUSTER_NAME:
        return f"The only valid name for the CLUSTER resource is {CLUSTER_NAME}"
    return None if acl.resource_name else "Invalid empty resource name"


API = ControllerApi(
    CreateAclsRequest,
    lambda call: create_acls(call.state, call.request, call.new_topic_id),
    screen=lambda call: screen_create_acls(call.state, call.request),
    items=("creations",),
    nothing=CreateAclsResponse(),
    right=Operation.ALTER,
)
