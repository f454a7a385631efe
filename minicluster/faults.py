"""Planted faults: the zoo switches that a check must catch, all off by default.

A machine gets a ``Faults`` value beside its ``Rules``. A fault replaces one step of a rule; where a
switch changes the outcome, the machine returns ``effects.FaultHit``.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import field, fields
from typing import ClassVar

from minicluster.errors import UserError
from minicluster.values import dataclass, replace

NO_FAULT = "is not a planted fault; see minicluster list faults"


def _switch(zoo_id: str, text: str) -> bool:
    return field(default=False, metadata={"zoo": zoo_id, "text": text})


@dataclass(frozen=True, slots=True, kw_only=True)
class Faults:
    """The faults that are planted in a run, by the ids of the zoo.

    Errors:  ``of`` raises UserError for an id that is not a switch.
    """

    NONE: ClassVar[Faults]

    z01_no_eligibility_check: bool = _switch(
        "Z01", "the controller accepts fenced and shutting-down replicas into an ISR"
    )
    z05_fenced_replicas_in_new_isr: bool = _switch(
        "Z05", "a new partition's ISR holds fenced replicas"
    )
    z03_no_broker_epochs: bool = _switch(
        "Z03", "the controller takes ISR members of a broker epoch that is gone"
    )
    z06_new_incarnation_stays: bool = _switch(
        "Z06", "a new incarnation of a broker stays in ISRs and keeps its leaderships"
    )
    z11_amending_bumps_epoch: bool = _switch(
        "Z11", "the same incarnation that registers again gets another broker epoch"
    )
    z12_amending_unfences: bool = _switch(
        "Z12", "the same incarnation that registers again is neither fenced nor shutting down"
    )
    z23_deletion_in_pieces: bool = _switch(
        "Z23", "the topics of one request are deleted one by one, each in a batch of its own"
    )
    z41_removed_replica_stays_in_isr: bool = _switch(
        "Z41", "a reassignment that is done leaves the replica that it removes in the ISR"
    )
    z47_preferred_is_unclean: bool = _switch(
        "Z47", "a preferred election elects a replica that is not in sync"
    )
    s02_isr_becomes_empty: bool = _switch(
        "S02", "the last member leaves the ISR although eligible leader replicas are off"
    )
    s04_stale_partition_epoch: bool = _switch(
        "S04", "an AlterPartition of an older partition epoch is accepted"
    )
    s05_stale_leader_epoch: bool = _switch(
        "S05", "an AlterPartition of an older leader epoch is accepted"
    )
    s06_anyone_alters: bool = _switch(
        "S06", "an AlterPartition of a broker that does not lead is accepted"
    )
    s10_unclean_without_need: bool = _switch(
        "S10", "a replica from outside the ISR is elected although a member is alive"
    )
    s15_stale_heartbeat_counts: bool = _switch(
        "S15", "a heartbeat of an older broker epoch is taken for one of the current"
    )
    s16_fenced_under_old_epoch: bool = _switch(
        "S16", "the session of an incarnation that is gone fences the next, under the old epoch"
    )
    s17_shutdown_keeps_leaderships: bool = _switch(
        "S17", "a broker in controlled shutdown stays leader and in ISRs"
    )
    s27_topic_id_reused: bool = _switch(
        "S27", "a topic that is made again under its name gets its old id"
    )
    s29_heartbeat_changes_nothing: bool = _switch(
        "S29", "each heartbeat of a leader writes a partition change that changes nothing"
    )
    s33_offline_leader_stays: bool = _switch(
        "S33", "the loss of a log directory is ignored where it holds a leader"
    )
    s37_every_restart_is_clean: bool = _switch(
        "S37", "a broker that lost its log stays eligible, as if it had been shut down in order"
    )
    s38_old_broker_epoch: bool = _switch(
        "S38", "a new incarnation gets the broker epoch of the one before"
    )
    s03_leader_epoch_unchanged: bool = _switch(
        "S03", "brokers use the first leader epoch for every leader"
    )
    z09_metadata_stops_at_shutdown: bool = _switch(
        "Z09", "a broker that is shutting down ignores metadata"
    )
    z02_no_local_eligibility_check: bool = _switch(
        "Z02", "a leader proposes replicas that its image calls fenced, shutting down or restarted"
    )
    z04_eligibility_read_twice: bool = _switch(
        "Z04", "a leader proposes a restarted replica for what it held before it restarted"
    )
    z15_older_partition_epoch_applied: bool = _switch(
        "Z15", "a broker applies metadata of an older partition epoch"
    )
    z17_pending_cleared_by_old_metadata: bool = _switch(
        "Z17", "metadata that should be ignored clears a leader's pending ISR change"
    )
    z18_hw_waits_after_shrink: bool = _switch(
        "Z18", "a leader does not advance its high watermark after a committed shrink"
    )
    z40_hw_moves_under_min_isr: bool = _switch(
        "Z40", "the high watermark moves while the ISR is below min.insync.replicas"
    )
    s09_expand_while_recovering: bool = _switch(
        "S09", "a recovering partition's ISR may grow before it has recovered"
    )
    s11_shrink_applied_early: bool = _switch(
        "S11", "a leader applies an ISR shrink before it is committed"
    )
    s12_hw_ignores_joining_replica: bool = _switch(
        "S12", "the high watermark does not wait for a replica that is proposed for the ISR"
    )
    s13_stale_acks_count: bool = _switch(
        "S13", "a new leader counts what followers held when it led before"
    )
    s26_respond_before_commit: bool = _switch(
        "S26", "the controller responds before its records are committed"
    )
    s31_reads_above_hw: bool = _switch("S31", "consumers read above the high watermark")
    s32_acks_all_at_once: bool = _switch(
        "S32", "acks=all is acknowledged when the leader alone has appended"
    )
    s34_repeats_are_appended: bool = _switch(
        "S34", "a batch that an idempotent producer repeats is appended again"
    )
    z08_demotion_ignored: bool = _switch(
        "Z08", "a broker that is shutting down leads partitions that it should follow"
    )
    z14_failed_log_made_anew: bool = _switch(
        "Z14", "a replica whose directory failed is created again, empty, in another directory"
    )
    z36_truncates_without_epoch_request: bool = _switch(
        "Z36", "a follower takes the end of an epoch that it never had for the point of divergence"
    )
    z38_fetches_are_not_fenced: bool = _switch(
        "Z38", "a leader serves fetches that carry another leader epoch"
    )
    z44_old_log_of_new_topic: bool = _switch(
        "Z44", "a topic that is made again under its name finds the old topic's log"
    )
    z45_live_logs_are_strays: bool = _switch(
        "Z45", "a broker that starts deletes the logs that it should keep"
    )
    s30_truncates_below_hw: bool = _switch(
        "S30", "a follower of a new leader first truncates its log below the high watermark"
    )
    z48_position_out_of_range: bool = _switch(
        "Z48", "a leader calls a position above its high watermark out of range"
    )
    s41_reads_open_transactions: bool = _switch(
        "S41", "consumers with read_committed read to the high watermark"
    )
    s42_no_aborted_transactions: bool = _switch("S42", "no response names an aborted transaction")
    s43_committed_called_aborted: bool = _switch(
        "S43", "a response names committed transactions among the aborted ones"
    )
    s44_stable_above_hw: bool = _switch(
        "S44", "the last stable offset goes to the log end, above the high watermark"
    )
    s45_marker_inverted: bool = _switch(
        "S45", "a leader writes an abort marker where a commit was decided, and the other way round"
    )
    s46_marker_left_out: bool = _switch(
        "S46", "a leader acknowledges a marker that it has not appended"
    )
    s47_fenced_producer_writes: bool = _switch(
        "S47", "a leader appends what a fenced producer sends, without a verification"
    )
    s48_index_lost: bool = _switch("S48", "a new leader has no index of aborted transactions")
    s49_skips_a_batch: bool = _switch(
        "S49", "a response to a consumer begins with the second batch of several"
    )
    s51_commit_forgotten: bool = _switch(
        "S51", "a group coordinator acknowledges a commit that it has not written"
    )
    s52_two_owners: bool = _switch(
        "S52", "a group coordinator gives all members the assignment of the first one"
    )
    s55_failed_directory_serves: bool = _switch(
        "S55", "a broker continues with the replicas of a directory that has failed, unreported"
    )
    s56_sent_counts_as_held: bool = _switch(
        "S56", "a leader counts what it sends to a follower as held by it"
    )
    s57_shutdown_never_granted: bool = _switch(
        "S57", "the controller takes each replica of a broker that shuts down for a leadership"
    )
    s58_member_without_partitions: bool = _switch(
        "S58", "a group coordinator leaves the first of several members without its partitions"
    )
    s59_unflushed_counts: bool = _switch(
        "S59", "a leader of the quorum counts what it has appended and not flushed"
    )
    s60_snapshot_has_time_of_writing: bool = _switch(
        "S60", "a snapshot's header has the time of its writing, not that of its last batch"
    )
    s61_partition_epoch_stays: bool = _switch(
        "S61", "a leader passes over what the controller changes within its leader epoch"
    )
    s62_acknowledged_with_the_next: bool = _switch(
        "S62", "a record is acknowledged once the next one is committed, however late"
    )
    s63_published_with_the_next: bool = _switch(
        "S63", "a broker publishes a change with the next delivery, however late"
    )
    s64_response_alone_ends_pending: bool = _switch(
        "S64", "a leader's ISR change ends with its response alone, not with metadata"
    )
    s65_hw_is_last_offset: bool = _switch(
        "S65", "the high watermark is the last offset that all hold, not the one after it"
    )
    s66_in_sync_above_epoch_start: bool = _switch(
        "S66", "a replica joins the ISR only with a record of the leader's own epoch"
    )
    s67_unfencing_elects_nobody: bool = _switch(
        "S67", "a broker that is unfenced is not elected where no leader is left"
    )
    s68_candidate_stays_fenced: bool = _switch(
        "S68", "a broker that is fenced and could lead a partition is not unfenced"
    )
    s70_reassignment_stays: bool = _switch(
        "S70", "an ISR that a reassignment waited for does not complete it"
    )
    s71_idle_followers_leave: bool = _switch(
        "S71", "a leader removes followers from the ISR of a partition to which nothing is written"
    )
    s72_configs_outlive_topic: bool = _switch(
        "S72", "a controller keeps the configs of a deleted topic, in its image and its snapshots"
    )
    s73_committed_times_out: bool = _switch(
        "S73", "a Produce waits for its timeout, though its records are committed"
    )
    s74_appends_nothing: bool = _switch(
        "S74",
        "a leader acknowledges by its sequence what comes to an empty log, and appends nothing",
    )
    s54_offset_of_transaction_forgotten: bool = _switch(
        "S54", "the coordinator of a group accepts the offsets of transactions and writes none"
    )
    s53_offset_too_high: bool = _switch(
        "S53", "a group coordinator gives a committed offset that is one too high"
    )

    z24_snapshot_without_configs: bool = _switch(
        "Z24", "a snapshot leaves out one type of record: the configs"
    )
    z25_snapshot_without_producer_ids: bool = _switch(
        "Z25", "a snapshot leaves out the next producer id"
    )
    z42_short_lived_topic_stays: bool = _switch(
        "Z42", "a topic that is made and deleted in one delivery of metadata stays in the image"
    )
    z50_empty_image_first: bool = _switch(
        "Z50", "a node publishes an empty image before it has seen a record"
    )
    z43_snapshot_deletes_nothing: bool = _switch(
        "Z43", "a broker that loads a snapshot keeps the topics that the snapshot lacks"
    )
    s18_publishes_uncommitted: bool = _switch(
        "S18", "an observer passes on what it has fetched, committed or not"
    )
    s19_recovery_state_is_not_published: bool = _switch(
        "S19", "a publisher skips one field: the leader recovery state of partition changes"
    )
    s20_snapshot_resets_partition_epochs: bool = _switch(
        "S20", "a snapshot has every partition in its first partition epoch"
    )
    s21_replays_once_too_often: bool = _switch(
        "S21", "after a snapshot, the first partition change of the tail is replayed twice"
    )
    s25_deposed_does_not_revert: bool = _switch(
        "S25", "a controller that is deposed keeps what it decided and could not commit"
    )

    z32_leader_resumes_epoch: bool = _switch(
        "Z32", "a controller that led when it stopped leads the same epoch again"
    )
    z34_no_check_quorum: bool = _switch(
        "Z34", "a leader from which no majority fetches does not resign"
    )
    s22_vote_not_persisted: bool = _switch("S22", "a vote is not written to quorum-state")
    s23_vote_for_shorter_log: bool = _switch(
        "S23", "a voter votes for a candidate whose log is shorter than its own"
    )
    s24_commits_below_majority: bool = _switch(
        "S24", "the quorum's high watermark needs one voter less than a majority"
    )

    s80_denials_ignored: bool = _switch(
        "S80", "a node's authorizer looks at no ACL that denies something"
    )
    s81_revocations_unseen: bool = _switch(
        "S81", "a node's authorizer adds the ACLs of each image, and takes none away"
    )
    s82_prefixes_unseen: bool = _switch(
        "S82", "a node's authorizer takes a prefixed ACL for one of a name"
    )
    s83_session_without_end: bool = _switch(
        "S83", "a listener takes requests of a session that has ended"
    )
    s84_secrets_recorded: bool = _switch(
        "S84", "the record of a run keeps the HMACs, passwords and logins of its messages"
    )
    z51_topic_id_overwritten: bool = _switch(
        "Z51", "on ZooKeeper: a new controller gives every topic another id (KAFKA-14190)"
    )
    y01_epoch_unchecked: bool = _switch(
        "Y01", "on ZooKeeper: the controller writes without a check of its epoch"
    )
    y02_version_unchecked: bool = _switch(
        "Y02", "on ZooKeeper: the controller writes states whatever their version"
    )
    y03_dead_members_accepted: bool = _switch(
        "Y03", "on ZooKeeper: the controller accepts dead members into an ISR"
    )
    y04_notification_lost: bool = _switch(
        "Y04", "on ZooKeeper below IBP 2.7-IV2: no ISR change is notified of"
    )
    y05_leader_write_unguarded: bool = _switch(
        "Y05", "on ZooKeeper below IBP 2.7-IV2: a leader writes its ISR whatever the version"
    )
    y06_last_member_leaves: bool = _switch("Y06", "on ZooKeeper: the last member leaves the ISR")
    y07_reassignment_ends_early: bool = _switch(
        "Y07", "on ZooKeeper: a reassignment ends before its replicas are in sync"
    )
    y08_unclean_without_need: bool = _switch(
        "Y08", "on ZooKeeper: a replica from outside the ISR is elected though a member is alive"
    )

    @classmethod
    def switches(cls) -> dict[str, str]:
        """The field name of each zoo id, in order of declaration."""
        return {f.metadata["zoo"]: f.name for f in fields(cls)}

    @classmethod
    def of(cls, ids: Iterable[str]) -> Faults:
        """Turn on the faults with these zoo ids.

        Errors:  UserError for an id that no switch has.
        """
        names, known = {}, cls.switches()
        for zoo_id in ids:
            if zoo_id not in known:
                raise UserError(f"faults: {zoo_id!r} {NO_FAULT}")
            names[known[zoo_id]] = True
        return replace(cls.NONE, **names) if names else cls.NONE

    @property
    def is_any_on(self) -> bool:
        """False where no fault is on; every step of a rule looks at this first."""
        return self is not Faults.NONE

    @property
    def on(self) -> tuple[str, ...]:
        """The zoo ids of the faults that are on."""
        return tuple(f.metadata["zoo"] for f in fields(self) if getattr(self, f.name))


Faults.NONE = Faults()
