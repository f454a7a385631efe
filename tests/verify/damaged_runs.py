"""Saved runs with something wrong in their folders: one kind each, and any of them by chance."""

from __future__ import annotations

import json
import random
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyarrow import parquet

from minicluster import MiniCluster
from minicluster.log.written_files import WRITTEN, written_files

Damage = Callable[[Path], None]


def saved_run(folder: Path) -> Path:
    """A short run with three controllers, a snapshot's worth of records and some requests."""
    with MiniCluster(brokers=3, controllers=3, seed=3) as cluster:
        orders = cluster.create_topic("orders", partitions=1, replicas=3, min_isr=2)
        cluster.kill(orders[0].followers[0])
        cluster.run_for("30s")
        return cluster.save(folder)


def sign(run: Path) -> None:
    """List the folder's files in its header as those that the run wrote."""
    files = {name: file.to_json() for name, file in written_files(run).items()}
    with_header(run, lambda header: header.update({WRITTEN: files}))


def unsigned(run: Path) -> None:
    """A run of a version that did not list what it wrote."""
    with_header(run, lambda header: [header.pop(name) for name in (WRITTEN, "trace_rows")])


def with_header(run: Path, change: Callable[[dict[str, Any]], object]) -> None:
    header = json.loads((run / "run.json").read_text())
    change(header)
    (run / "run.json").write_text(json.dumps(header))


def segment(run: Path, node: int = 101) -> Path:
    return next((run / f"controller-{node}").rglob("*.log"))


def table(run: Path, name: str) -> Path:
    return run / "trace" / f"{name}.parquet"


def cell(run: Path, name: str, column: str, value: Any) -> None:
    """Another value in the first row that has one."""
    read = parquet.read_table(table(run, name))
    values = read[column].to_pylist()
    place = next(index for index, one in enumerate(values) if one is not None)
    values[place] = value
    field = read.schema.field(column)
    number = read.schema.get_field_index(column)
    parquet.write_table(
        read.set_column(number, field, pa.array(values, type=field.type)), table(run, name)
    )


def typed(run: Path, name: str, column: str, kind: pa.DataType) -> None:
    """The same column as another type."""
    read = parquet.read_table(table(run, name))
    number = read.schema.get_field_index(column)
    texts = [None if one is None else str(one) for one in read[column].to_pylist()]
    made = pa.array(texts, type=pa.string()) if pa.types.is_string(kind) else read[column]
    parquet.write_table(read.set_column(number, column, made.cast(kind)), table(run, name))


def emptied(path: Path) -> None:
    path.write_bytes(b"")


def zeroed(path: Path) -> None:
    path.write_bytes(bytes(100))


def flipped(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 0x10
    path.write_bytes(bytes(content))


def halved(path: Path) -> None:
    content = path.read_bytes()
    path.write_bytes(content[: len(content) // 2])


def doubled(path: Path) -> None:
    path.write_bytes(path.read_bytes() * 2)


def rows_gone(run: Path, name: str) -> None:
    parquet.write_table(parquet.read_table(table(run, name)).slice(0, 0), table(run, name))


# Per damage of a file: the rules' evidence that it takes away is unknown, with any signature.
FILE_DAMAGE: dict[str, Damage] = {
    **{
        f"{how.__name__}_segment_{nodes}": (
            lambda run, how=how, nodes=nodes: [how(segment(run, 100 + n)) for n in nodes]  # type: ignore[misc]
        )
        for how in (emptied, zeroed, flipped, halved, doubled)
        for nodes in ((1,), (1, 2), (1, 2, 3))
    },
    "controller_gone": lambda run: shutil.rmtree(run / "controller-102"),
    "segment_gone": lambda run: segment(run).unlink(),
    "foreign_controller": lambda run: shutil.copytree(
        run / "controller-101", run / "controller-104"
    ),
    "foreign_segment": lambda run: (  # type: ignore[dict-item,return-value]
        segment(run).with_name(f"{10**6:020d}.log").write_bytes(segment(run).read_bytes())
    ),
    "quorum_state": lambda run: (segment(run).parent / "quorum-state").write_text("{}"),  # type: ignore[dict-item,return-value]
    "table_gone": lambda run: table(run, "rpc").unlink(),
    "table_emptied": lambda run: rows_gone(run, "publish"),
    "table_flipped": lambda run: flipped(table(run, "raft_event")),
    "table_halved": lambda run: halved(table(run, "rpc")),
    "no_json": lambda run: cell(run, "rpc", "request", "{broken"),
    "no_api": lambda run: cell(run, "rpc", "api", None),
    "no_kind": lambda run: cell(run, "partition_event", "kind", None),
    "no_leos": lambda run: cell(run, "partition_event", "follower_leos", "[1,"),
    "another_value": lambda run: cell(run, "publish", "image_hash", "0" * 32),
}

# Of these, the ones that can be seen in the contents alone.
SEEN_UNSIGNED = (
    *(f"{how}_segment_{(1, 2, 3)}" for how in ("flipped", "halved")),
    *(f"{how}_segment_{(1,)}" for how in ("flipped", "halved", "doubled")),
    "controller_gone",
    "segment_gone",
    "table_gone",
    "table_flipped",
    "table_halved",
    "no_json",
    "no_api",
    "no_kind",
    "no_leos",
)


def _field(name: str, value: Any) -> Damage:
    return lambda run: with_header(run, lambda header: header.update({name: value}))


# What no run of minicluster writes: one line, exit code 65.
FOREIGN: dict[str, tuple[Damage, str]] = {
    "null_node": (_field("stale_indexes", [None]), "stale_indexes"),
    "node_as_text": (_field("stale_indexes", ["101"]), "stale_indexes"),
    "negative_node": (_field("controllers", [-1]), "controllers"),
    "huge_node": (_field("brokers", [2**31]), "brokers"),
    "controllers_as_text": (_field("controllers", "101"), "controllers"),
    "seed_as_text": (_field("seed", "7"), "seed"),
    "seed_too_long": (_field("seed", 1 << 300), "seed"),
    "hits_as_list": (_field("hits", ["Z01"]), "hits"),
    "hits_of_text": (_field("hits", {"Z01": "2"}), "hits"),
    "fault_as_number": (_field("faults", [1]), "faults"),
    "exercises_as_text": (_field("exercises", "A1"), "exercises"),
    "surrogate": (_field("trace_hash", "\ud800"), "trace_hash"),
    "unknown_rules": (_field("rules", "kafka-9.9"), "kafka-9.9"),
    "rows_as_text": (_field("trace_rows", {"rpc": "many"}), "trace_rows"),
    "crashes_as_number": (_field("crashes", 0), "crashes"),
    "problems_as_text": (_field("recorder_problems", "rpc"), "recorder_problems"),
    "problem_of_no_table": (
        _field("recorder_problems", [{"lacks": "rpcs", "why": "it crashed"}]),
        "recorder_problems[0].lacks",
    ),
    "problem_without_reason": (_field("recorder_problems", [{"lacks": "rpc"}]), "why"),
    "scenario_as_text": (_field("scenario", "story"), "scenario"),
    "written_as_list": (_field(WRITTEN, []), WRITTEN),
    "written_outside": (_field(WRITTEN, {"../x": {"size": 1, "sha256": "0" * 64}}), "../x"),
    "written_without_digest": (_field(WRITTEN, {"trace/rpc.parquet": {"size": 1}}), "sha256"),
    "long_number": (
        lambda run: (run / "run.json").write_text('{"seed": ' + "9" * 5000 + "}"),  # type: ignore[dict-item,return-value]
        "digits",
    ),
    "deep": (
        lambda run: (run / "run.json").write_text('{"config": ' + "[" * 100_000),  # type: ignore[dict-item,return-value]
        "nested",
    ),
    "controller_name": (
        lambda run: (run / "controller-101").rename(run / "controller-99999999999"),  # type: ignore[dict-item,return-value]
        "node id",
    ),
    "segment_name": (
        lambda run: segment(run).rename(segment(run).with_name("9" * 20 + ".log")),  # type: ignore[dict-item,return-value]
        "offset",
    ),
    "text_in_an_integer_column": (lambda run: typed(run, "rpc", "src", pa.string()), "src"),
    "float_in_an_integer_column": (
        lambda run: typed(run, "publish", "offset", pa.float64()),
        "offset",
    ),
    "node_out_of_range": (lambda run: cell(run, "rpc", "dst", 2**40), "dst"),
    "epoch_out_of_range": (
        lambda run: cell(run, "partition_event", "leader_epoch", -(2**40)),
        "leader_epoch",
    ),
}


class Chance:
    """Any damage to any file of a run, drawn from a seed; ``done`` names it."""

    def __init__(self, seed: int) -> None:
        self._rng = random.Random(seed)
        self.done = ""

    def __call__(self, run: Path) -> None:
        files = sorted(
            path
            for path in run.rglob("*")
            if path.is_file() and path.parent != run and path.name != "scenario.yaml"
        )
        file = self._rng.choice(files)
        how = self._rng.choice(
            (
                self._flip,
                self._cut,
                self._zero,
                self._append,
                self._remove,
                self._insert,
                self._swap,
            )
        )
        self.done = f"{how.__name__} {file.relative_to(run)}"
        how(file)

    def _flip(self, file: Path) -> None:
        content = bytearray(file.read_bytes())
        for _ in range(self._rng.choice((1, 1, 3, 20))):
            content[self._rng.randrange(len(content))] ^= 1 << self._rng.randrange(8)
        file.write_bytes(bytes(content))

    def _cut(self, file: Path) -> None:
        content = file.read_bytes()
        file.write_bytes(content[: self._rng.randrange(len(content))])

    def _zero(self, file: Path) -> None:
        content = bytearray(file.read_bytes())
        begin = self._rng.randrange(len(content))
        end = self._rng.randrange(begin, len(content)) + 1
        content[begin:end] = bytes(end - begin)
        content[begin - 1] ^= 1
        file.write_bytes(bytes(content))

    def _append(self, file: Path) -> None:
        with file.open("ab") as out:
            out.write(self._rng.randbytes(self._rng.randrange(1, 200)))

    def _remove(self, file: Path) -> None:
        file.unlink()

    def _insert(self, file: Path) -> None:
        content = file.read_bytes()
        at = self._rng.randrange(len(content))
        file.write_bytes(content[:at] + self._rng.randbytes(7) + content[at:])

    def _swap(self, file: Path) -> None:
        content = file.read_bytes()
        file.write_bytes(content[::-1] + b"x")


def damaged_header(run: Path, seed: int) -> str:
    """A value of another kind somewhere in ``run.json``."""
    chance = random.Random(seed)
    header = json.loads((run / "run.json").read_text())
    odd = (None, -1, 2**70, 1.5, "text", "\udcff", [], [None], {}, {"a": []}, True, [[1]], 10**400)
    name = chance.choice(sorted(header))
    value = chance.choice(odd)
    inner = header[name]
    if isinstance(inner, dict) and inner and chance.random() < 0.5:
        inner[chance.choice(sorted(inner))] = value
    elif isinstance(inner, list) and inner and chance.random() < 0.5:
        inner[chance.randrange(len(inner))] = value
    else:
        header[name] = value
    (run / "run.json").write_text(json.dumps(header))
    return f"{name} = {ascii(value)[:40]}"
