"""The error messages of AddRaftVoter and RemoveRaftVoter, as Apache Kafka 4.3 words them.

Source:  AddVoterHandler, RemoveVoterHandler, ReplicaKey.toString, VoterSet.voterKeys.
"""

from __future__ import annotations

from minicluster.java_order import hash_map_order
from minicluster.protocol.uuids import format_uuid
from minicluster.quorum.state.node import QuorumNode
from minicluster.quorum.state.voters import Endpoints, ReplicaKey, VersionRange, VoterSet

PREVIOUS_CHANGE = "Request timed out waiting for leader to handle previous voter change request"
NO_HIGH_WATERMARK = (
    "Request timed out waiting for leader to establish HWM and fence previous voter changes"
)
_UINT32 = 0xFFFFFFFF


def other_cluster(node: QuorumNode, cluster_id: str | None) -> str:
    """The request names another cluster."""
    return f'The given id "{cluster_id}" doesn\'t match the cluster id "{node.cluster_id}"'


def static_voters(change: str, kraft_version: int) -> str:
    """The kraft.version has no changes of the voters; ``change`` is adding or removing."""
    feature = f"the kraft.version feature is {kraft_version}"
    return f"Cluster doesn't support {change} voter because {feature}"


def uncommitted_voters(voters_offset: int, high_watermark: int) -> str:
    """The last voter set is not committed."""
    change = f"the latest voter change at Optional[{voters_offset}] with HWM {high_watermark}"
    return f"Request timed out waiting for voters to commit {change}"


def no_default_listener(endpoints: Endpoints, listener_name: str) -> str:
    """The new voter has no endpoint of the quorum's listener."""
    named = ", ".join(
        f"ListenerName({each.name})={each.host}/<unresolved>:{each.port}" for each in endpoints
    )
    listener = f"the default listener ListenerName({listener_name})"
    return (
        f"Add voter request didn't include the endpoint (Endpoints(endpoints={{{named}}})) "
        f"for {listener}"
    )


def duplicate_voter(key: ReplicaKey, voters: VoterSet) -> str:
    """A voter has that id."""
    return f"The voter id for {replica(key)} is already part of the set of voters {keys(voters)}."


def not_ready(key: ReplicaKey) -> str:
    """Another request to the new voter is outstanding, or its back-off."""
    return f"New voter {replica(key)} is not ready to receive requests"


def api_versions_error(error_name: str) -> str:
    """The new voter has not named its versions."""
    return f"Aborted add voter operation for since API_VERSIONS returned an error {error_name}"


def unsupported_version(key: ReplicaKey, versions: VersionRange | None, kraft_version: int) -> str:
    """The new voter does not support the kraft.version; Kafka leaves a bracket open."""
    named = "(min: 0, max: 0)" if versions is None else f"(min: {versions.min}, max: {versions.max}"
    return (
        f"Aborted add voter operation for {replica(key)} since the kraft.version range {named} "
        f"doesn't support the finalized version {kraft_version}"
    )


def lagging(key: ReplicaKey) -> str:
    """The new voter has not caught up."""
    return f"Aborted add voter operation for {replica(key)} since it is lagging behind"


def cannot_remove(key: ReplicaKey, voters: VoterSet) -> str:
    """No voter has that key, or it is the last one."""
    return f"Cannot remove voter {replica(key)} from the set of voters {keys(voters)}"


def replica(key: ReplicaKey) -> str:
    """A replica key as Kafka prints it."""
    directory = "<undefined>" if key.directory_id is None else format_uuid(key.directory_id)
    return f"ReplicaKey(id={key.id}, directoryId={directory})"


def keys(voters: VoterSet) -> str:
    """The keys of a voter set in the order of Java's hash set."""
    members = hash_map_order([voter.key for voter in voters.voters], _hash)
    return f"[{', '.join(map(replica, members))}]"


def _hash(key: ReplicaKey) -> int:
    directory = 0
    if key.directory_id is not None:
        value = key.directory_id.int
        mixed = (value >> 64) ^ (value & ((1 << 64) - 1))
        directory = ((mixed >> 32) ^ mixed) & _UINT32
    return (31 * (31 + key.id) + directory) & _UINT32
