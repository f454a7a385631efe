"""A second signal ends a serving cluster at once, in whichever state it comes.

Each state is met by name: a function that is called in it sends the signals to its own process, so
that the handler runs there and then. No test waits.
"""

from __future__ import annotations

import signal
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

LIMIT_S = 600.0
PROGRAM = """
import os, signal, sys
from pathlib import Path
import pandas, pyarrow.compute, pyarrow.parquet  # of which the end of a run needs some
from minicluster.actors.cluster import run_folder
from minicluster.actors.cluster.running import RunningCluster
from minicluster.actors.recording import run_place
from minicluster.actors.recording.recorder import Recorder
from minicluster.actors.runtime.threaded import ThreadedRuntime
from minicluster.actors.serve import serving, session
from minicluster.cli import run
from minicluster.cli import serving as command

# A shell that starts the tests in the background lets them ignore it.
signal.signal(signal.SIGINT, signal.default_int_handler)

# A process for each state: it is a fork of this one, in which everything is imported.
for folder in map(Path, sys.argv[1:]):
    if os.fork() == 0:
        break
    _, status = os.wait()
    (folder / "code").write_text(str(os.waitstatus_to_exitcode(status)))
else:
    sys.exit(0)

state, count, *words = (folder / "words").read_text().splitlines()
os.dup2(os.open(folder / "stdout", os.O_WRONLY | os.O_CREAT), 1)
os.dup2(os.open(folder / "stderr", os.O_WRONLY | os.O_CREAT), 2)
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
ENDS_AT_ONCE = (
    "starting", "making topics", "serving", "performing a step", "in a destructor",
    "checking what clients got", "ending the control socket", "stopping the actors",
    "writing the brokers' logs", "writing the run", "writing the trace",
    "putting the run in place",
)  # fmt: skip
LEAVES_THE_RUN = ("leaving", "telling how it ended")
SIGNALS_OF = {"starting": 1, "making topics": 1}  # nothing is there yet that one could save
ONE = "serving, one signal"


@dataclass(frozen=True)
class Ended:
    """How a cluster ended, the last line that it printed, and the runs that it left."""

    code: int
    last: str
    runs: list[Path]
    has_ready_file: bool


@pytest.fixture(scope="module")
def ended(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Ended]:
    """A cluster in each state."""
    asked = {state: (state, SIGNALS_OF.get(state, 2)) for state in ENDS_AT_ONCE + LEAVES_THE_RUN}
    folders = {name: tmp_path_factory.mktemp("serve") for name in (*asked, ONE)}
    for name, (state, count) in (asked | {ONE: ("serving", 1)}).items():
        folder = folders[name]
        words = [state, str(count), "serve", "--brokers", "1", "--controllers", "1", "--port", "0"]
        words += ["--topic", "orders:1:1", "--runs", str(folder / "runs")]
        words += ["--ready-file", str(folder / "ready.json")]
        (folder / "words").write_text("\n".join(words))
    program = [sys.executable, "-c", PROGRAM, *map(str, folders.values())]
    done = subprocess.run(program, capture_output=True, text=True, timeout=LIMIT_S)
    assert done.returncode == 0, done.stderr
    return {name: how_it_ended(folder) for name, folder in folders.items()}


def how_it_ended(folder: Path) -> Ended:
    printed = (folder / "stderr").read_text()
    assert "Traceback" not in printed, printed
    return Ended(
        code=int((folder / "code").read_text()),
        last=[*printed.splitlines(), ""][-2 if printed else -1],
        runs=list((folder / "runs").iterdir()),
        has_ready_file=(folder / "ready.json").exists(),
    )


@pytest.mark.parametrize("state", ENDS_AT_ONCE)
def test_a_second_signal_ends_at_once_and_leaves_nothing(
    state: str, ended: dict[str, Ended]
) -> None:
    code = 128 + signal.SIGINT
    last = "minicluster: stopped by SIGINT; there is no run folder"
    assert ended[state] == Ended(code, last, runs=[], has_ready_file=False)


@pytest.mark.parametrize("state", LEAVES_THE_RUN)
def test_one_that_comes_when_the_run_is_whole_leaves_it(
    state: str, ended: dict[str, Ended]
) -> None:
    [run] = ended[state].runs
    assert ended[state].code == 128 + signal.SIGINT and (run / "run.json").is_file()
    assert ended[state].last == f"minicluster: stopped by SIGINT; the run folder is {run}"


def test_one_signal_saves_the_run(ended: dict[str, Ended]) -> None:
    [run] = ended[ONE].runs
    assert ended[ONE].code == 0 and (run / "run.json").is_file()
