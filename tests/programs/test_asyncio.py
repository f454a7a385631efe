"""The private names of the standard library that programs are run by are there, in this version."""

from __future__ import annotations

import ast
import asyncio
import queue
import random
import threading
from asyncio import events, sslproto
from pathlib import Path
from typing import Any

import pytest

import minicluster.actors.programs.loop as loop_module

OWN = {"_arrived", "_latencies", "_places", "_place", "_runs", "_step_at", "_stepping"}
OWN |= {"_tasks_made", "_waiting", "_wake", "_step", "_stands", "_take_arrivals", "_first_timer"}
OWN |= {"_connect_by_tls"}


def private_names() -> set[str]:
    """Every private name that the loop of programs uses, but for those that it has itself."""
    tree = ast.parse(Path(loop_module.__file__).read_text())
    used = {
        node.attr
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute)
        and node.attr.startswith("_")
        and not node.attr.startswith("__")
    }
    return used - OWN


def test_the_loop_uses_no_private_name_that_asyncio_does_not_have() -> None:
    class Loop(asyncio.BaseEventLoop):
        pass

    loop = Loop()
    timer = asyncio.TimerHandle(0.0, print, (), loop)
    task_names = {"_log_destroy_pending"}  # of tasks
    of_tls = set(sslproto.SSLProtocol.__init__.__code__.co_names)
    there: set[str] = set(dir(loop)) | set(dir(timer)) | set(dir(events)) | task_names
    there |= of_tls & {"_app_transport"}
    there |= {"_selector"}  # that ``_run_once`` asks
    assert private_names() - there == set()
    run_once: Any = vars(asyncio.BaseEventLoop)["_run_once"]
    assert "_selector" in run_once.__code__.co_names
    loop.close()


@pytest.mark.parametrize(
    ("owner", "names"),
    [
        (threading, ("_allocate_lock", "_active")),
        (threading.Thread(), ("_invoke_excepthook", "_started")),
        (queue, ("_PySimpleQueue",)),
        (random, ("_inst", "_urandom")),
    ],
)
def test_names_of_other_modules(owner: Any, names: tuple[str, ...]) -> None:
    assert all(hasattr(owner, name) for name in names)
