"""``minicluster serve`` and ``do`` as processes: clients come, a leader dies, a run is left."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import confluent_kafka
import pytest

from minicluster.verify import verify
from tests.cli.in_process import Done, command

LIMIT_S = 90.0
COMMAND = (sys.executable, "-m", "minicluster")
FEW = ("--brokers", "1", "--controllers", "1", "--port", "0")


@dataclass
class Serving:
    """A cluster that serves in a process of its own."""

    process: subprocess.Popen[str]
    folder: Path

    @property
    def ready(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads((self.folder / "ready.json").read_text())
        return found

    def do(self, *words: str) -> Done:
        return command("do", "--ready-file", str(self.folder / "ready.json"), *words)

    def end(self, number: int = signal.SIGTERM) -> tuple[int, str, str]:
        self.process.send_signal(number)
        out, err = self.process.communicate(timeout=LIMIT_S)
        err = err or ""  # it went into a file
        assert "Traceback" not in err
        return self.process.returncode, out, err


@contextmanager
def serving(folder: Path, *words: str, **more: Any) -> Iterator[Serving]:
    """A process whose clients can connect."""
    args = [*COMMAND, "serve", "--runs", str(folder / "runs")]
    args += ["--ready-file", str(folder / "ready.json"), *words]
    piped = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True} | more
    process = subprocess.Popen(args, **piped)
    try:
        wait_for(folder / "ready.json", process)
        yield Serving(process, folder)
    finally:
        process.kill()
        process.wait()
        for stream in (process.stdout, process.stderr):
            if stream is not None:
                stream.close()


def wait_for(path: Path, process: subprocess.Popen[Any]) -> None:
    wait_until(path.exists, process)


def wait_until(condition: Callable[[], bool], process: subprocess.Popen[Any]) -> None:
    """Another process offers no event to wait for, so this looks again and again."""
    deadline_s = time.monotonic() + LIMIT_S
    while not condition():
        assert process.poll() is None and time.monotonic() < deadline_s
        time.sleep(0.02)


def run_of(out: str) -> Path:
    [path] = [line.split()[1] for line in out.splitlines() if line.startswith("run ")]
    return Path(path)


def produce(servers: str, topic: str, values: list[str]) -> list[int]:
    """The offsets at which records were acknowledged."""
    producer = confluent_kafka.Producer({"bootstrap.servers": servers, "acks": "all"})
    offsets: list[int] = []

    def delivered(error: object, message: confluent_kafka.Message) -> None:
        assert error is None, error
        offsets.append(message.offset())

    for value in values:
        producer.produce(topic, value, partition=0, on_delivery=delivered)
    assert producer.flush(LIMIT_S) == 0
    return sorted(offsets)


@pytest.mark.parametrize("runtime", [(), ("--simulated",)], ids=["threads", "simulated"])
def test_a_client_survives_the_leader_that_a_user_kills(
    tmp_path: Path, runtime: tuple[str, ...]
) -> None:
    topic = ("--topic", "orders:2:3", "--config", "min.insync.replicas=2")
    quick = ("broker.heartbeat.interval.ms=200", "broker.session.timeout.ms=1500")
    configs = [word for config in quick for word in ("--config", config)]
    with serving(tmp_path, "--port", "0", *topic, *configs, *runtime) as cluster:
        servers = cluster.ready["bootstrap_servers"]
        assert produce(servers, "orders", ["a", "b"]) == [0, 1]
        killed = cluster.do("kill leader(orders-0)")
        named = f"{servers.partition(',')[0]} {Path.cwd().name}: "
        assert killed.stdout.startswith(f"{named}step 2 at ") and ": node " in killed.stdout
        assert produce(servers, "orders", ["c"]) == [2]
        assert cluster.do("until leader(orders-0) != none").returncode == 0
        assert cluster.do("restart brokers").returncode == 0
        code, out, _ = cluster.end()
    assert code == 0
    assert out.splitlines()[0] == f"bootstrap.servers={servers}"
    run = run_of(out)
    header = json.loads((run / "run.json").read_text())
    steps = [step.get("do") for step in header["scenario"]["steps"]]
    assert steps == ["create_topic", "kill", None, "restart"]
    assert not (tmp_path / "ready.json").exists()
    assert verify(run, engine="process").valid


def test_a_scenario_that_does_not_go_as_written_is_1_and_the_cluster_goes_on(
    tmp_path: Path,
) -> None:
    story = tmp_path / "story.yaml"
    story.write_text(
        "name: a story\ncluster: {brokers: 1, controllers: 1}\nsteps:\n"
        "  - {do: create_topic, name: orders, replicas: 1}\n  - {expect: isr(orders-0) == 3}\n"
    )
    errors = tmp_path / "stderr"
    with (
        errors.open("w") as stderr,
        serving(tmp_path, "--port", "0", "--scenario", str(story), stderr=stderr) as cluster,
    ):
        wait_until(
            lambda: "the scenario did not go as written" in errors.read_text(), cluster.process
        )
        assert produce(cluster.ready["bootstrap_servers"], "orders", ["a"]) == [0]
        code, out, _ = cluster.end()
    assert code == 1
    err = errors.read_text()
    assert "Traceback" not in err
    assert err.splitlines()[-1].startswith("minicluster: step 2: expected isr(orders-0) == 3, but")
    assert run_of(out).name.startswith("a-story-")


@pytest.fixture
def one(tmp_path: Path) -> Iterator[Serving]:
    with serving(tmp_path, *FEW, "--topic", "orders", "--name", "shop") as cluster:
        yield cluster


def test_a_step_without_an_address_is_for_the_cluster_of_this_directory(
    one: Serving, tmp_path: Path
) -> None:
    """Three times in an hour a step killed brokers of another project's cluster."""
    elsewhere = subprocess.run(
        [*COMMAND, "do", "kill broker(1)"],
        cwd=tmp_path, capture_output=True, text=True, timeout=LIMIT_S,
    )  # fmt: skip
    servers = one.ready["bootstrap_servers"]
    assert elsewhere.returncode == 64
    *serving, mistake = elsewhere.stderr.splitlines()
    assert f"serves  {servers}  shop  started in {Path.cwd()}" in serving
    assert mistake == f"minicluster: no cluster was started in {tmp_path}; name one with --at"
    by_runs = command("do", "--runs", str(tmp_path / "runs"), "expect unfenced(broker(1))")
    assert by_runs.stdout.startswith(f"{servers} shop: step 2 at "), by_runs.stderr
    code, out, _ = one.end()
    assert code == 0 and run_of(out).name.startswith("shop-")


def test_steps_that_are_refused_are_one_line(one: Serving) -> None:
    for words, code, line in (
        (("kil", "broker(1)"), 65, "'kil broker(1)': unknown action 'kil'; did you mean kill?"),
        (("kill broker(7)",), 65, "there is no such broker; brokers are 1"),
        (("expect fenced(broker(1))",), 1, "expected fenced(broker(1)), but"),
        (
            ("until fenced(broker(1)) within=10ms",),
            2,
            "timed out after 10ms waiting for fenced(broker(1))",
        ),
    ):
        done = one.do(*words)
        assert (done.returncode, done.stdout) == (code, "")
        assert len(done.stderr.splitlines()) == 1 and line in done.stderr
    other = command("do", "--at", one.ready["control"], "--token", "guessed", "kill broker(1)")
    assert other.returncode == 64 and "not the token" in other.stderr
    assert other.stderr.startswith(f"{one.ready['control']} shop: ")
    at_broker = command("do", "--at", one.ready["bootstrap_servers"], "heal")
    assert at_broker.returncode == 0, at_broker.stderr
    assert one.end()[0] == 0


def test_a_ctrl_c_leaves_a_run_and_frees_the_ports(one: Serving) -> None:
    port = int(one.ready["bootstrap_servers"].rpartition(":")[2])
    code, out, err = one.end(signal.SIGINT)
    assert code == 0 and err.count("\n") == 1  # the topic's step
    assert (run_of(out) / "run.json").is_file()
    with socket.socket() as free:
        free.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        free.bind(("127.0.0.1", port))
    with pytest.raises(FileNotFoundError):
        _ = one.ready


def test_a_ctrl_c_before_clients_can_connect_leaves_no_run(tmp_path: Path) -> None:
    args = [*COMMAND, "serve", "--port", "0", "--runs", str(tmp_path / "runs")]
    process = subprocess.Popen(args, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    wait_for(tmp_path / "runs", process)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=LIMIT_S)
    if process.returncode == 130:  # it may have been ready by then
        assert out == "" and err.splitlines()[-1].startswith("minicluster: stopped")
        assert list((tmp_path / "runs").iterdir()) == []


@pytest.mark.parametrize("closed", ["stdout", "stderr"])
def test_a_reader_that_leaves_ends_nothing(tmp_path: Path, closed: str) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    with serving(tmp_path, *FEW, "--topic", "orders", **{closed: writing}) as cluster:
        os.close(writing)
        servers = cluster.ready["bootstrap_servers"]
        assert produce(servers, "orders", ["a"]) == [0]
        assert cluster.do("heal").returncode == 0
        cluster.process.send_signal(signal.SIGTERM)
        assert cluster.process.wait(LIMIT_S) == 0
        [run] = (tmp_path / "runs").iterdir()
        assert (run / "run.json").is_file()


PARENT = """
import subprocess, sys, time
subprocess.Popen(sys.argv[1:], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
time.sleep(600)
"""


def test_a_cluster_ends_with_its_parent_where_that_is_wanted(tmp_path: Path) -> None:
    runs, ready = tmp_path / "runs", tmp_path / "ready.json"
    args = [*COMMAND, "serve", *FEW, "--with-parent", "--runs", str(runs)]
    args += ["--ready-file", str(ready)]
    parent = subprocess.Popen([sys.executable, "-c", PARENT, *args])
    wait_for(ready, parent)
    parent.kill()
    parent.wait()
    deadline_s = time.monotonic() + LIMIT_S
    while not list(runs.glob("serve-*/run.json")):
        assert time.monotonic() < deadline_s
        time.sleep(0.05)
    assert not ready.exists()


def test_a_port_in_use_is_one_line_before_anything_starts(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        done = command("serve", "--port", str(port), "--runs", str(tmp_path / "runs"))
    assert done.returncode == 64 and done.stdout == ""
    assert done.stderr == (
        f"minicluster: 127.0.0.1:{port}: is in use by another program; name another port, or 0 "
        "for any that is free\n"
    )
