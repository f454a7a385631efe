"""A second signal ends a serving cluster at once, in whichever state it comes.

Each state is met by name: a function that is called in it sends the signals to its own process, so
that the handler runs there and then. No test waits.
"""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

LIMIT_S = 90.0
PROGRAM = """
import os, signal, sys
from minicluster.actors.cluster import run_folder
from minicluster.actors.cluster.running import RunningCluster
from minicluster.actors.recording import run_place
from minicluster.actors.recording.recorder import Recorder
from minicluster.actors.runtime.threaded import ThreadedRuntime
from minicluster.actors.serve import serving, session
from minicluster.cli import run
from minicluster.cli import serving as command

state, count, *words = sys.argv[1:]
sent = []

def send():
    while len(sent) < int(count):
        sent.append(state)
        os.kill(os.getpid(), signal.SIGINT)

class Dropped:
    def __del__(self):
        send()

def drop():
    Dropped()

def before(owner, name, call):
    original = getattr(owner, name)
    def called(*args, **kwargs):
        call()
        return original(*args, **kwargs)
    setattr(owner, name, called)

def after(owner, name, call):
    original = getattr(owner, name)
    def called(*args, **kwargs):
        result = original(*args, **kwargs)
        call()
        return result
    setattr(owner, name, called)

def first():
    sent.append(state)
    os.kill(os.getpid(), signal.SIGINT)

if state not in ("starting", "making topics", "serving", "in a destructor", "performing a step"):
    before(session.Session, "_wait", lambda: sent or first())

{
    "starting": lambda: before(RunningCluster, "start", send),
    "making topics": lambda: before(session.Session, "perform", send),
    "performing a step": lambda: before(session.Session, "_begin_step_of_scenario", send),
    "serving": lambda: before(session.Session, "_wait", send),
    "in a destructor": lambda: before(session.Session, "_wait", drop),
    "checking what clients got": lambda: before(RunningCluster, "check_clients", send),
    "ending the control socket": lambda: before(serving.ControlServer, "close", send),
    "stopping the actors": lambda: before(ThreadedRuntime, "close", send),
    "writing the brokers' logs": lambda: before(run_folder, "write_broker", send),
    "writing the run": lambda: before(run_folder, "stale_indexes", send),
    "writing the trace": lambda: before(Recorder, "write", send),
    "putting the run in place": lambda: before(run_place, "_swap", send),
    "leaving": lambda: after(serving, "write_run", send),
    "telling how it ended": lambda: after(command, "_show_end", send),
}[state]()
sys.exit(run(words))
"""
SIGNALS_OF = {"starting": 1, "making topics": 1}  # nothing is there yet that one could save


def ended(state: str, count: int, folder: Path) -> tuple[int, str]:
    words = ["serve", "--brokers", "1", "--controllers", "1", "--port", "0"]
    words += [
        "--topic",
        "orders:1:1",
        "--runs",
        str(folder / "runs"),
        "--ready-file",
        str(folder / "ready.json"),
    ]
    process = subprocess.run(
        [sys.executable, "-c", PROGRAM, state, str(count), *words],
        capture_output=True, text=True, timeout=LIMIT_S,
    )  # fmt: skip
    assert "Traceback" not in process.stderr, process.stderr
    return process.returncode, [*process.stderr.splitlines(), ""][-2 if process.stderr else -1]


@pytest.mark.parametrize(
    "state",
    ["starting", "making topics", "serving", "performing a step", "in a destructor",
     "checking what clients got", "ending the control socket", "stopping the actors",
     "writing the brokers' logs", "writing the run",
     "writing the trace", "putting the run in place"],
)  # fmt: skip
def test_a_second_signal_ends_at_once_and_leaves_nothing(state: str, tmp_path: Path) -> None:
    code, last = ended(state, SIGNALS_OF.get(state, 2), tmp_path)
    assert code == 128 + signal.SIGINT
    assert last == "minicluster: stopped by SIGINT; there is no run folder"
    assert not (tmp_path / "ready.json").exists()
    assert not list((tmp_path / "runs").iterdir())


@pytest.mark.parametrize("state", ["leaving", "telling how it ended"])
def test_one_that_comes_when_the_run_is_whole_leaves_it(state: str, tmp_path: Path) -> None:
    code, last = ended(state, 2, tmp_path)
    [run] = (tmp_path / "runs").iterdir()
    assert code == 128 + signal.SIGINT and (run / "run.json").is_file()
    assert last == f"minicluster: stopped by SIGINT; the run folder is {run}"


def test_one_signal_saves_the_run(tmp_path: Path) -> None:
    code, _ = ended("serving", 1, tmp_path)
    [run] = (tmp_path / "runs").iterdir()
    assert code == 0 and (run / "run.json").is_file()
