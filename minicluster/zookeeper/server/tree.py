"""The tree of znodes, and what each write does to it.

**Invariant:** a write that fails changes nothing; a multi happens as a whole or not at all.

Source:  org.apache.zookeeper.server.DataTree, PrepRequestProcessor.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct, field

from minicluster.values import Value, replace
from minicluster.zookeeper.server.operations import (
    ANY_VERSION,
    Check,
    Code,
    Create,
    Delete,
    Exists,
    GetChildren,
    GetData,
    Operation,
    Result,
    SetData,
    Stat,
)


class Znode(Struct):
    """One znode: its data, its stat, and the names of its children in the order of creation.

    Shapes:  created counts all children that it ever had; sequential names are from it.
    """

    data: bytes | None
    stat: Stat
    children: dict[str, None] = field(default_factory=dict)
    created: int = 0


class Change(Value):
    """One change of the tree, as the watches and the transaction log see it."""

    kind: str  # create, set or delete
    path: str
    version: int
    czxid: int
    data: bytes | None = None
    ephemeral: bool = False


def parent_of(path: str) -> str:
    """The path of a znode's parent."""
    return path.rpartition("/")[0] or "/"


class Tree:
    """All znodes, by path."""

    def __init__(self) -> None:
        self._znodes = {"/": Znode(None, Stat(0, 0))}

    def read(self, operation: Operation) -> Result:
        """The result of a read."""
        znode = self._znodes.get(operation.path)
        if znode is None:
            return Result(Code.NONODE, operation.path)
        match operation:
            case GetData():
                return Result(path=operation.path, data=znode.data, stat=znode.stat)
            case Exists():
                return Result(path=operation.path, stat=znode.stat)
            case GetChildren():
                return Result(
                    path=operation.path, stat=znode.stat, children=tuple(sorted(znode.children))
                )
        raise TypeError(f"{operation} is not a read")

    def data_of(self, path: str) -> bytes | None:
        """The data of a znode, None if it has none or is not there."""
        znode = self._znodes.get(path)
        return None if znode is None else znode.data

    def write(
        self, operations: Sequence[Operation], zxid: int, session: int
    ) -> tuple[list[Result], list[Change]]:
        """Do some writes together, or none of them.

        Shapes:  the results of all operations, in order; where one fails, those before it are OK
                 without a stat, those behind it RUNTIMEINCONSISTENCY; and what has changed.
        """
        results: list[Result] = []
        changes: list[Change] = []
        undo: list[tuple[str, Znode | None]] = []
        for operation in operations:
            result = self._write(operation, zxid, session, changes, undo)
            results.append(result)
            if not result.ok:
                self._restore(undo)
                done = [Result()] * (len(results) - 1)
                rest = [Result(Code.RUNTIMEINCONSISTENCY)] * (len(operations) - len(results))
                return [*done, result, *rest], []
        return results, changes

    def ephemerals_of(self, session: int) -> list[str]:
        """The paths of the ephemeral znodes of a session."""
        return [p for p, node in self._znodes.items() if node.stat.ephemeral_owner == session]

    def _write(
        self,
        operation: Operation,
        zxid: int,
        session: int,
        changes: list[Change],
        undo: list[tuple[str, Znode | None]],
    ) -> Result:
        if isinstance(operation, Create):
            return self._create(operation, zxid, session, changes, undo)
        znode = self._znodes.get(operation.path)
        if znode is None:
            return Result(Code.NONODE)
        assert isinstance(operation, SetData | Delete | Check), operation
        if operation.version not in (ANY_VERSION, znode.stat.version):
            return Result(Code.BADVERSION)
        match operation:
            case Check():
                return Result(path=operation.path)
            case SetData():
                self._keep(operation.path, undo)
                znode.data = operation.data
                znode.stat = replace(znode.stat, version=znode.stat.version + 1, mzxid=zxid)
                changes.append(
                    Change("set", operation.path, znode.stat.version, znode.stat.czxid, znode.data)
                )
                return Result(path=operation.path, stat=znode.stat)
        return self._delete(operation.path, znode, changes, undo)

    def _create(
        self,
        operation: Create,
        zxid: int,
        session: int,
        changes: list[Change],
        undo: list[tuple[str, Znode | None]],
    ) -> Result:
        above = parent_of(operation.path)
        parent = self._znodes.get(above)
        if parent is None:
            return Result(Code.NONODE)
        if parent.stat.ephemeral_owner:
            return Result(Code.NOCHILDRENFOREPHEMERALS)
        path = operation.path
        if operation.sequential:
            path += f"{parent.created:010d}"
        if path in self._znodes:
            return Result(Code.NODEEXISTS)
        self._keep(above, undo)
        undo.append((path, None))
        owner = session if operation.ephemeral else 0
        self._znodes[path] = Znode(operation.data, Stat(zxid, zxid, ephemeral_owner=owner))
        parent.children[path.rpartition("/")[2]] = None
        parent.created += 1
        self._count_children(parent)
        changes.append(Change("create", path, 0, zxid, operation.data, operation.ephemeral))
        return Result(path=path, stat=self._znodes[path].stat)

    def _delete(
        self,
        path: str,
        znode: Znode,
        changes: list[Change],
        undo: list[tuple[str, Znode | None]],
    ) -> Result:
        if znode.children:
            return Result(Code.NOTEMPTY)
        above = parent_of(path)
        self._keep(above, undo)
        self._keep(path, undo)
        parent = self._znodes[above]
        del self._znodes[path]
        parent.children.pop(path.rpartition("/")[2], None)
        self._count_children(parent)
        changes.append(Change("delete", path, znode.stat.version, znode.stat.czxid))
        return Result(path=path)

    @staticmethod
    def _count_children(parent: Znode) -> None:
        parent.stat = replace(
            parent.stat, cversion=parent.stat.cversion + 1, children=len(parent.children)
        )

    def _keep(self, path: str, undo: list[tuple[str, Znode | None]]) -> None:
        znode = self._znodes[path]
        undo.append((path, replace(znode, children=dict(znode.children))))

    def _restore(self, undo: list[tuple[str, Znode | None]]) -> None:
        for path, znode in reversed(undo):
            if znode is None:
                self._znodes.pop(path, None)
            else:
                self._znodes[path] = znode
