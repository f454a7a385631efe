"""Operations on znodes and their results.

Source:  org.apache.zookeeper.Op, OpResult, KeeperException.Code, data.Stat.
"""

from __future__ import annotations

from enum import IntEnum

from minicluster.values import Value

ANY_VERSION = -1
"""An expected version that every znode has."""


class Code(IntEnum):
    """Results of an operation, with ZooKeeper's numbers."""

    OK = 0
    RUNTIMEINCONSISTENCY = -2
    CONNECTIONLOSS = -4
    NONODE = -101
    BADVERSION = -103
    NOCHILDRENFOREPHEMERALS = -108
    NODEEXISTS = -110
    NOTEMPTY = -111
    SESSIONEXPIRED = -112


class Operation(Value):
    """The base of all operations; each is about one path."""

    path: str


class Create(Operation):
    """Create a znode; a sequential one gets its parent's next ten digits behind its path."""

    data: bytes | None = None
    ephemeral: bool = False
    sequential: bool = False


class SetData(Operation):
    """Replace the data of a znode that has the expected version."""

    data: bytes | None = None
    version: int = ANY_VERSION


class Delete(Operation):
    """Delete a znode without children that has the expected version."""

    version: int = ANY_VERSION


class Check(Operation):
    """Require the expected version of a znode."""

    version: int


class GetData(Operation):
    """Read a znode; a watch fires once at its next change of data, or its deletion."""

    watch: bool = False


class Exists(Operation):
    """Read the stat of a znode; a watch fires at its creation as well."""

    watch: bool = False


class GetChildren(Operation):
    """Read the names of a znode's children; a watch fires once when they change."""

    watch: bool = False


class Multi(Value):
    """Several writes and checks that happen together or not at all."""

    operations: tuple[Operation, ...]


Request = Operation | Multi


class Stat(Value):
    """The metadata of a znode.

    Units:  czxid and mzxid are the transactions that created it and that set it last; the owner of
            an ephemeral znode is a session id, 0 for a persistent one.
    """

    czxid: int
    mzxid: int
    version: int = 0
    cversion: int = 0
    ephemeral_owner: int = 0
    children: int = 0


class Result(Value):
    """The result of one operation; a multi has one of each part.

    Shapes:  path is the created one, with its sequence number.
    """

    code: Code = Code.OK
    path: str = ""
    data: bytes | None = None
    stat: Stat | None = None
    children: tuple[str, ...] = ()
    parts: tuple[Result, ...] = ()

    @property
    def ok(self) -> bool:
        """The operation took effect."""
        return self.code is Code.OK

    @property
    def data_and_stat(self) -> tuple[bytes, Stat]:
        """The data and the stat that a read found."""
        assert self.stat is not None, "a result that is not OK has no data"
        return self.data or b"", self.stat
