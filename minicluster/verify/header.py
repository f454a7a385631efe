"""The header of a run that has ended: crashes, the controllers' indexes, trace hashes."""

from __future__ import annotations

from itertools import chain

from minicluster.verify.evidence.run_header import RunHeader
from minicluster.verify.histories.traced_run import History, TracedRun
from minicluster.verify.judging import Judge
from minicluster.verify.model import Evidence
from minicluster.verify.rules.rule import CASE, Findings, broken, exempt, ids, rule


@rule("E41", "A controller's indexes match its image",
      source="ReplicationControlManager (BrokersToIsrs); 4.3 breaks it twice",
      at_end=True, evidence=Evidence.META,
      breaks="At the end of the run the indexes of controller 101 do not match its image.",
      keeps="At the end of the run the indexes of every controller match its image.")  # fmt: skip
def indexes_match_the_image(header: RunHeader) -> Findings:
    """At the end of a run the indexes of each controller (brokers to ISRs, partitions without
    leader, …) equal those computed again from its image."""
    if header.stale_indexes is None:
        return
    yield CASE
    if header.stale_indexes:
        controllers = ids(header.stale_indexes)
        yield broken(f"the indexes of controllers {controllers} do not match their images")


@rule("E42", "No actor crashes, and no controller resigns because of a fault",
      source="design of this project; Kafka's own faults are FaultHandler.handleFault, "
      "QuorumController.handleEventException", at_end=True, evidence=Evidence.META,
      breaks="Broker 1 raises a KeyError.",
      keeps="Nobody crashes, and no controller meets a fault.")  # fmt: skip
def no_actor_crashes(header: RunHeader) -> Findings:
    """No machine raises anything but a protocol error, whatever it receives; no decision or
    periodic task of a controller meets an impossible state, and no controller gives up its
    leadership for it."""
    if header.crashes is not None:
        yield CASE
        if header.crashes:
            yield broken(f"{header.crashes} actors crashed")
    if header.controller_faults:
        yield broken(
            f"controllers met {header.controller_faults} faults of their own (controller_faults of "
            "run.json)"
        )


@rule("X1", "The same seed gives the same run",
      source="design of this project", at_end=True, evidence=Evidence.META,
      without_cases="the run was not repeated",
      breaks="The run is repeated from its seed, and leaves another trace hash.",
      keeps="The run is repeated from its seed, and leaves the same trace hash.")  # fmt: skip
def the_same_seed_gives_the_same_run(header: RunHeader) -> Findings:
    """A run that was repeated from its seed left the same trace hash. No file can repeat a run in
    which functions of a test saw clients' requests."""
    if header.intercepted:
        yield exempt(f"functions of the test saw requests: {'; '.join(header.intercepted)}")
        return
    if header.trace_hash is None or header.repeat_trace_hash is None:
        return
    yield CASE
    if header.trace_hash != header.repeat_trace_hash:
        yield broken("the run was repeated from its seed and left another trace")


_RULES = (indexes_match_the_image, no_actor_crashes, the_same_seed_gives_the_same_run)


def judge_header(run: TracedRun, judge: Judge) -> None:
    """Judge ``run.json``; a plain log has none."""
    header = run.evidence.header
    if header is not None:
        judge.hear(chain.from_iterable(promise(header) for promise in _RULES))


HISTORY = History(yields=(), reads=(), fold=judge_header, rules=_RULES)
