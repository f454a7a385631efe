"""The actions on ACLs, as an administrator's requests."""

from __future__ import annotations

import hashlib

from minicluster.actors.cluster.actions.performing import performs
from minicluster.actors.cluster.actions.requests import raise_if_rejected, send, wait_for_commit
from minicluster.actors.cluster.roles import ClusterRoles
from minicluster.errors import UserError
from minicluster.protocol import messages as m
from minicluster.scenario.actions import access as declared
from minicluster.scenario.actions.arguments import Milliseconds
from minicluster.security.acls import PatternType, Permission
from minicluster.security.scram import MECHANISMS as SCRAM
from minicluster.security.scram import MIN_ITERATIONS, salted_password

_WITHIN = Milliseconds(30_000)


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


def set_password(cluster: ClusterRoles, user: str, password: str) -> None:
    """Change the password of a user, or add one, for PLAIN and for both SCRAM mechanisms.

    Sessions that are logged in last as long as they do; each new login is by the new password, and
    so are the settings of ``client_config``.

    Errors:  UserError for a cluster without users; RequestRejected.
    """
    cluster.check_running("set_password")
    if not cluster.security.users:
        raise UserError('set_password: nobody logs in here; start it with users={"alice": "…"}')
    upsertions = tuple(
        m.AlterUserScramCredentialsRequest.ScramCredentialUpsertion(
            name=user,
            mechanism=mechanism.type,
            iterations=MIN_ITERATIONS,
            salt=(salt := hashlib.sha256(f"{mechanism.name} {user}".encode()).digest()),
            salted_password=salted_password(mechanism, password, salt, MIN_ITERATIONS),
        )
        for mechanism in SCRAM.values()
    )
    task = f"set_password {user}"
    for upsertion in upsertions:  # one request may name a user once
        request = m.AlterUserScramCredentialsRequest(upsertions=(upsertion,))
        for result in send(cluster, task, request, _WITHIN).results:
            raise_if_rejected(task, result.error_code, result.error_message)
    cluster.security.users[user] = password
    wait_for_commit(cluster, lambda: _is_known(cluster, user))


def _is_known(cluster: ClusterRoles, user: str) -> bool:
    """Whether each running broker logs a user in by what is committed."""
    brokers = [p.broker for p in cluster.processes.values() if p.broker and not p.paused]
    keys = [(mechanism.type, user) for mechanism in SCRAM.values()]
    return all(
        broker.apis.state.image.scram.get(key) == cluster.image.scram.get(key)
        for broker in brokers
        for key in keys
    )


def expire_certificates(cluster: ClusterRoles) -> None:
    """Let the certificates of listeners with TLS end now: new connections are shown such ones.

    Connections that are open stay. With ``call_later`` it happens at a time of the cluster.
    """
    cluster.check_running("expire_certificates")
    cluster.certificates_have_expired = True


def renew_certificates(cluster: ClusterRoles) -> None:
    """Show new connections certificates that have not ended."""
    cluster.check_running("renew_certificates")
    cluster.certificates_have_expired = False


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
