"""What Apache Kafka 4.3.0 decided, recorded line by line (tests/data/security)."""

from __future__ import annotations

import gzip
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from uuid import UUID

from minicluster.metadata.image.security import AccessControlEntry
from minicluster.security.acls import Operation, PatternType, Permission, ResourceType

DATA = Path(__file__).parents[1] / "data" / "security"


def seeds(folder: str) -> list[Path]:
    """The recordings of one kind, by seed."""
    return sorted(
        (DATA / folder).glob("seed-*.jsonl.gz"), key=lambda p: int(p.name[5:].split(".")[0])
    )


def lines(path: Path) -> list[dict[str, Any]]:
    """A recording without its header."""
    with gzip.open(path, "rt", encoding="utf-8") as text:
        return [json.loads(line) for line in text][1:]


def entry(acl: Mapping[str, str], number: int) -> AccessControlEntry:
    """An ACL of a recording as an entry of the image."""
    return AccessControlEntry(
        id=UUID(int=number),
        resource_type=ResourceType[acl["type"]],
        resource_name=acl["name"],
        pattern_type=PatternType[acl["pattern"]],
        principal=acl["principal"],
        host=acl["host"],
        operation=Operation[acl["operation"]],
        permission_type=Permission[acl["permission"]],
    )
