"""The changes of a message from version to version, from its declaration."""

from __future__ import annotations

from collections.abc import Iterator

from minicluster.protocol.schema import Message, Struct


def _fields(kind: type[Struct], version: int) -> Iterator[tuple[str, bool]]:
    """The names of the fields of a version, with whether they may be null."""
    for spec in kind.schema:
        if version in spec.versions:
            yield spec.name, version in spec.nullable
            if spec.struct is not None:
                yield from _fields(spec.struct, version)


def changed_fields(kind: type[Message], version: int) -> tuple[list[str], list[str], list[str]]:
    """The fields that a version adds, that it leaves out, and that may be null from it on."""
    now, before = (dict.fromkeys(_fields(kind, v)) for v in (version, version - 1))
    names, earlier = dict.fromkeys(n for n, _ in now), dict.fromkeys(n for n, _ in before)
    added = [name for name in names if name not in earlier]
    gone = [name for name in earlier if name not in names]
    nullable = [n for n, null in now if null and (n, False) in before and (n, True) not in before]
    return added, gone, nullable


def changes(request: type[Message], response: type[Message] | None, version: int) -> str:
    """A version's line in the header of its file, without behaviour that no field shows."""
    parts = []
    for kind, where in ((request, ""), (response, "response ")):
        if kind is None or version not in kind.valid_versions or version == kind.valid_versions[0]:
            continue
        added, gone, nullable = changed_fields(kind, version)
        if added:
            parts.append(where + _list(added))
        if gone:
            parts.append(f"{where}without {_list(gone)}")
        if nullable:
            parts.append(f"{where}{_list(nullable)} may be null")
        if not where and kind.flexible_versions and version == kind.flexible_versions[0]:
            parts.append("flexible")
    return "; ".join(parts)


def _list(names: list[str]) -> str:
    shown = names if len(names) <= 5 else [*names[:4], "…"]
    return ", ".join(shown)
