"""The texts of a wait that timed out: its condition, and the state of the cluster."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

from minicluster.errors import counted
from minicluster.metadata.image.metadata_image import MetadataImage
from minicluster.metadata.image.partition import PartitionRegistration
from minicluster.protocol.topics import INTERNAL_TOPICS


def describe(condition: Callable[..., Any]) -> str:
    """The text of a condition: its method's name with its object, or a lambda's source."""
    owner = getattr(condition, "__self__", None)
    name = getattr(condition, "__name__", type(condition).__name__)
    if owner is not None and not isinstance(owner, type):
        shown = repr(owner)
        shown = "cluster" if shown.startswith("<") else shown  # nobody reads an address
        return f"{shown}.{name}"
    if name == "<lambda>":
        return _lambda_text(condition) or "a lambda"
    return str(name)


def place_of(condition: Callable[..., Any]) -> str:
    """Where a lambda stands, such as `` at test_orders.py:12``; empty for what has a name."""
    code = getattr(condition, "__code__", None)
    if code is None or code.co_name != "<lambda>":
        return ""
    return f" at {Path(code.co_filename).name}:{code.co_firstlineno}"


def _lambda_text(condition: Callable[..., Any]) -> str | None:
    """The source of a lambda's body; None where there is no source, or more than one lambda."""
    try:
        source = inspect.getsource(condition).strip()
    except (OSError, TypeError):
        return None
    lambdas: list[ast.Lambda] = []
    for candidate in (source, f"({source.rstrip(',')})", source.rstrip("): ,") + ")"):
        try:
            tree = ast.parse(candidate)
        except SyntaxError:
            continue
        lambdas = [node for node in ast.walk(tree) if isinstance(node, ast.Lambda)]
        if lambdas:
            break
    if len(lambdas) == 1:
        return ast.unparse(lambdas[0].body)
    return " ".join(source.split()) if source else None


def state_lines(
    image: MetadataImage,
    *,
    active_controller: int | None,
    running: Iterable[int],
    brokers: Iterable[int],
) -> list[str]:
    """The cluster in a few lines: active controller, fenced brokers, missing replicas."""
    up = set(running)
    words = []
    for broker_id in brokers:
        registration = image.cluster.broker(broker_id)
        states = [] if broker_id in up else ["down"]
        if registration is None:
            states.append("not registered")
        elif registration.fenced:
            states.append("fenced")
        if registration is not None and registration.in_controlled_shutdown:
            states.append("in controlled shutdown")
        words.append(f"{broker_id} {' and '.join(states) or 'unfenced'}")
    active = "none" if active_controller is None else str(active_controller)
    lines = [f"active controller {active}; brokers: {', '.join(words)}"]
    internal: dict[str, list[PartitionRegistration]] = {}
    for topic, index, state in image.topics.partitions():
        if topic.name in INTERNAL_TOPICS:  # fifty lines of __consumer_offsets hide all others
            internal.setdefault(topic.name, []).append(state)
            continue
        leader = "none" if state.leader < 0 else str(state.leader)
        recovering = ", recovering" if state.leader_recovery_state else ""
        lines.append(
            f"{topic.name}-{index}: leader {leader}, isr {_list(state.isr)} of "
            f"{_list(state.replicas)}, epochs {state.leader_epoch}/{state.partition_epoch}"
            f"{recovering}"
        )
    return [*lines, *(_internal(name, states) for name, states in internal.items())]


def _internal(topic: str, states: Sequence[PartitionRegistration]) -> str:
    """An internal topic in one line."""
    led = sum(state.leader >= 0 for state in states)
    whole = sum(len(state.isr) == len(state.replicas) for state in states)
    without = f", {len(states) - led} without a leader" if led < len(states) else ""
    return f"{topic}: {counted(len(states), 'partition')}, {whole} fully in sync{without}"


def _list(ids: Iterable[int]) -> str:
    return f"[{','.join(str(i) for i in ids)}]"
