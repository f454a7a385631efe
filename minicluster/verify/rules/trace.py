"""Rules that need the event trace of a run beside its log (views: ``trace_views``)."""

from __future__ import annotations

from minicluster.metadata.image.metadata_image import MetadataImage
from minicluster.verify.rules.model import Check, Evidence, Rule

_BROKER_SCOPED = (
    "'AlterPartition', 'BrokerHeartbeat', 'AllocateProducerIds', 'AssignReplicasToDirs'"
)
_EMPTY = MetadataImage.EMPTY.digest()
_ACCEPTED = "error = 'NONE' and answer in (0, 108)"  # 108: NEW_LEADER_ELECTED, and written
# Before version 2 a leader that lost its place hears FENCED_LEADER_EPOCH (74) for a written change.
_REJECTED = (
    "(error <> 'NONE' or (answer is not null and answer not in (0, 108) "
    "and not (version < 2 and answer = 74)))"
)
LEO = "coalesce(get(try_element_at(known, cast(m as string)), 0), -1)"
EPOCH_OF_LEO = "coalesce(get(try_element_at(known, cast(m as string)), 1), -1)"
_FETCH_EPOCH = (
    "get(try_element_at(from_json(follower_leos, 'map<string, array<bigint>>'), "
    "cast(about as string)), 2)"
)

ATOMIC_REQUESTS = Check(
    group="atomic",
    when="true",
    counts=False,
    bad="operations > 1",
    message="request {number} of {broker} wrote its records in more than one operation",
    broker="src",
    number="id",
)

RULES = (
    Rule(
        id="A7",
        title="An accepted ISR names current incarnations",
        statement="Each member of an accepted ISR carries no broker epoch or the one that was "
        "registered just before the record.",
        source="KIP-903; ReplicationControlManager.ineligibleReplicasForIsr",
        evidence=Evidence.TRACE,
        tables=("rpc",),
        checks=(
            Check(
                group="members",
                when="true",
                bad="member_epoch not in (-1, coalesce(seen, -2))",
                message="broker {broker} was accepted into an ISR with broker epoch {number}, "
                "which is not the one registered",
                broker="about",
                number="member_epoch",
            ),
        ),
    ),
    Rule(
        id="B9",
        title="AlterPartition changes no leader",
        statement="The record of an accepted AlterPartition names another leader only if it ends "
        "a reassignment.",
        source="KIP-497, KIP-455; ReplicationControlManager.alterPartition",
        evidence=Evidence.TRACE,
        tables=("rpc",),
        checks=(
            Check(
                group="effects",
                when="true",
                bad="leader <> p_leader and not ((size(p_adding) > 0 or size(p_removing) > 0) "
                "and size(adding) = 0 and size(removing) = 0)",
                message="an AlterPartition made broker {broker} the leader (ISR {new}) without "
                "ending a reassignment",
                broker="leader",
                new="isr",
            ),
        ),
    ),
    Rule(
        id="A5",
        title="Leaders propose only eligible replicas",
        statement="A leader never proposes to add a replica that its own published image calls "
        "fenced, shutting down or of another epoch.",
        source="KAFKA-14140, KIP-841; Partition.isReplicaIsrEligible",
        evidence=Evidence.TRACE,
        tables=("partition_event", "publish"),
        checks=(
            Check(
                group="additions",
                when="true",
                bad="not coalesce(seen.active, false) "
                f"or coalesce({_FETCH_EPOCH} not in (-1, seen.epoch), false)",
                message="the leader proposes broker {broker} for the ISR {new} (event {number}), "
                "which its own image at offset {offset} calls ineligible",
                offset="at",
                broker="about",
                new="maximal_isr",
                number="seq",
            ),
        ),
    ),
    Rule(
        id="A6",
        title="A refused AlterPartition changes nothing",
        statement="A refusal writes no record for its partition.",
        source="KIP-497; ReplicationControlManager.alterPartition",
        evidence=Evidence.TRACE,
        tables=("rpc",),
        checks=(
            Check(
                group="proposals",
                when=_REJECTED,
                bad="written is not null or (error <> 'NONE' and writes > 0)",
                message="request {number} of broker {broker} was refused and wrote a record",
                broker="src",
                number="id",
            ),
            Check(
                group="replicas",
                when="kind = 'isr_revert' and error is not null",
                bad="error not in ('INELIGIBLE_REPLICA', 'OPERATION_NOT_ATTEMPTED')",
                message="leader {broker} went back to ISR {new} on another error (event {number})",
                offset="log_offset",
                broker="broker",
                new="isr",
                number="seq",
            ),
        ),
    ),
    Rule(
        id="B1",
        title="Leaders replicate to everyone who may be elected",
        statement="The committed ISR is within the maximal ISR of the leader of that epoch; with "
        "no change under way the two ISRs of a leader are one.",
        source="KIP-497; Partition.scala PartitionState.maximalIsr",
        evidence=Evidence.TRACE,
        tables=("partition_event", "raft_event"),
        checks=(
            Check(
                group="quorums",
                when="kind <> 'commit' and controller.le = le and controller.leader = leader",
                bad="size(array_except(controller.isr, maximal_isr)) > 0",
                message="leader {broker} counts on {new} (event {number}) while the controller's "
                "ISR is {old}",
                offset="controller.offset",
                broker="broker",
                old="controller.isr",
                new="maximal_isr",
                number="seq",
            ),
            Check(
                group="quorums",
                when="kind = 'commit' and replica.le = le and replica.broker = leader",
                counts=False,
                bad="size(array_except(isr, replica.maximal)) > 0",
                message="the controller committed ISR {new} while leader {broker} counts on {old}",
                broker="leader",
                old="replica.maximal",
                new="isr",
            ),
            Check(
                group="quorums",
                when="kind in ('become_leader', 'isr_commit', 'isr_revert')",
                counts=False,
                bad="array_sort(isr) <> array_sort(maximal_isr)",
                message="leader {broker} has no change under way, but ISR {old} and maximal ISR "
                "{new} (event {number})",
                broker="broker",
                old="isr",
                new="maximal_isr",
                number="seq",
            ),
        ),
    ),
    Rule(
        id="B2",
        title="The high watermark waits for the maximal ISR",
        statement="A leader's high watermark moves only over offsets that every member of its "
        "maximal ISR is known, in this leader epoch, to hold.",
        source="KIP-497, KIP-101; Partition.maybeIncrementLeaderHW",
        evidence=Evidence.TRACE,
        tables=("partition_event",),
        checks=(
            Check(
                group="replicas",
                when="kind = 'hw' and maximal_isr is not null and follower_leos is not null",
                bad=f"leo < hw_new or exists(others, m -> {LEO} < hw_new "
                f"or {EPOCH_OF_LEO} <> leader_epoch)",
                message="leader {broker} moved its high watermark to {number} before all of {new} "
                "were known to be there",
                offset="log_offset",
                broker="broker",
                new="maximal_isr",
                number="hw_new",
            ),
        ),
    ),
    Rule(
        id="B4",
        title="An accepted AlterPartition names what stands",
        statement="It comes from the current leader, with the leader epoch, partition epoch and "
        "broker epoch that stood just before its record.",
        source="KIP-497; ReplicationControlManager.validateAlterPartitionData",
        evidence=Evidence.TRACE,
        tables=("rpc",),
        checks=(
            Check(
                group="proposals",
                when=f"{_ACCEPTED} and written is not null",
                bad="partition_epoch <> p_pe or leader_epoch <> p_le or src <> p_leader "
                "or coalesce(broker_epoch >= 0 and broker_epoch <> registered_epoch, false)",
                message="request {number} of broker {broker} was accepted with another leader, "
                "epoch or partition epoch than stood",
                broker="src",
                number="id",
            ),
        ),
    ),
    Rule(
        id="C6",
        title="Only the leader ends a recovery",
        statement="RECOVERING turns into RECOVERED only by an AlterPartition of the leader.",
        source="KIP-704; ReplicationControlManager.alterPartition",
        evidence=Evidence.TRACE,
        tables=("rpc",),
        checks=(
            Check(
                group="recoveries",
                when="true",
                bad="case when api is null then open is null "
                "else not (api = 'AlterPartition' and src = p_leader) end",
                message="the recovery of leader {broker} was ended by something else than its "
                "AlterPartition",
                broker="p_leader",
            ),
        ),
    ),
    Rule(
        id="D3",
        title="A stale broker epoch is refused",
        statement="A request with another broker epoch than the registered one is answered "
        "STALE_BROKER_EPOCH and writes nothing.",
        source="KIP-589, KIP-380; ClusterControlManager.checkBrokerEpoch",
        evidence=Evidence.TRACE,
        tables=("rpc",),
        checks=(
            Check(
                group="requests",
                when=f"api in ({_BROKER_SCOPED}) and resp_seq is not null and broker_epoch >= 0 "
                "and broker_epoch <> registered_epoch",
                bad="size(records_written) > 0 "
                "or error not in ('STALE_BROKER_EPOCH', 'NOT_CONTROLLER', 'REQUEST_TIMED_OUT')",
                message="request {number} of broker {broker} carried a stale broker epoch and was "
                "not refused for it",
                broker="src",
                number="id",
            ),
        ),
    ),
    Rule(
        id="E24",
        title="Unfenced only when caught up",
        statement="A broker is unfenced by its own heartbeat, which says that it has applied its "
        "registration.",
        source="KIP-631; BrokerHeartbeatManager.calculateNextBrokerState",
        evidence=Evidence.TRACE,
        tables=("rpc",),
        checks=(
            Check(
                group="unfencings",
                when="true",
                bad="api <> 'BrokerHeartbeat' or src <> broker or caught_up_to < registered_at",
                message="broker {broker} was unfenced having applied the log to {number} only, or "
                "not by its own heartbeat",
                broker="broker",
                number="caught_up_to",
            ),
        ),
    ),
    Rule(
        id="E32",
        title="Published images are folds of the log",
        statement="The image that a node publishes at an offset is the fold of the committed log "
        "up to there.",
        source="KIP-631; MetadataLoader",
        evidence=Evidence.IMAGES,
        tables=("publish",),
        checks=(
            Check(
                group="publications",
                when="hash is not null and image_hash is not null",
                bad="image_hash <> hash",
                message="node {broker} published another image than the log makes (event {number})",
                broker="node",
                number="seq",
            ),
        ),
    ),
    Rule(
        id="E33",
        title="Publishing moves forward over committed batches",
        statement="Per incarnation, images are published in order, at batch ends, never past the "
        "high watermark, never inside a transaction, never empty.",
        source="KAFKA-15389, KAFKA-17713; MetadataLoader.maybePublishMetadata",
        evidence=Evidence.IMAGES,
        tables=("publish", "raft_event"),
        checks=(
            Check(
                group="publications",
                when="true",
                bad="offset < p_offset",
                message="node {broker} published an older image than before (event {number})",
                broker="node",
                number="seq",
            ),
            Check(
                group="publications",
                when="offset >= first_image",
                counts=False,
                bad="not aligned",
                message="node {broker} published at an offset that ends no committed batch "
                "(event {number})",
                broker="node",
                number="seq",
            ),
            Check(
                group="publications",
                when="high_watermark is not null",
                counts=False,
                bad="offset >= high_watermark",
                message="node {broker} published past the high watermark {number}",
                broker="node",
                number="high_watermark",
            ),
            Check(
                group="publications",
                when="true",
                counts=False,
                bad="offset < 0 or in_tx or (aligned and hash is null and offset >= first_image) "
                f"or coalesce(image_hash = '{_EMPTY}', false)",
                message="node {broker} published an empty image or one inside a transaction "
                "(event {number})",
                broker="node",
                number="seq",
            ),
        ),
    ),
    Rule(
        id="E40",
        title="Answers leave after the commit",
        statement="A successful answer is sent only once the records that it wrote are committed.",
        source="KIP-631, KIP-595; QuorumController.ControllerWriteEvent",
        evidence=Evidence.TRACE,
        tables=("rpc",),
        checks=(
            Check(
                group="requests",
                when="resp_seq is not null and error = 'NONE' and size(records_written) > 0 "
                "and high_watermark is not null",
                bad="offset >= high_watermark",
                message="request {number} was answered before its last record was committed",
                broker="src",
                number="id",
            ),
        ),
    ),
    Rule(
        id="F5",
        title="What is committed is not truncated",
        statement="No replica truncates below the highest high watermark of its partition, but "
        "after an unclean election; one whose records are all older than that high watermark's "
        "epoch may hold others there, and does not truncate below its own.",
        source="KIP-101, KIP-279; AbstractFetcherThread.truncate",
        evidence=Evidence.TRACE,
        tables=("partition_event",),
        checks=(
            Check(
                group="replicas",
                when="kind = 'truncate' "
                "and (unclean_from is null or coalesce(leader_epoch < unclean_from, false))",
                bad="offset < case when coalesce(log_epoch < hw_epoch, false) "
                "then coalesce(own_hw, 0) else true_hw end",
                message="broker {broker} truncated below the high watermark {number}",
                offset="log_offset",
                broker="broker",
                number="true_hw",
            ),
        ),
    ),
    Rule(
        id="F8",
        title="acks=all means everybody",
        statement="When a produce with acks=all is answered, every member of the maximal ISR has "
        "it, and they are at least min.insync.replicas.",
        source="KIP-497; Partition.checkEnoughReplicasReachOffset",
        evidence=Evidence.TRACE,
        tables=("partition_event",),
        checks=(
            Check(
                group="replicas",
                when="kind = 'ack' and maximal_isr is not null and follower_leos is not null",
                bad=f"leo <= offset or exists(others, m -> {LEO} <= offset) "
                "or size(maximal_isr) < coalesce(min_isr, 1)",
                message="leader {broker} acknowledged offset {number} before all of {new} had it, "
                "or with fewer than min.insync.replicas",
                offset="log_offset",
                broker="broker",
                new="maximal_isr",
                number="offset",
            ),
        ),
    ),
    Rule(
        id="E34",
        title="Snapshots are folds of the log",
        statement="A snapshot ends (exclusive) where a committed batch does, carries the epoch of "
        "its last record, and holds what the log makes of that prefix.",
        source="KIP-630, KAFKA-14618, KAFKA-17713; SnapshotGenerator",
        evidence=Evidence.IMAGES,
        tables=("publish",),
        checks=(
            Check(
                group="snapshots",
                when="true",
                bad="not coalesce(hash = expected_hash and epoch = expected_epoch, false)",
                message="the snapshot of controller {broker} that ends at {offset} is not what the "
                "log makes of that prefix",
                broker="node",
            ),
        ),
    ),
    Rule(
        id="E35",
        title="A snapshot and the rest make the whole",
        statement="A node that has loaded a snapshot publishes from then on what the whole log "
        "makes.",
        source="KIP-630, KAFKA-13357, KAFKA-16892; MetadataLoader.handleLoadSnapshot",
        evidence=Evidence.IMAGES,
        tables=("publish",),
        checks=(
            Check(
                group="publications",
                when="after_snapshot and hash is not null and image_hash is not null",
                bad="image_hash <> hash",
                message="node {broker}, which began from a snapshot, published another image than "
                "the log makes (event {number})",
                broker="node",
                number="seq",
            ),
        ),
    ),
    Rule(
        id="E41",
        title="Indexes are what the image makes of them",
        statement="Where a run ends, what a controller derives from its image (who is in which "
        "ISR, who leads nothing, …) equals what is worked out anew.",
        source="ReplicationControlManager (BrokersToIsrs); 4.3 breaks it twice",
        evidence=Evidence.META,
        checks=(
            Check(
                group="header",
                when="stale_indexes is not null",
                bad="size(stale_indexes) > 0",
                message="the indexes of controllers {new} are not those of their images",
                new="stale_indexes",
            ),
        ),
    ),
    Rule(
        id="E42",
        title="Nothing is ever raised",
        statement="No machine raises anything but a protocol error, whatever it is told.",
        source="design of this project; Kafka's own faults are FaultHandler.handleFault",
        evidence=Evidence.META,
        checks=(
            Check(
                group="header",
                when="crashes is not null",
                bad="crashes > 0",
                message="{number} actors crashed",
                number="crashes",
            ),
        ),
    ),
    Rule(
        id="X1",
        title="The same seed gives the same run",
        statement="A run that was repeated from its seed left the same trace hash.",
        source="design of this project",
        evidence=Evidence.META,
        checks=(
            Check(
                group="header",
                when="trace_hash is not null and repeat_trace_hash is not null",
                bad="trace_hash <> repeat_trace_hash",
                message="the run was repeated and left another trace",
            ),
        ),
    ),
)
