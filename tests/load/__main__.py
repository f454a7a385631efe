"""A busy cluster with ports, and how long its clients wait: ``python -m tests.load``.

    this process:   the cluster, on threads, as ``minicluster serve`` has it
    tests.load.traffic:  producers, and a group whose members come and go (librdkafka)
    tests.load.probe:    one connection per API, which measures each response
    tests.load.topics:   with --topics, before them: topics, and a first record to each

It shows the distribution of waits by API, the processor time of the slowest handlers of the
cluster, and what went wrong in a client. Everything is bounded in number and time, and stays on
the loopback.
"""

from __future__ import annotations

import argparse
import importlib
import json
import subprocess
import sys
import time
from collections.abc import Iterable, Sequence
from typing import Any

from minicluster.actors.cluster.mini_cluster import inside
from minicluster.actors.recording.columns import load_arrow
from minicluster.actors.serve.serving import TRACE_BYTES
from tests.load.handlers import HandlerTimes, watch_handlers

STALL_MS = 50
LOADED_BY_SERVE = "minicluster.actors.nodes.coordinators"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the load; 1 if a client failed or a handler took longer than it may."""
    options = _parser().parse_args(arguments)
    times = watch_handlers()
    from minicluster import MiniCluster

    importlib.import_module(LOADED_BY_SERVE)
    load_arrow()

    with MiniCluster(
        seed=1, runtime="threaded", listeners=True, online=not options.unjudged
    ) as cluster:
        inside(cluster).recorder.bound_for_hours(TRACE_BYTES)
        cluster.create_topic("orders", partitions=options.partitions, replicas=3, min_isr=2)
        print(f"bootstrap.servers={cluster.bootstrap_servers}", flush=True)
        common = [cluster.bootstrap_servers, str(options.seconds)]
        counts = [str(options.members), str(options.producers), str(options.rate)]
        began_s = time.process_time()
        made: dict[str, Any] = {"errors": {}}
        if options.topics:
            many = _started("topics", cluster.bootstrap_servers, str(options.topics))
            made = _result(many, 600)
            print(f"topics: {json.dumps(made)}", flush=True)
        traffic = _started("traffic", *common, *counts, options.protocol)
        probe = _started("probe", *common, options.protocol)
        results = [_result(process, options.seconds + 120) for process in (traffic, probe)]
        busy_s = time.process_time() - began_s
        inside(cluster).rt.check()
    _show(results[0], results[1], times, busy_s)
    failed = made["errors"] or results[0]["errors"]
    return int(bool(failed) or times.slowest_ms > STALL_MS)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tests.load", description=__doc__)
    parser.add_argument("--members", type=int, default=50)
    parser.add_argument("--partitions", type=int, default=200)
    parser.add_argument("--producers", type=int, default=20)
    parser.add_argument("--rate", type=int, default=20, help="records a second of each producer")
    parser.add_argument("--seconds", type=int, default=40)
    parser.add_argument("--topics", type=int, default=0, help="made first, ten partitions each")
    parser.add_argument("--protocol", choices=("classic", "consumer"), default="classic")
    parser.add_argument("--unjudged", action="store_true", help="without the live rules")
    return parser


def _started(module: str, *arguments: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", f"tests.load.{module}", *arguments]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


def _result(process: subprocess.Popen[str], limit_s: float) -> dict[str, Any]:
    try:
        text, _ = process.communicate(timeout=limit_s)
    except subprocess.TimeoutExpired:
        process.kill()
        process.communicate()
        text = '{"errors": {"it did not end": 1}}'
    result: dict[str, Any] = json.loads(text or '{"errors": {"it failed": 1}}')
    return result


def _show(
    traffic: dict[str, Any], probe: dict[str, list[float]], times: HandlerTimes, busy_s: float
) -> None:
    print(f"processor time of the cluster: {busy_s:.1f} s")
    print(f"clients: {json.dumps(traffic)}")
    _show_table("API: milliseconds until the response", probe.items())
    _show_table("step: milliseconds of the processor", times.slowest(25))


def _show_table(title: str, rows: Iterable[tuple[str, Sequence[float]]]) -> None:
    print(f"{title:<60} {'count':>6} {'p50':>8} {'p90':>8} {'p99':>8} {'max':>8} {'sum':>9}")
    for name, values in rows:
        ordered = sorted(values)
        at = [ordered[int(share * (len(ordered) - 1))] for share in (0.5, 0.9, 0.99, 1.0)]
        numbers = " ".join(f"{value:>8.1f}" for value in at)
        print(f"{name:<60} {len(values):>6} {numbers} {sum(values):>9.0f}")


if __name__ == "__main__":
    sys.exit(main())
