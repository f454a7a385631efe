"""DescribeAcls (29): the ACLs that a filter finds, as the node's authorizer knows them.

Versions:  1-3.
"""

from __future__ import annotations

from collections import defaultdict
from typing import Any

from minicluster.broker.api_state import ApiState
from minicluster.protocol import ErrorCode
from minicluster.protocol import messages as m
from minicluster.protocol.error_responses import error_response
from minicluster.security.acls import (
    Acl,
    AclFilter,
)


def describe_acls(state: ApiState, request: Any, version: int, now_ms: int) -> Any:
    """The ACLs, by resource.

    Errors:  SECURITY_DISABLED without an authorizer; INVALID_REQUEST for an unknown field.
    Source:  AclApis.handleDescribeAcls.
    """
    if state.authorizer is None:
        message = "No Authorizer is configured on the broker"
        return error_response(request, ErrorCode.SECURITY_DISABLED, message, version=version)
    by_resource: dict[tuple[Any, ...], list[Acl]] = defaultdict(list)
    for acl in state.authorizer.listed(AclFilter.of(request)):
        by_resource[acl.resource_type, acl.resource_name, acl.pattern_type].append(acl)
    return m.DescribeAclsResponse(
        resources=tuple(_described(resource, acls) for resource, acls in by_resource.items()),
    )


def _described(resource: tuple[Any, ...], acls: list[Acl]) -> Any:
    resource_type, name, pattern_type = resource
    return m.DescribeAclsResponse.DescribeAclsResource(
        resource_type=resource_type,
        resource_name=name,
        pattern_type=pattern_type,
        acls=tuple(
            m.DescribeAclsResponse.AclDescription(
                principal=acl.principal,
                host=acl.host,
                operation=acl.operation,
                permission_type=acl.permission,
            )
            for acl in acls
        ),
    )
