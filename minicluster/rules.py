"""The release of Kafka: every difference and every known bug is one named field.

No rule anywhere compares release numbers; it reads a field of this value. The comments above the
fields are the text of docs/reference/rules.md, ``-- so --`` its headings. Each field needs a test.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import field, fields
from enum import StrEnum
from typing import ClassVar

from minicluster.errors import UserError
from minicluster.values import dataclass, replace


class FailedReplicas(StrEnum):
    """The report to the controller of replicas whose log directory has failed."""

    HEARTBEAT = "heartbeat"
    """KIP-858: directories in heartbeats; not before metadata.version 3.7-IV2."""
    ALTER_REPLICA_STATE = "alter_replica_state"
    """KIP-589, which never shipped: AlterReplicaState names the replicas, at any version."""


class IsrChanges(StrEnum):
    """By which request a leader changes its ISR."""

    ALTER_PARTITION = "alter_partition"
    ALTER_ISR_OF_KIP_497 = "alter_isr_of_kip_497"
    """A response on receipt, the decision afterwards; the outcome comes with the metadata."""
    ALTER_ISR_OF_KIP_704 = "alter_isr_of_kip_704"
    """A response like AlterPartition v1, with an unclean flag instead of a recovery state."""


class UncleanRecovery(StrEnum):
    """The recovery of a leader that was elected uncleanly."""

    AT_ONCE = "at_once"
    """As shipped: it is recovered at once, and its next ISR change carries that."""
    REPORTED = "reported"
    """KIP-704's text: it stays RECOVERING until it has recovered, and reports that by itself."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """One release's rules. The defaults are those of Kafka 4.3.

    Shapes:  a comment above a field has its meaning and its source; ``bug`` marks a bug of Kafka.
    """

    KAFKA_4_3: ClassVar[Rules]
    KAFKA_3_9: ClassVar[Rules]

    name: str = "kafka-4.3"

    # -- Releases: the metadata --
    # Levels of metadata.version that a node reads, formats with, and supports (MetadataVersion).
    metadata_version_lowest: int = 7
    metadata_version_production: int = 30
    metadata_version_latest: int = 31
    # The first of them whose records have eligible leader replicas: 4.0-IV1 (4.x), or 4.0-IV0,
    # which is for tests only there (3.9; MetadataVersion.isElrSupported).
    metadata_version_with_elr: int = 23
    # ZkMigrationStateRecord ends the features of a snapshot and the bootstrap records (3.9).
    zk_migration_state_is_written: bool = False
    # A cluster that starts with ELR first fixes the cluster's min.insync.replicas (4.x).
    elr_starts_with_cluster_min_isr: bool = True
    # The metadata loader publishes after any snapshot (3.9), or only after a record (4.x).
    empty_snapshot_counts_as_record: bool = False
    # Before a record sets it, metadata.version is the first level (3.9), or reading it is an error
    # and nothing is published (4.x).
    metadata_version_is_assumed: bool = False
    # Bootstrap records go into any log without a metadata.version (4.x), or an empty one (3.9).
    bootstraps_log_without_metadata_version: bool = True

    # -- Releases: brokers, controllers, replicas --
    # A failed registration or heartbeat is tried again after a growing back-off (3.9), or after
    # the heartbeat interval (4.x; BrokerLifecycleManager).
    broker_retry_backs_off: bool = False
    # Brokers offer only the versions of requests that KIP-896 kept (4.x).
    drops_old_request_versions: bool = True

    # Sessions count by (broker, epoch) from the heartbeat's arrival on (4.x), or
    # are those of the unfenced brokers (3.9; BrokerHeartbeatTracker).
    sessions_by_epoch: bool = True
    # Cleaning up after a new incarnation and registering it is one batch (3.9).
    register_broker_is_atomic: bool = False
    # A new incarnation leaves the ISRs and leaderships of its predecessor (4.x; KAFKA-18106), or
    # only where the metadata.version has eligible leader replicas (3.9).
    new_incarnation_leaves_isr: bool = True
    # While ELRs are on, another min.insync.replicas clears them, and single brokers may not set it
    # nor the cluster delete it (4.x).
    min_isr_clears_elr: bool = True
    # The last known leader is written when the ISR becomes empty and removed when it has a member
    # again (3.9), or written when the leadership ends and removed when the next leader is elected
    # (4.x; KAFKA-19522).
    last_known_leader_goes_with_isr: bool = False
    # PreviousBrokerEpoch marks a clean restart (4.x; KIP-966).
    previous_broker_epoch_counts: bool = True
    # A broker without metadata.version is rejected (4.x), or has the first level (3.9).
    registration_needs_metadata_version: bool = True
    # Background tasks run at fixed periods (4.x), or when there is something to do (3.9).
    tasks_are_periodic: bool = True
    # A background task that fails brings the controller down (3.9).
    failed_task_renounces: bool = False
    # All replicas of the target must be in the ISR to complete a reassignment (3.9; KAFKA-19073).
    reassignment_needs_all_replicas: bool = False
    # The longest value of a config; 0: no limit (3.9).
    config_value_length_max: int = 32_767
    # The placer's errors mention cordoned log directories (4.3).
    placement_errors_mention_cordoned: bool = True
    # A broker rejects a cordoned.log.dirs that names directories which it does not have (4.3).
    cordoned_dirs_must_exist: bool = True
    # The refusal of a second incarnation explains how it resolves itself (4.x).
    duplicate_registration_message_has_advice: bool = True
    # UpdateFeatures raises kraft.version as well, once every voter's directory is known (4.x).
    kraft_version_can_rise: bool = True
    # Nodes offer levels of group.version, transaction.version, share.version, streams.version and
    # eligible.leader.replicas.version (4.x), or of transaction.version among the unstable ones
    # (3.9; QuorumFeatures.defaultFeatureMap).
    features_of_4_0_are_offered: bool = True
    # UpdateFeatures changes all its features or none (4.0, KIP-1022), or each for itself (3.9).
    features_change_together: bool = True
    # A registered controller may have configs of its own (4.x), or a static voter only (3.9).
    registered_controllers_have_configs: bool = True
    # UpdateFeatures rejects level 0 of a feature without a name in Kafka (4.x), or writes it (3.9).
    unknown_features_are_rejected: bool = True
    # Groups have dynamic configs (4.x), or are an unknown kind of resource (3.9).
    groups_have_configs: bool = True
    # A controller's registration has what it reports of a migration from ZooKeeper (3.9).
    zk_migration_ready_is_kept: bool = False
    # The lowest AlterPartition version that a controller takes.
    alter_partition_version_lowest: int = 2

    # A read begins at the base offset of the batch that holds the offset, which becomes the
    # follower's log end (4.x), or at the offset itself (3.9; LogSegment.read).
    read_finds_batch_base: bool = True
    # Proposals wait by topic id (4.x), or by topic name (3.9; AlterPartitionManager).
    proposals_wait_by_topic_id: bool = True
    # A ListOffsets response has the order of a Scala map (4.x), or that of the request (3.9;
    # ReplicaManager.fetchOffset).
    list_offsets_in_hash_order: bool = True
    # A pending transition of a transaction is looked at before the producer of AddPartitionsToTxn
    # (4.x), or after it (3.9; TransactionCoordinator.handleAddPartitionsToTransaction).
    pending_transition_comes_first: bool = True
    # The partitions of a produce are known by topic id and name (4.x), or by name (3.9;
    # KafkaApis.handleProduceRequest). The order in its response depends on that.
    produce_by_topic_id: bool = True

    # -- Where Kafka differs from the texts of its KIPs --
    # The report of replicas in a failed log directory: the directory in heartbeats (KIP-858), or
    # KIP-589's AlterReplicaState.
    failed_replicas_reported_by: FailedReplicas = FailedReplicas.HEARTBEAT
    # The request that changes an ISR: AlterPartition, or AlterIsr of KIP-497's or KIP-704's text.
    isr_changes_by: IsrChanges = IsrChanges.ALTER_PARTITION
    # A leader that was elected uncleanly is recovered at once, or it aborts the transactions that
    # the election left open, adds no replica to the ISR and reports (KIP-704).
    unclean_leader_recovers: UncleanRecovery = UncleanRecovery.AT_ONCE
    # KIP-497: the ISR changes of one Fetch leave in one request. As shipped the first leaves alone,
    # at once, and the others after its response.
    isr_changes_of_one_fetch_leave_together: bool = False
    # KIP-841: no fenced or stopping replica is in any ISR. As shipped the last member stays, since
    # without it only an unclean election could bring the partition back.
    allow_empty_isr_without_elr: bool = False
    # KIP-841: one ineligible member rejects the request. As shipped, its partition only.
    ineligible_member_refuses_all_partitions: bool = False
    # KIP-841: NEW_LEADER_ELECTED means that a reassignment has ended without the leader. As
    # shipped, it means that the change names another leader, for any reason.
    new_leader_elected_by_reassignment_only: bool = False
    # KIP-841: a registration ends controlled shutdown. As shipped, only that of a new incarnation;
    # the same incarnation keeps the state.
    amend_ends_controlled_shutdown: bool = False

    # -- Bugs that stay on, because others can see them on the wire --
    # A fenced broker with a recent heartbeat keeps out its next incarnation.
    fenced_broker_holds_session: bool = field(default=True, metadata={"bug": True})
    # Registering again under the same incarnation forgets the cordoned directories.
    amend_forgets_cordoned_dirs: bool = field(default=True, metadata={"bug": True})
    # The session of a fenced broker also expires, and fences it once more.
    fenced_broker_is_fenced_again: bool = field(default=True, metadata={"bug": True})
    # A leader that learns late of a failed log directory can have the replica in the ISR once more,
    # until it lags: the controller looks at directories only when they fail.
    replica_in_failed_dir_may_join: bool = field(default=True, metadata={"bug": True})
    # An unregistered broker enters or stays in ELRs.
    unregistered_broker_stays_in_elr: bool = field(default=True, metadata={"bug": True})

    # -- Bugs that are fixed --
    # Records after an AbortTransaction in one delivery bring the aborted ones back
    # (MetadataBatchLoader.replay).
    aborted_transaction_leaks: bool = field(default=False, metadata={"bug": True})
    # Snapshots leave out ELRs that outlived the feature, so loading one is not what was saved.
    snapshot_omits_elr_when_off: bool = field(default=False, metadata={"bug": True})
    # ClearElr on a partition with an empty ISR leaves no clean candidate.
    clear_elr_ignores_empty_isr: bool = field(default=False, metadata={"bug": True, "zoo": "Z54"})
    # Applying ClearElr leaves the index of ELRs as it was.
    clear_elr_skips_index: bool = field(default=False, metadata={"bug": True, "zoo": "Z52"})
    # Removing a topic skips the directory index of partitions whose ISR is empty.
    removed_topic_stays_in_directory_index: bool = field(
        default=False, metadata={"bug": True, "zoo": "Z53"}
    )
    # The last known leader is elected dead or alive (3.9; KAFKA-19522).
    fenced_last_known_leader_is_elected: bool = field(
        default=False, metadata={"bug": True, "release": "kafka-3.9", "zoo": "Z07"}
    )
    # A broker that names the directory of a replica empties the partition's ELR (3.9).
    assigned_directory_empties_elr: bool = field(
        default=False, metadata={"bug": True, "release": "kafka-3.9"}
    )
    # UpdateFeatures writes a level of kraft.version that no quorum has taken (3.9;
    # FeatureControlManager.updateFeature).
    kraft_version_is_written_as_level: bool = field(
        default=False, metadata={"bug": True, "release": "kafka-3.9"}
    )
    # The controller on ZooKeeper sends a state again whose response was lost. It does not recognize
    # its own write, and its refusal leaves the leader pending until the next leader epoch (3.9).
    own_state_write_is_refused: bool = field(
        default=False, metadata={"bug": True, "release": "kafka-3.9"}
    )
    # The last known leader can be none.
    last_known_leader_may_be_none: bool = field(default=False, metadata={"bug": True, "zoo": "Z55"})
    # Eligible leader replicas are turned on while a partition has one member in its ISR and no
    # leader. Once that member has restarted uncleanly, no replica can ever be elected.
    kept_member_is_forgotten: bool = field(default=False, metadata={"bug": True})
    # A leader that is elected from the ELR is alone the ISR. Where min.insync.replicas is now one
    # this is large enough, and yet other replicas stay eligible.
    elr_outlives_min_isr: bool = field(default=False, metadata={"bug": True})
    # A finished reassignment leaves removed replicas in the ELR and as last known leader.
    removed_replica_stays_in_elr: bool = field(default=False, metadata={"bug": True, "zoo": "Z56"})
    # A heartbeat that unfences a broker and reports a lost directory elects the replicas in it.
    unfencing_ignores_lost_dirs: bool = field(default=False, metadata={"bug": True})
    # A heartbeat that arrives after its broker has shut down unfences it, and elects it, although
    # it is in controlled shutdown (KIP-841; handleBrokerUnfenced in ReplicationControlManager).
    unfencing_ignores_shutdown: bool = field(default=False, metadata={"bug": True})
    # A broker that lost its last directory keeps it on record.
    last_offline_dir_is_kept: bool = field(default=False, metadata={"bug": True})
    # An unknown config operation, or a list's without entries, brings the controller down
    # (ConfigurationControlManager.incrementalAlterConfigResource).
    malformed_config_change_is_fatal: bool = field(default=False, metadata={"bug": True})
    # An AlterPartition with a leader recovery state that there is not brings the controller down
    # (LeaderRecoveryState.of in ReplicationControlManager.validateAlterPartitionData).
    unknown_recovery_state_is_fatal: bool = field(default=False, metadata={"bug": True})
    # An operation whose records fill batches of 10,000 to the last place ends with an empty batch,
    # over which the controller resigns (QuorumController.appendRecords; not where it is atomic).
    full_batches_are_fatal: bool = field(default=False, metadata={"bug": True})
    # CreatePartitions that is rejected writes the partitions it had placed by then.
    refused_create_partitions_writes: bool = field(default=False, metadata={"bug": True})
    # A new reassignment leaves an adding or removing list that it does not need as it was.
    reassignment_keeps_old_lists: bool = field(default=False, metadata={"bug": True})

    # Metadata with the leader's own partition epoch ends an ISR change that is pending. The
    # controller may still commit that change (Partition.makeLeader).
    equal_partition_epoch_ends_pending: bool = field(default=False, metadata={"bug": True})
    # The high watermark takes the offset that its first read finds: where reads find base offsets
    # (4.x) that of its batch, even below the log start; the log end where a truncation left no
    # batch (UnifiedLog.fetchHighWatermarkMetadata).
    high_watermark_is_what_a_read_finds: bool = field(
        default=False, metadata={"bug": True, "zoo": "Z60"}
    )
    # A follower ignores the high watermark of a response that it truncates by, or whose leader
    # epoch has passed, and the fetch session counts it as sent: an old one stays until the next
    # (AbstractFetcherThread.processFetchRequest, CachedPartition.maybeUpdateResponseData).
    ignored_fetch_is_not_repeated: bool = field(default=False, metadata={"bug": True})

    # A subscription of a classic member with a length beyond its end keeps the generation from
    # beginning, and the sessions of those who wait do not end (ClassicGroup.initNextGeneration).
    unreadable_subscription_hangs_group: bool = field(default=False, metadata={"bug": True})
    # A classic join that an empty consumer group rejects removes that group from memory, and from
    # memory alone (GroupMetadataManager.classicGroupJoinToClassicGroup).
    refused_join_forgets_empty_group: bool = field(default=False, metadata={"bug": True})

    # -- Bugs of the authorization that are fixed --
    # An ACL whose name sorts before ``*`` and shares its first character with the resource's name
    # makes the search for ``*`` start over for ever; two characters fail it with an exception
    # (StandardAuthorizerData.checkSection). Whoever asks needs no right.
    wildcard_search_starts_over: bool = field(default=False, metadata={"bug": True})
    # An ACL for ``*`` leaves out longer names that begin with an asterisk (the same method).
    wildcard_acl_skips_longer_names: bool = field(default=False, metadata={"bug": True})
    # An ACL with a filter's ANY or MATCH in CreateAcls fails all ACLs of the request with
    # UNKNOWN_SERVER_ERROR (CreateAclsRequest.aclBinding in AclApis.handleCreateAcls).
    any_in_acl_fails_request: bool = field(default=False, metadata={"bug": True})
    # DescribeUserScramCredentials of all users without the right is never answered: making its
    # error fails (DescribeUserScramCredentialsRequest.getErrorResponse, users being null).
    denied_scram_description_has_no_response: bool = field(default=False, metadata={"bug": True})
    # A SCRAM proof of another length than the hash ends the connection without a response
    # (ScramFormatter.xor throws what ScramSaslServer.evaluateResponse does not catch).
    odd_scram_proof_has_no_response: bool = field(default=False, metadata={"bug": True})

    # -- Bugs of the quorum that are fixed --
    # An acknowledgement of BeginQuorumEpoch by a voter that was removed ends the leader.
    late_begin_acknowledgement_is_fatal: bool = field(
        default=False, metadata={"bug": True, "zoo": "Z57"}
    )
    # A downloaded snapshot of a lower epoch than the own uncommitted tail ends the node.
    snapshot_of_lower_epoch_is_fatal: bool = field(
        default=False, metadata={"bug": True, "zoo": "Z58"}
    )
    # A fetch parked at a leader that becomes unattached gets a response as if it still led.
    parked_fetch_outlives_leadership: bool = field(
        default=False, metadata={"bug": True, "zoo": "Z59"}
    )
    # After a truncation, voters and kraft.version written below the old end are missed.
    reader_keeps_position_after_truncation: bool = field(
        default=False, metadata={"bug": True, "zoo": "Z61"}
    )
    # A rejected FetchSnapshot has no records field at all, which cannot be written.
    refused_fetch_snapshot_has_no_records: bool = field(default=False, metadata={"bug": True})
    # A request that contradicts the state of its epoch ends the node: another leader of the same
    # epoch, the receiver as leader, candidate or fetcher, an invalid vote.
    contradicting_request_is_fatal: bool = field(default=False, metadata={"bug": True})
    # A node that starts with a leader outside its voters, and so without its endpoints, ends when
    # that leader responds to its Fetch (KafkaRaftClient.handleFetchResponse).
    leader_found_again_is_fatal: bool = field(default=False, metadata={"bug": True})
    # A node that voted for itself and was removed from the voters in that epoch never starts again
    # (QuorumState.initialize, CandidateState).
    removed_candidate_cannot_start: bool = field(default=False, metadata={"bug": True})
    # A follower keeps sending UpdateRaftVoter to a leader that does not support it.
    unsupported_update_voter_is_retried: bool = field(default=False, metadata={"bug": True})

    @classmethod
    def named(cls, name: str) -> Rules:
        """Find the rules that a scenario names: a release, then fields that differ from it.

        ``kafka-4.3``, ``kafka-3.9``, ``kafka-4.3 unclean_leader_recovers=reported``.

        Errors:  UserError for a release, a field or a value that is not known.
        """
        known = {rules.name: rules for rules in (cls.KAFKA_4_3, cls.KAFKA_3_9)}
        release, *settings = name.split() or [name]
        if release not in known:
            raise UserError(f"rules: {release!r} is not known; choose one of {', '.join(known)}")
        base = known[release]
        values = dict(base._parsed(setting) for setting in settings)
        return replace(base, name=" ".join([release, *settings]), **values)  # type: ignore[arg-type]

    def _parsed(self, setting: str) -> tuple[str, object]:
        """One ``field=value``, with the value as the field holds it."""
        name, _, text = setting.partition("=")
        default = getattr(self, name, None) if name in {f.name for f in fields(self)} else None
        if isinstance(default, bool) and text in ("true", "false"):
            return name, text == "true"
        if isinstance(default, StrEnum):
            kind = type(default)
            if text in list(kind):
                return name, kind(text)
            raise UserError(f"rules: {name} is one of {', '.join(kind)}, not {text!r}")
        if type(default) is int and text.isdecimal():
            return name, int(text)
        raise UserError(
            f"rules: {setting!r} sets no field of the rules; see docs/reference/rules.md"
        )

    @classmethod
    def bugs(cls) -> tuple[str, ...]:
        """The field names of all bugs, in order of declaration."""
        return tuple(f.name for f in fields(cls) if f.metadata.get("bug"))

    @classmethod
    def zoo(cls) -> dict[str, str]:
        """The field name of each bug that has a zoo id (Z07, Z52-Z61), in order of declaration."""
        return {f.metadata["zoo"]: f.name for f in fields(cls) if "zoo" in f.metadata}

    def with_bugs(self, ids: Iterable[str]) -> Rules:
        """These rules with the bugs of some zoo ids.

        Errors:  UserError for an id that no bug has.
        """
        names, known = {}, self.zoo()
        for zoo_id in ids:
            if zoo_id not in known:
                raise UserError(f"rules: unknown bug {zoo_id!r}; known: {', '.join(known)}")
            names[known[zoo_id]] = True
        return replace(self, **names) if names else self  # type: ignore[arg-type]

    def shipped_zoo(self) -> tuple[str, ...]:
        """The zoo ids of the bugs that this release shipped with and that are fixed here."""
        shipped = self.as_shipped()
        return tuple(
            zoo_id
            for zoo_id, name in self.zoo().items()
            if getattr(shipped, name) and not getattr(self, name)
        )

    def as_shipped(self) -> Rules:
        """These rules with every bug of the release as it shipped."""
        release = self.name.partition(" ")[0]
        bugs = {
            f.name: True
            for f in fields(self)
            if f.metadata.get("bug") and f.metadata.get("release", release) == release
        }
        return replace(self, **bugs)  # type: ignore[arg-type]


Rules.KAFKA_4_3 = Rules()
Rules.KAFKA_3_9 = Rules(
    name="kafka-3.9",
    metadata_version_lowest=1,
    metadata_version_production=21,
    metadata_version_latest=23,
    metadata_version_with_elr=22,
    zk_migration_state_is_written=True,
    elr_starts_with_cluster_min_isr=False,
    empty_snapshot_counts_as_record=True,
    metadata_version_is_assumed=True,
    bootstraps_log_without_metadata_version=False,
    broker_retry_backs_off=True,
    drops_old_request_versions=False,
    sessions_by_epoch=False,
    register_broker_is_atomic=True,
    new_incarnation_leaves_isr=False,
    min_isr_clears_elr=False,
    last_known_leader_goes_with_isr=True,
    previous_broker_epoch_counts=False,
    duplicate_registration_message_has_advice=False,
    kraft_version_can_rise=False,
    features_of_4_0_are_offered=False,
    features_change_together=False,
    registration_needs_metadata_version=False,
    tasks_are_periodic=False,
    failed_task_renounces=True,
    reassignment_needs_all_replicas=True,
    config_value_length_max=0,
    placement_errors_mention_cordoned=False,
    cordoned_dirs_must_exist=False,
    registered_controllers_have_configs=False,
    unknown_features_are_rejected=False,
    groups_have_configs=False,
    zk_migration_ready_is_kept=True,
    alter_partition_version_lowest=0,
    read_finds_batch_base=False,
    proposals_wait_by_topic_id=False,
    list_offsets_in_hash_order=False,
    produce_by_topic_id=False,
    pending_transition_comes_first=False,
)
