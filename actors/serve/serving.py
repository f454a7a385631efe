"""Serving: a cluster starts, its topics are made, clients come, and a run folder is left."""

from __future__ import annotations

import datetime
import importlib
import os
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import field
from functools import partial
from pathlib import Path

from minicluster import trace
from minicluster.actors.cluster.client_configs import write_properties
from minicluster.actors.cluster.run_folder import write_run
from minicluster.actors.cluster.running import RunningCluster
from minicluster.actors.listeners.address import ListenAddress
from minicluster.actors.play.player import cluster_of, unseen
from minicluster.actors.recording.columns import load_arrow
from minicluster.actors.recording.live_checks import InvariantViolated
from minicluster.actors.recording.recorder import Recorder
from minicluster.actors.recording.run_place import check_place, check_writable, escaped_name
from minicluster.actors.runtime.runtime import ActorCrashed
from minicluster.actors.serve.control import ControlServer
from minicluster.actors.serve.control_lines import Response
from minicluster.actors.serve.outcome_text import shortened
from minicluster.actors.serve.ready_file import ReadyFile, place_of_user
from minicluster.actors.serve.session import EXIT_INVALID, EXIT_UNKNOWN, Session
from minicluster.actors.serve.status import Status
from minicluster.actors.serve.stopping import Parent, Signals
from minicluster.errors import UserError
from minicluster.scenario import Scenario, Step
from minicluster.values import Value, dataclass, replace
from minicluster.verify.evidence.scenario_failure import ScenarioFailure

STATUS_EVERY_S = 0.5
TRACE_BYTES = 40_000_000
END_S = 1.0  # an end that takes longer is told where no status is seen


@dataclass(frozen=True, slots=True, kw_only=True)
class ServeSettings:
    """The shape of a serving cluster, and where its files go.

    Shapes:  name: of the cluster, by which people know it; pace: of a simulated cluster, None for
             one on threads; topics: steps that come before anything else; again: the scenario
             begins again after its last step; users: passwords of those who log in, by name;
             super_users: who may do everything, with ACLs for all others; tls: the folder for
             certificates and clients' settings, None without TLS; with_parent: the end of the
             process that started this one ends it; trace_bytes: of the trace on disk, from which
             the oldest rows are dropped beyond it.
    """

    scenario: Scenario
    name: str
    pace: float | None = None
    listen: ListenAddress = field(default_factory=ListenAddress)
    topics: tuple[Step, ...] = ()
    again: bool = False
    users: Mapping[str, str] = field(default_factory=dict, repr=False)
    super_users: tuple[str, ...] = ()
    tls: Path | None = None
    runs: Path = Path("runs")
    ready_file: Path | None = None
    with_parent: bool = False
    trace_bytes: int = TRACE_BYTES


class Served(Value):
    """The end of a serving cluster: its run folder, and what went wrong, if anything.

    Shapes:  lacks: what the run does not show, a line each.
    """

    path: Path
    failure: Response | None
    lacks: tuple[str, ...] = ()


class Report(Value, kw_only=True):
    """Where the progress of a serving cluster goes.

    Shapes:  ready(bootstrap.servers); step(text, cluster time in ms); failed(one line), where the
             scenario does not go as written; status(one line), twice a second, and while the
             cluster ends; slow(one line), once, where the end takes longer than ``END_S``;
             ended, once all is written.
    """

    ready: Callable[[str], None]
    step: Callable[[str, int], None]
    failed: Callable[[str], None]
    status: Callable[[str], None]
    slow: Callable[[str], None] = lambda text: None
    ended: Callable[[Served], None] = lambda served: None


def serve(settings: ServeSettings, report: Report) -> Served:
    """Serve until a signal, or the parent's death where that is wanted.

    A second signal, or one before anything serves, ends the process.

    Errors:  UserError before anything serves; OSError where the run folder cannot be written.
    """
    place = settings.runs / _run_name(settings.scenario)
    ready_places = _prepared(settings, place)
    ends = ExitStack()  # what is closed in the end, the last first
    with Signals(place) as signals:
        try:
            cluster = _cluster(settings, place.name)
            ends.callback(cluster.rt.close)
            cluster.start()
            session = _session(settings, cluster, report)
            control = ControlServer(session.submit, name=settings.name)
            ends.callback(control.close)
            for step in settings.topics:
                session.perform(step)
            if settings.tls is not None:
                write_properties(cluster, settings.tls)
            ready = ReadyFile(
                name=settings.name,
                directory=str(Path.cwd().resolve()),
                bootstrap_servers=cluster.open_to_clients("serve").bootstrap_servers(),
                control=control.address,
                token=control.token,
                pid=os.getpid(),
                runs=str(settings.runs.resolve()),
                run=str(place.resolve()),
            )
            signals.at_end += [partial(ready.remove, path) for path in ready_places]
            with ready.at(ready_places):
                signals.stop = session.stop
                report.ready(cluster.open_to_clients("serve").bootstrap_servers())
                load_arrow()
                response, failure = _run(session)
        except BaseException:
            ends.close()
            raise
        signals.stop = None
        end = _End(report)
        end.begin("stopping the cluster")
        ends.close()
        path = _save(session, cluster, place, failure, end.begin)
        served = Served(path, response, _lacks(cluster.recorder))
        report.ended(served)
        return served


class _End:
    """The end of a serving cluster, part by part."""

    def __init__(self, report: Report) -> None:
        self._report, self._began_s, self._is_told = report, time.monotonic(), False

    def begin(self, part: str) -> None:
        """A part of the end begins."""
        self._report.status(part)
        if not self._is_told and time.monotonic() - self._began_s >= END_S:
            self._is_told = True
            self._report.slow(f"the end takes more than {END_S:g} s: {part}")


def _prepared(settings: ServeSettings, place: Path) -> list[Path]:
    """The places of the ready file, after a look at every place that is written to later."""
    check_place(place)
    check_writable(settings.runs)
    if settings.tls is not None:
        check_writable(settings.tls, "certificates")
    places = []
    if settings.ready_file is not None:
        if not settings.ready_file.parent.is_dir():
            raise UserError(
                f"{settings.ready_file}: there is no folder {settings.ready_file.parent}"
            )
        settings.ready_file.unlink(missing_ok=True)  # a waiter would take it for this cluster's
        places.append(settings.ready_file)
    own = place_of_user()
    if own is not None:
        places.append(own / f"{os.getpid()}.json")
    return places


def _cluster(settings: ServeSettings, run_id: str) -> RunningCluster:
    cluster = cluster_of(
        settings.scenario,
        runtime="threaded" if settings.pace is None else "simulated",
        pace=settings.pace,
        listeners=settings.listen,
        users=settings.users,
        super_users=settings.super_users,
        run_id=run_id,
    )
    cluster.scenario = None  # until a step is performed
    # Loaded by a broker when its first group comes, it holds up all of its clients for 0.1 s.
    importlib.import_module("minicluster.actors.nodes.coordinators")
    cluster.recorder.bound_for_hours(settings.trace_bytes)
    return cluster


def _session(settings: ServeSettings, cluster: RunningCluster, report: Report) -> Session:
    parent = Parent() if settings.with_parent else None
    status = Status(cluster)
    due_s = 0.0

    def look() -> None:
        nonlocal due_s
        now_s = time.monotonic()
        if now_s >= due_s:
            due_s = now_s + STATUS_EVERY_S
            report.status(status.line(now_s))
        if parent is not None and parent.ended:
            session.stop()

    session = Session(
        cluster,
        settings.scenario,
        again=settings.again,
        on_step=report.step,
        on_failure=report.failed,
        on_look=look,
    )
    return session


def _run(session: Session) -> tuple[Response | None, ScenarioFailure | None]:
    """Perform steps until the end.

    Shapes:  -> the reason that the run is not as it should be, if any, for the command and for the
             run folder.
    """
    try:
        session.run()
        session.cluster.check_clients()
    except InvariantViolated as violation:
        text = shortened(str(violation))
        failure = ScenarioFailure("violated", str(violation), violation.findings[0].rule)
        return Response(text=text, exit_code=EXIT_INVALID), failure
    except ActorCrashed as crash:
        lines = str(crash).strip().splitlines()
        text = shortened(f"{lines[0]}: {lines[-1]}")
        failure = ScenarioFailure("crash", str(crash))
        return Response(text=text, exit_code=EXIT_INVALID), failure
    if session.failure is not None:
        return session.failure, session.scenario_failure
    return _unseen(session.cluster)


def _unseen(cluster: RunningCluster) -> tuple[Response | None, ScenarioFailure | None]:
    """The gaps in the record of a run; only a failure of the recorder is one of the command.

    The trace of a cluster that serves for hours reaches its bound; that alone does not end with 2.
    """
    lacking = unseen(cluster)
    if lacking is None or not cluster.recorder.own_problems.so_far():
        return None, lacking
    return Response(text=shortened(lacking.text), exit_code=EXIT_UNKNOWN), lacking


def _save(
    session: Session,
    cluster: RunningCluster,
    place: Path,
    failure: ScenarioFailure | None,
    on_part: Callable[[str], None],
) -> Path:
    """Write the run folder; its scenario is the steps that were performed, each at its time."""
    if session.played:
        played = replace(
            session.scenario,
            runtime=cluster.runtime_name,
            listeners=False,
            pace=None,
            steps=tuple(session.played),
        )
        cluster.scenario = played.to_dict()
    return write_run(
        cluster, place, failure=failure, on_part=lambda part: on_part(f"writing {part}")
    )


def _lacks(recorder: Recorder) -> tuple[str, ...]:
    """The gaps in the trace of a run, a line each."""
    left_out = recorder.client_rows_left_out
    of_clients = (
        f"the trace table client_record has the first {trace.CLIENT_ROWS_MAX:,} rows, and none of "
        f"{left_out:,} later responses to clients; the live rules have judged them"
    )
    return (*(problem.why for problem in recorder.problems), *([of_clients] if left_out else ()))


def _run_name(scenario: Scenario) -> str:
    """A name that no other run has."""
    now = datetime.datetime.now().astimezone()
    return f"{escaped_name(scenario.name)}-{now:%Y_%m_%d-%H_%M_%S}-{os.getpid()}"
