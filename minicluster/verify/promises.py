"""Promises that depend on the release that wrote a log, which metadata.version does not name.

A plain log does not record its release. What younger releases promise is asked of the releases that
may have written it (``histories/releases.py``); the rest is judged as the least that any promises.
"""

from __future__ import annotations

from minicluster.rules import FailedReplicas, Rules
from minicluster.values import Value
from minicluster.verify.model import FROM_3_3, FROM_ELR

Release = tuple[int, int]


class Promises(Value, kw_only=True):
    """The promises of one release.

    Shapes: release: the one that a run played, None where it is not recorded.
    Units:  new_incarnation_leaves_from: the metadata.version from which a new incarnation leaves
            the ISRs of its predecessor. Kafka 3.x does it only where ELRs can be written
            (ReplicationControlManager.handleUncleanBrokerShutdown); 4.x always (KAFKA-18106).
            empty_images: a node may publish an empty image, since an empty snapshot counts as a
            record (3.9; KAFKA-17713).
    """

    release: Release | None = None
    failures_in_log: bool = True
    new_incarnation_leaves_from: int = FROM_ELR
    empty_images: bool = False


def promises_of(rules: Rules | None) -> Promises:
    """The promises of the rules that a cluster played by; None: the release is not recorded."""
    if rules is None:
        return Promises()
    by_request = FailedReplicas.ALTER_REPLICA_STATE  # KIP-589 keeps them out of the log
    release = rules.name.partition(" ")[0].removeprefix("kafka-")
    major, minor = release.split(".")
    return Promises(
        release=(int(major), int(minor)),
        failures_in_log=rules.failed_replicas_reported_by is not by_request,
        new_incarnation_leaves_from=FROM_3_3 if rules.new_incarnation_leaves_isr else FROM_ELR,
        empty_images=rules.empty_snapshot_counts_as_record,
    )
