"""The tree of znodes as the recording has it, and what the operations of a rule would do to it."""

from __future__ import annotations

from minicluster.zookeeper.server.operations import (
    Check,
    Create,
    Delete,
    Exists,
    GetChildren,
    GetData,
    Multi,
    Operation,
    Request,
    Result,
    SetData,
)
from minicluster.zookeeper.server.tree import Change, Tree
from minicluster.zookeeper.server.watches import Watches, WatchEvent
from tests.transcripts.zookeeper.recording import Entry, Transaction

_NEVER = Check("/", 1 << 30)


class Znodes:
    """The tree and the watches of the machines that are played."""

    def __init__(self) -> None:
        self.tree = Tree()
        self.watches = Watches()

    def read(self, request: Operation, session: int) -> Result:
        """The result of a read, and its watch."""
        result = self.tree.read(request)
        match request:
            case GetChildren(watch=True) if result.ok:
                self.watches.watch_children(request.path, session)
            case GetData(watch=True) if result.ok:
                self.watches.watch_data(request.path, session)
            case Exists(watch=True):
                self.watches.watch_data(request.path, session)
        return result

    def apply(self, transaction: Transaction) -> list[tuple[int, WatchEvent]]:
        """Do what was recorded."""
        if transaction.kind == "create_session" or transaction.failed:
            return []
        if transaction.kind == "close_session":
            operations: list[Operation] = [Delete(path) for path in transaction.deleted]
        else:
            operations = [_operation(entry) for entry in transaction.entries]
        results, changes = self.tree.write(operations, transaction.zxid, transaction.session)
        failed = [result for result in results if not result.ok]
        assert not failed, f"zxid {transaction.zxid} took effect, but not here: {failed}"
        if transaction.kind == "close_session":
            self.watches.forget(transaction.session)
        return [fired for change in changes for fired in self.watches.fire(change)]

    def looks_like(self, request: Request, transaction: Transaction) -> bool:
        """A rule's write is the recorded one: by its bytes if it took effect, else by its code."""
        operations = request.operations if isinstance(request, Multi) else (request,)
        if len(operations) != len(transaction.entries):
            return False
        if isinstance(request, Multi) is not transaction.is_multi:
            return False
        for operation, entry in zip(operations, transaction.entries, strict=True):
            if entry.op != "error" and not _is_same(operation, entry):
                return False
        # Done with a last step that fails: nothing of it stays.
        results, _ = self.tree.write((*operations, _NEVER), transaction.zxid, transaction.session)
        codes = [result.code.name for result in results[: len(operations)]]
        return codes == [entry.error or "OK" for entry in transaction.entries]

    def result_of(self, request: Request, transaction: Transaction) -> Result | None:
        """Do a rule's write if it is the recorded one, and give its result."""
        if not self.looks_like(request, transaction):
            return None
        operations = request.operations if isinstance(request, Multi) else (request,)
        results, _ = self.tree.write(operations, transaction.zxid, transaction.session)
        if isinstance(request, Multi):
            failed = next((result.code for result in results if not result.ok), results[0].code)
            return Result(failed, parts=tuple(results))
        return results[0]

    def fire(self, transaction: Transaction) -> list[tuple[int, WatchEvent]]:
        """The watch events of a transaction that a rule has done."""
        if transaction.failed:
            return []
        changes = [
            Change(entry.op, entry.path, entry.version, 0)
            for entry in transaction.entries
            if entry.op != "check"
        ]
        return [fired for change in changes for fired in self.watches.fire(change)]


def _operation(entry: Entry) -> Operation:
    match entry.op:
        case "create":
            return Create(entry.path, entry.data, entry.ephemeral)
        case "set":
            return SetData(entry.path, entry.data)
        case "delete":
            return Delete(entry.path)
        case "check":
            return Check(entry.path, entry.version)
    raise AssertionError(entry)


def _is_same(operation: Operation, entry: Entry) -> bool:
    """The operation is the one that took effect, byte for byte, but for the time in /controller."""
    match operation:
        case Create():
            path = entry.path
            if operation.sequential:
                path = path[: len(operation.path)]
            same = entry.op == "create" and operation.path == path
            return same and operation.data == entry.data and operation.ephemeral == entry.ephemeral
        case SetData():
            return entry.op == "set" and (operation.path, operation.data) == (
                entry.path,
                entry.data,
            )
        case Delete():
            return entry.op == "delete" and operation.path == entry.path
        case Check():
            return (
                entry.op == "check"
                and operation.path == entry.path
                and operation.version == entry.version
            )
    return False
