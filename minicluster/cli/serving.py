"""The commands of a serving cluster: ``serve`` keeps one up, ``do`` performs one step on it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click
from click.shell_completion import CompletionItem
from rich.markup import escape

from minicluster.cli.options import path_type, runs_option, user_and_password
from minicluster.cli.terminal import complain, print_line, progress
from minicluster.errors import UserError
from minicluster.own_command import command_line
from minicluster.values import replace

if TYPE_CHECKING:
    from minicluster.actors.serve.ready_file import ReadyFile
    from minicluster.actors.serve.serving import Served, ServeSettings
    from minicluster.scenario import Scenario, Step

_TOPIC = re.compile(r"([^:]+)(?::([0-9]{1,9}))?(?::([0-9]{1,9}))?")
REPLICAS = 3
REAL_TIME = 1.0


@click.command("serve")
@click.option(
    "--name",
    help="Name of the cluster, for do and for the run folder.  "
    "[default: the scenario's, or that of this directory]",
)
@click.option("--brokers", type=click.IntRange(1), help="Instead of the scenario's, or of 3.")
@click.option("--controllers", type=click.IntRange(1), help="Instead of the scenario's, or of 3.")
@click.option(
    "--port",
    type=int,
    default=9092,
    show_default=True,
    help="Port of the first broker; the others take the next ones. 0: any free ports.",
)
@click.option(
    "--listen",
    "host",
    default="127.0.0.1",
    show_default=True,
    metavar="ADDRESS",
    help="Address to listen on. Another than the loopback lets other machines in.",
)
@click.option(
    "--advertise",
    metavar="HOST",
    help="Host by which clients reach the brokers.  [default: the address]",
)
@click.option(
    "--sasl",
    "users",
    multiple=True,
    metavar="USER:PASSWORD",
    help="User who logs in, by SCRAM or PLAIN (repeatable); every client has to.",
)
@click.option(
    "--tls",
    type=path_type,
    metavar="DIR",
    help="TLS. DIR gets the certificates, and a properties file for each user (Java's clients).",
)
@click.option(
    "--super-user",
    "super_users",
    multiple=True,
    metavar="USER",
    help="User who may do everything (repeatable); all others need ACLs then.",
)
@click.option(
    "--config",
    "configs",
    multiple=True,
    metavar="K=V",
    help="Broker or cluster config (repeatable).",
)
@click.option(
    "--topic",
    "topics",
    multiple=True,
    metavar="NAME:PARTITIONS:REPLICAS",
    help="Topic to create before clients come (repeatable).",
)
@click.option(
    "--scenario",
    "scenario_path",
    type=path_type,
    help="Scenario to play against your application; its header describes the cluster.",
)
@click.option("--again", is_flag=True, help="Begin the scenario again after its last step.")
@click.option(
    "--simulated", is_flag=True, help="One thread for the whole cluster, at the pace of the clock."
)
@click.option(
    "--pace",
    type=float,
    help="Seconds of a simulated cluster per second: 10 is ten times as fast.",
)
@click.option("--seed", type=click.IntRange(min=0), help="Seed instead of the scenario's own.")
@runs_option
@click.option(
    "--ready-file",
    type=path_type,
    help="File that appears when clients can connect: addresses, token, pid, as JSON.",
)
@click.option(
    "--trace-mb",
    type=click.IntRange(1),
    default=40,
    show_default=True,
    help="MB of the trace on disk. Beyond it the oldest rows go, and rules that need them are "
    "unknown.",
)
@click.option(
    "--with-parent", is_flag=True, help="End when the process that started this one ends."
)
def serve_command(
    name: str | None,
    brokers: int | None,
    controllers: int | None,
    port: int,
    host: str,
    advertise: str | None,
    users: tuple[str, ...],
    tls: Path | None,
    super_users: tuple[str, ...],
    configs: tuple[str, ...],
    topics: tuple[str, ...],
    scenario_path: Path | None,
    again: bool,
    simulated: bool,
    pace: float | None,
    seed: int | None,
    runs: Path,
    ready_file: Path | None,
    trace_mb: int,
    with_parent: bool,
) -> int:
    """Serve Kafka's clients until Ctrl-C or SIGTERM, then leave a run folder.

    One line on standard output, bootstrap.servers=…, means that clients can connect. A second
    Ctrl-C ends at once, without a run folder.
    """
    from minicluster.actors.listeners.address import ListenAddress
    from minicluster.actors.serve.serving import ServeSettings
    from minicluster.scenario.checks.limits import NAME_MAX, checked_text

    scenario = _scenario(scenario_path)
    if name is not None:
        scenario = replace(scenario, name=checked_text(name, "--name", NAME_MAX))
    shape = {"brokers": brokers, "controllers": controllers, "seed": seed}
    scenario = replace(
        scenario,
        config={**scenario.config, **dict(map(_config, configs))},
        **{field: value for field, value in shape.items() if value is not None},  # type: ignore[arg-type]
    )
    if again and not scenario.steps:
        raise UserError("--again: there is no scenario; name one with --scenario")
    settings = ServeSettings(
        scenario=scenario,
        name=scenario.name if name or scenario_path else Path.cwd().name or scenario.name,
        pace=_pace(scenario, simulated, pace),
        listen=ListenAddress(
            host=host, port=port, advertised=advertise, listeners=_protocol(users, tls)
        ),
        users=dict(map(user_and_password, users)),
        super_users=super_users,
        tls=tls,
        topics=tuple(_topic(text, scenario.brokers) for text in topics),
        again=again,
        runs=runs,
        ready_file=ready_file,
        with_parent=with_parent,
        trace_bytes=trace_mb * 1_000_000,
    )
    return _serve(settings)


def _serve(settings: ServeSettings) -> int:
    from minicluster.actors.serve.serving import Report, serve

    with progress() as shown:
        task = shown.add_task("starting the cluster", total=None)
        report = Report(
            ready=lambda servers: print_line(f"bootstrap.servers={servers}"),
            step=lambda text, now_ms: complain(f"{now_ms / 1000:8.1f}s  {text}"),
            failed=lambda text: complain(
                f"the scenario did not go as written, and ends here: {text}", style="red"
            ),
            status=lambda line: shown.update(task, description=escape(line)),
            # A terminal shows the part that is being written.
            slow=lambda text: complain(text) if shown.disable else None,
            ended=_show_end,
        )
        served = serve(settings, report)
    return 0 if served.failure is None else served.failure.exit_code


def _show_end(served: Served) -> None:
    print_line(f"run     {served.path}")
    print_line(f"verify  {command_line('verify', served.path)}")
    for line in served.lacks:
        complain(f"unknown {line}")
    if served.failure is not None:
        complain(f"minicluster: {served.failure.text}")


def _scenario(path: Path | None) -> Scenario:
    from minicluster.scenario import Scenario, load_scenario

    return Scenario(name="serve") if path is None else load_scenario(path)


def _pace(scenario: Scenario, simulated: bool, pace: float | None) -> float | None:
    """The pace of a simulated cluster; None for one on threads."""
    from minicluster.scenario.checks.limits import checked_pace

    if pace is None:
        pace = scenario.pace
    if pace is not None:
        return checked_pace(pace)
    return REAL_TIME if simulated else None


def _config(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not name or not equals:
        raise UserError(f"--config: {text!r} is not K=V, such as min.insync.replicas=2")
    return name.strip(), value.strip()


def _protocol(users: Sequence[str], tls: Path | None) -> str:
    with_sasl = "SASL_PLAINTEXT" if tls is None else "SASL_SSL"
    return with_sasl if users else "PLAINTEXT" if tls is None else "SSL"


def _topic(text: str, brokers: int) -> Step:
    from minicluster.scenario.reading import step_of

    match = _TOPIC.fullmatch(text)
    if match is None:
        raise UserError(f"--topic: {text!r} is not NAME:PARTITIONS:REPLICAS, such as orders:3:3")
    name, partitions, replicas = match.groups()
    value = {
        "do": "create_topic",
        "name": name,
        "partitions": int(partitions or 1),
        "replicas": int(replicas or min(REPLICAS, brokers)),
    }
    return step_of(1, value, f"--topic {text}")


def _complete_step(
    context: click.Context, parameter: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    """The actions that begin with what is there."""
    from minicluster.scenario import ACTIONS

    words = sorted([*ACTIONS, "until", "expect"])
    return [CompletionItem(word) for word in words if word.startswith(incomplete)]


@click.command("do")
@click.argument("step", nargs=-1, required=True, shell_complete=_complete_step)
@click.option(
    "--at",
    "address",
    metavar="ADDRESS",
    help="Address of the cluster: of a broker, or of the control socket.",
)
@click.option(
    "--runs",
    type=path_type,
    help="Folder of runs of the cluster: the one that leaves its run there.",
)
@click.option(
    "--token",
    envvar="MINICLUSTER_TOKEN",
    show_envvar=True,
    help="Token of the control socket, where its ready file cannot be read.",
)
@click.option(
    "--ready-file",
    type=path_type,
    envvar="MINICLUSTER_READY_FILE",
    show_envvar=True,
    help="Ready file of the cluster.",
)
def do_command(
    step: tuple[str, ...],
    address: str | None,
    runs: Path | None,
    token: str | None,
    ready_file: Path | None,
) -> int:
    """Perform one step of the scenario vocabulary on a cluster that serves.

    STEP is an action with its arguments, until or expect with a condition, or the mapping of a
    scenario file. Without an option the cluster that was started in this directory is meant, and
    never another one. Every line begins with the address and the name of the cluster.

    \b
      minicluster do 'kill leader(orders-0)'
      minicluster do 'pause broker(2) lasting=10s'
      minicluster do --at 127.0.0.1:9092 'until fully_in_sync(orders-0) within=30s'
      minicluster do '{do: isolate, node: broker(1), lasting: 5s}'
    """
    from minicluster.actors.serve.control_client import NoCluster, perform_at
    from minicluster.actors.serve.ready_file import NotOne

    try:
        serving = _meant(address, runs, token, ready_file)
    except NotOne as error:
        for cluster in error.serving:
            complain(f"serves  {cluster.address}  {cluster.name}  started in {cluster.directory}")
        raise
    control, own_token = (serving.control, serving.token) if serving else (str(address), str(token))
    shown = serving.address if serving else control
    try:
        response = perform_at(control, own_token, " ".join(step))
    except NoCluster as error:
        if serving is None:
            raise
        complain(f"{shown} {serving.name}: {error}")
        return error.exit_code
    prefix = f"{shown} {response.cluster or (serving.name if serving else '')}".rstrip()
    if response.exit_code:
        complain(f"{prefix}: {response.text}")
        return response.exit_code
    at_s = (response.at_ms or 0) / 1000
    print_line(f"{prefix}: step {response.step} at {at_s:.1f}s: {response.text}")
    return 0


def _meant(
    address: str | None, runs: Path | None, token: str | None, ready_file: Path | None
) -> ReadyFile | None:
    """The cluster that the options of ``do`` name; None for an address with its token.

    Errors:  UserError where there is none, or more than one.
    """
    from minicluster.actors.serve.ready_file import (
        read_ready_file,
        serving_at,
        serving_from,
        serving_into,
    )

    if address is not None:
        return serving_at(address) if token is None else None
    if runs is not None:
        return serving_into(runs)
    return serving_from(Path.cwd()) if ready_file is None else read_ready_file(ready_file)
