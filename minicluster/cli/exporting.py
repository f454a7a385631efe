"""The command ``export``: a run for Apache Kafka's own nodes."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path

import click

from minicluster.cli.options import path_type, user_and_password
from minicluster.cli.terminal import complain, print_line
from minicluster.errors import counted


@click.command("export")
@click.argument("run", type=path_type)
@click.option(
    "--kafka",
    "target",
    type=path_type,
    required=True,
    metavar="DIR",
    help="A new folder; each node gets a folder in it.",
)
@click.option(
    "--port",
    type=int,
    default=9092,
    show_default=True,
    help="The port of the first broker; the other nodes follow, the controllers last.",
)
@click.option(
    "--sasl",
    "users",
    multiple=True,
    metavar="USER:PASSWORD",
    help="A user who logs in by PLAIN; several: again. A run has no passwords.",
)
def export_command(run: Path, target: Path, port: int, users: Sequence[str]) -> int:
    """Write RUN (a run folder) as folders from which Apache Kafka's own nodes start.

    The metadata log, the brokers' logs with their checkpoints, and a server.properties for each
    node on this machine. The end of the run becomes the present, so that Kafka keeps its records.
    """
    from minicluster.actors.export.kafka_folder import export_run

    now_ms, passwords = int(time.time() * 1000), dict(map(user_and_password, users))
    exported = export_run(run, target, port=port, now_ms=now_ms, users=passwords)
    nodes = ", ".join(
        (
            counted(len(exported.controllers), "controller"),
            counted(len(exported.brokers), "broker"),
        )
    )
    logs = f"{counted(exported.logs, 'log')} of {counted(exported.records, 'record')}"
    print_line(f"wrote    {target}: {nodes}, {logs}")
    print_line(
        f"start    for f in {target.resolve()}/*/server.properties; do "
        'bin/kafka-server-start.sh -daemon "$f"; done'
    )
    print_line(f"connect  bootstrap.servers={exported.bootstrap_servers}")
    if exported.note is not None:
        complain(exported.note)
    return 0
