"""The actions on ACLs, as an administrator's requests."""

from __future__ import annotations

from minicluster.actors.cluster.actions.performing import performs
from minicluster.actors.cluster.actions.requests import raise_if_rejected, send, wait_for_commit
from minicluster.actors.cluster.roles import ClusterRoles
from minicluster.protocol import messages as m
from minicluster.scenario.actions import access as declared
from minicluster.security.acls import PatternType, Permission


@performs(declared.Grant)
def grant(cluster: ClusterRoles, do: declared.Grant) -> None:
    _create(cluster, do, Permission.ALLOW)


@performs(declared.Deny)
def deny(cluster: ClusterRoles, do: declared.Deny) -> None:
    _create(cluster, do, Permission.DENY)


@performs(declared.Revoke)
def revoke(cluster: ClusterRoles, do: declared.Revoke) -> None:
    resource_type, name = do.resource
    filters = tuple(
        m.DeleteAclsRequest.DeleteAclsFilter(
            resource_type_filter=resource_type,
            resource_name_filter=name,
            pattern_type_filter=_pattern(do),
            principal_filter=do.principal,
            host_filter=do.host,
            operation=operation,
            permission_type=Permission.ANY,
        )
        for operation in do.of_operations()
    )
    task = f"revoke {do.principal}"
    response = send(cluster, task, m.DeleteAclsRequest(filters=filters), do.within)
    for result in response.filter_results:
        raise_if_rejected(task, result.error_code, result.error_message)
    _wait_for_nodes(cluster)


def _create(cluster: ClusterRoles, do: declared.OfUser, permission: Permission) -> None:
    resource_type, name = do.resource
    creations = tuple(
        m.CreateAclsRequest.AclCreation(
            resource_type=resource_type,
            resource_name=name,
            resource_pattern_type=_pattern(do),
            principal=do.principal,
            host=do.host,
            operation=operation,
            permission_type=permission,
        )
        for operation in do.of_operations()
    )
    task = f"{do.method} {do.principal}"
    response = send(cluster, task, m.CreateAclsRequest(creations=creations), do.within)
    for result in response.results:
        raise_if_rejected(task, result.error_code, result.error_message)
    _wait_for_nodes(cluster)


def _pattern(do: declared.OfUser) -> PatternType:
    return PatternType.PREFIXED if do.prefixed else PatternType.LITERAL


def _wait_for_nodes(cluster: ClusterRoles) -> None:
    """Wait until each running node enforces what is committed; one that is cut off never may."""

    def is_enforced() -> bool:
        for process in cluster.processes.values():
            actor = process.replicas or process.controller
            authorizer = None if actor is None or process.paused else actor.context.authorizer
            if authorizer is not None and not authorizer.enforces(cluster.image.acls):
                return False
        return True

    wait_for_commit(cluster, is_enforced)
