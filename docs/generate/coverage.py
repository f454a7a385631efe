"""The page of coverage: built and not built, read from the machines' own tables."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from docs.generate.kips import BUILT, LEFT_OUT, MESSAGES_ONLY, TITLES
from docs.generate.pages import table, versions
from minicluster.broker import kafka_apis as client_api
from minicluster.controller.controller_apis import CONTROLLER_APIS
from minicluster.coordinator.apis import COORDINATOR_APIS
from minicluster.metadata.image import metadata_image as image
from minicluster.protocol.api import Api
from minicluster.protocol.api_keys import APIS
from minicluster.protocol.records.framing import CONTROL_CLASSES, RECORD_CLASSES
from minicluster.quorum import handlers as quorum_handlers
from minicluster.replica.machine import HANDLERS as REPLICA_HANDLERS
from minicluster.server import controller_listener
from minicluster.zookeeper.broker.admin_requests import ADMIN_REQUESTS
from minicluster.zookeeper.controller.requests import CONTROLLER_REQUESTS

ROOT = Path(__file__).resolve().parents[2]
DONE, PARTLY, NOT = "done", "partly", "not"

# The limits of an API that is served; every other one that a machine serves is done.
SERVED_IN_PART = {
    **dict.fromkeys(("Fetch", "ListOffsets"), "no tiered storage"),
}
# The controller makes it by PartitionRegistration.to_record.
MADE_BY_HELPERS = ("PartitionRecord",)
# The requests of a controller on ZooKeeper to its brokers.
CONTROL_REQUESTS = ("LeaderAndIsr", "StopReplica", "UpdateMetadata")
MACHINES = (
    *(
        "broker",
        "controller",
        "coordinator",
        "log",
        "metadata",
        "quorum",
        "replica",
        "security",
        "zookeeper",
    ),
    "actors",
)


def parts() -> dict[str, str]:
    """The generated parts of the page."""
    return {
        "apis": _apis(),
        "records": _records(),
        "control": _control(),
        "kips": _kips(),
        "left-out": _left_out(),
    }


def _apis() -> str:
    controller = {request.__name__ for request in CONTROLLER_APIS}
    on_controllers = {request.__name__: "responds" for request in controller_listener.RESPONDERS}
    on_controllers["EnvelopeRequest"] = "opens"
    quorum = {request.__name__ for request in quorum_handlers.REQUEST_HANDLERS}
    rows = []
    for key, api in APIS.items():
        name = api.request.__name__
        broker = _on_brokers(api)
        by_controller = "decides" if name in controller else on_controllers.get(name, "")
        by_quorum = "responds" if name in quorum else ""
        zookeeper = _on_zookeeper(api)
        by_nodes = by_controller, by_quorum, zookeeper
        served = any(by_nodes) or broker in ("responds", "replicas", "coordinates")
        state = NOT if not served else PARTLY if api.name in SERVED_IN_PART else DONE
        note = SERVED_IN_PART.get(api.name, "") if served else "messages only"
        declared = versions(api.request.valid_versions)
        nodes = by_controller, broker, by_quorum, zookeeper
        rows.append((str(key), api.name, declared, *nodes, state, note))
    counts = {state: sum(row[7] == state for row in rows) for state in (DONE, PARTLY, NOT)}
    head = ("key", "API", "versions", "controller", "broker", "quorum", "ZooKeeper", "state", "")
    return _sum(counts, "APIs") + "\n\n" + table(head, rows)


def _on_brokers(api: Api) -> str:
    if api.request in REPLICA_HANDLERS:
        return "replicas"
    if api.request in COORDINATOR_APIS:
        return "coordinates"
    if api.request in client_api.FORWARDED | client_api.TOKEN_REQUESTS and api.forwardable:
        return "forwards"
    return "responds" if api.request in client_api.APIS else ""


def _on_zookeeper(api: Api) -> str:
    if api.request in CONTROLLER_REQUESTS or api.request in ADMIN_REQUESTS:
        return "decides"
    return "replicas" if api.name in CONTROL_REQUESTS else ""


def _sum(counts: dict[str, int], what: str) -> str:
    return f"{sum(counts.values())} {what}: " + ", ".join(
        f"{count} {state}" for state, count in counts.items()
    )


def _records() -> str:
    rows = []
    for key, record in RECORD_CLASSES.items():
        name = record.__name__
        section = next(
            (
                section.replace("_", " ")
                for section, folds in image._FOLDS_BY_SECTION.items()
                if record in folds
            ),
            "",
        )
        if not section and name in _source("metadata"):
            section = "the loader" if "Transaction" in name else "several"
        by_controller = name in MADE_BY_HELPERS or f"{name}(" in _source("controller")
        kept = f"{name}(" in _source("metadata")
        written = "controller" if by_controller else "snapshots only" if kept else "nobody"
        state = DONE if section and by_controller else PARTLY if section else NOT
        rows.append((str(key), name, versions(record.valid_versions), section, written, state))
    counts = {state: sum(row[5] == state for row in rows) for state in (DONE, PARTLY, NOT)}
    head = ("key", "record", "versions", "changes in the image", "written by", "state")
    return _sum(counts, "records") + "\n\n" + table(head, rows)


def _control() -> str:
    rows = []
    for key, record in CONTROL_CLASSES.items():
        name = record.__name__
        rooms = [room for room in ("quorum", "log", "metadata") if f"{name}(" in _source(room)]
        word = ("aborts" if key == 0 else "commits") if name == "EndTxnMarker" else ""
        state = DONE if rooms else PARTLY
        rows.append(
            (str(key), name, word, versions(record.valid_versions), ", ".join(rooms), state)
        )
    return table(("type", "control record", "", "versions", "written by", "state"), rows)


def _source(room: str) -> str:
    """All of a room's code without its imports."""
    texts = [path.read_text() for path in sorted((ROOT / "minicluster" / room).rglob("*.py"))]
    return "\n".join(texts)


def cited_kips() -> dict[int, list[str]]:
    """Each KIP that the code cites, with the rooms that do."""
    rooms_by_kip: dict[int, dict[str, None]] = {}
    for room, path in _files():
        for number in re.findall(r"KIP-(\d+)", path.read_text()):
            rooms_by_kip.setdefault(int(number), {})[room] = None
    return {number: sorted(rooms) for number, rooms in sorted(rooms_by_kip.items())}


def _files() -> Iterator[tuple[str, Path]]:
    for top in ("minicluster", "actors", "fixtures"):
        for path in sorted((ROOT / top).rglob("*.py")):
            if any(parent.is_symlink() for parent in path.parents if parent != ROOT):
                continue
            inside = path.relative_to(ROOT).parts
            room = inside[1] if top == "minicluster" and len(inside) > 2 else top
            yield room, path


def _kips() -> str:
    rows = []
    for number, rooms in cited_kips().items():
        cited = {*rooms} & {*MACHINES, "minicluster"} and number not in MESSAGES_ONLY
        built = number in BUILT or cited
        state = PARTLY if number in LEFT_OUT else DONE if built else NOT
        note = "" if built else "its fields in messages"
        note = LEFT_OUT.get(number, note)
        where = ", ".join("rules" if room == "minicluster" else room for room in rooms)
        rows.append((f"KIP-{number}", TITLES.get(number, "?"), where, state, note))
    head = ("KIP", "about", "cited in", "state", "")
    return table(head, rows)


def _left_out() -> str:
    rows = []
    for _, path in _files():
        heading = ast.get_docstring(ast.parse(path.read_text())) or ""
        match = re.search(r"Leaves out:? (.*?)(?:\.\s|\.$|\n\n|\n[A-Z]\w*:)", heading, re.S)
        if match:
            rows.append((f"`{path.relative_to(ROOT)}`", " ".join(match[1].split())))
    return table(("part", "leaves out"), rows)
