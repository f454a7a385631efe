"""The voters: replica keys, endpoints and the voter set (KIP-853).

Shapes:  a voter set is a value, its voters ascend by id; an entry without a directory id (static
         voters, kraft.version 0) matches every replica with that id.
Source:  ReplicaKey, VoterSet, Endpoints.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from uuid import UUID

from minicluster.protocol.records import VotersRecord
from minicluster.protocol.uuids import ZERO_UUID
from minicluster.values import Value


class ReplicaKey(Value):
    """A replica: its node id and, where known, the directory that holds its log."""

    id: int
    directory_id: UUID | None = None

    @classmethod
    def of(cls, replica_id: int, directory_id: UUID | None) -> ReplicaKey:
        """The key a message names; the zero UUID means that none was given."""
        known = directory_id is not None and directory_id.int != 0
        return cls(replica_id, directory_id if known else None)

    @property
    def wire_directory_id(self) -> UUID:
        """The directory id as messages carry it."""
        return ZERO_UUID if self.directory_id is None else self.directory_id

    @property
    def is_complete(self) -> bool:
        """The id and the directory are known."""
        return self.id >= 0 and self.directory_id is not None

    def matches(self, other: ReplicaKey) -> bool:
        """A voter entry with this key means the other replica."""
        return self.id == other.id and self.directory_id in (None, other.directory_id)


class VoterEndpoint(Value):
    """Where one listener of a node is."""

    name: str
    host: str
    port: int


Endpoints = tuple[VoterEndpoint, ...]


class Node(Value):
    """A node that requests can be sent to."""

    id: int
    host: str
    port: int


def node_at(node_id: int, endpoints: Endpoints, listener: str) -> Node | None:
    """The node behind the listener of that name, if there is one."""
    for endpoint in endpoints:
        if endpoint.name == listener:
            return Node(node_id, endpoint.host, endpoint.port)
    return None


class VersionRange(Value):
    """The kraft.version levels that a node supports."""

    min: int = 0
    max: int = 1

    def holds(self, version: int) -> bool:
        """The level is among them."""
        return self.min <= version <= self.max


class Voter(Value, kw_only=True):
    """One entry of a voter set."""

    key: ReplicaKey
    endpoints: Endpoints = ()
    versions: VersionRange = VersionRange()

    def differs(self, other: Voter) -> bool:
        """The endpoints or versions are not the other's."""
        return self.endpoints != other.endpoints or self.versions != other.versions


class VoterSet(Value):
    """The voters of an epoch or offset, ascending by id, each id once."""

    voters: tuple[Voter, ...] = ()

    @classmethod
    def of(cls, voters: Iterable[Voter]) -> VoterSet:
        """The set of these voters."""
        return cls(tuple(sorted(voters, key=lambda voter: voter.key.id)))

    @classmethod
    def static(cls, ids: Iterable[int], listener: str = "CONTROLLER") -> VoterSet:
        """A static voter set (kraft.version 0) whose endpoints are made up from the ids."""
        return _static(tuple(ids), listener)

    def __len__(self) -> int:
        return len(self.voters)

    @property
    def ids(self) -> tuple[int, ...]:
        """The voters' ids, ascending."""
        return tuple(voter.key.id for voter in self.voters)

    def get(self, voter_id: int) -> Voter | None:
        """The entry with an id."""
        for voter in self.voters:
            if voter.key.id == voter_id:
                return voter
        return None

    def is_voter(self, key: ReplicaKey) -> bool:
        """The replica is in the set."""
        voter = self.get(key.id)
        return voter is not None and voter.key.matches(key)

    def is_only_voter(self, key: ReplicaKey) -> bool:
        """The replica is the whole set."""
        return len(self.voters) == 1 and self.is_voter(key)

    def endpoints_of(self, voter_id: int) -> Endpoints:
        """A voter's endpoints, none if it is not in the set."""
        voter = self.get(voter_id)
        return () if voter is None else voter.endpoints

    def needs_update(self, own: Voter) -> bool:
        """The set has a voter with other endpoints or versions than its own."""
        entry = self.get(own.key.id)
        return entry is not None and entry.key.matches(own.key) and entry.differs(own)

    def add(self, voter: Voter) -> VoterSet | None:
        """The set with one more voter, None if its id is taken."""
        if self.get(voter.key.id) is not None:
            return None
        return VoterSet.of((*self.voters, voter))

    def remove(self, key: ReplicaKey) -> VoterSet | None:
        """The set without a voter, None if it is not there exactly so or is the last one."""
        entry = self.get(key.id)
        if entry is None or entry.key != key or len(self.voters) == 1:
            return None
        return VoterSet(tuple(voter for voter in self.voters if voter is not entry))

    def update(self, own: Voter, *, by_id: bool = False) -> VoterSet | None:
        """The set with one entry replaced, None if there is no such entry.

        Shapes:  ``by_id`` disregards the directory (kraft.version 0).
        """
        entry = self.get(own.key.id)
        if entry is None or not (by_id or entry.key == own.key):
            return None
        return VoterSet(tuple(own if voter is entry else voter for voter in self.voters))

    # --- its control record -----------------------------------------------------------------

    def to_record(self) -> VotersRecord:
        """The set as a KRaftVoters control record."""
        return VotersRecord(
            version=0,
            voters=tuple(
                VotersRecord.Voter(
                    voter_id=voter.key.id,
                    voter_directory_id=voter.key.wire_directory_id,
                    endpoints=tuple(
                        VotersRecord.Endpoint(name=e.name, host=e.host, port=e.port)
                        for e in voter.endpoints
                    ),
                    kraft_version_feature=VotersRecord.KRaftVersionFeature(
                        min_supported_version=voter.versions.min,
                        max_supported_version=voter.versions.max,
                    ),
                )
                for voter in self.voters
            ),
        )

    @classmethod
    def from_record(cls, record: VotersRecord) -> VoterSet:
        """Read a KRaftVoters control record."""
        return cls.of(
            Voter(
                key=ReplicaKey.of(voter.voter_id, voter.voter_directory_id),
                endpoints=tuple(VoterEndpoint(e.name, e.host, e.port) for e in voter.endpoints),
                versions=VersionRange(
                    voter.kraft_version_feature.min_supported_version,
                    voter.kraft_version_feature.max_supported_version,
                ),
            )
            for voter in record.voters
        )


@lru_cache(maxsize=256)
def _static(ids: tuple[int, ...], listener: str) -> VoterSet:
    return VoterSet.of(
        Voter(key=ReplicaKey(i), endpoints=(VoterEndpoint(listener, f"node{i}", 9090 + i),))
        for i in ids
    )
