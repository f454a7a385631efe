"""Which tests show each field of ``Rules`` from either side."""

from __future__ import annotations

from collections.abc import Mapping

_BOOTSTRAP = "tests/metadata/test_bootstrap.py::test_"
_BROKERS = "tests/controller/test_broker_changes.py::test_"
_CHANGE = "tests/controller/test_partition_change.py::test_"
_ELR = "tests/controller/test_elr.py::test_"
_LOADER = "tests/metadata/test_loader.py::test_"
_MANAGER = "tests/replica/test_alter_partition_manager.py::test_"
_OFFLINE = "tests/scenario/test_failed_directory.py::test_"
_QUORUM = "tests/quorum/test_faults.py::test_"
_REGISTRATION = "tests/controller/test_registration.py::test_"
_RELEASES = "tests/controller/test_releases.py::test_"
_SNAPSHOT = "tests/metadata/test_snapshot.py::test_"
_TEXTS = "tests/controller/test_kip_texts_and_bugs.py::test_"
_ELR = "tests/controller/test_elr.py::test_"

SHOWN_BY: Mapping[str, tuple[str, ...]] = {
    "metadata_version_lowest": (
        "tests/metadata/test_metadata_version.py::test_each_release_has_its_range",
        f"{_LOADER}a_level_below_the_lowest_of_the_release_cannot_be_read",
    ),
    "metadata_version_production": (
        "tests/metadata/test_metadata_version.py::test_each_release_has_its_range",
    ),
    "metadata_version_latest": (
        "tests/metadata/test_metadata_version.py::test_each_release_has_its_range",
    ),
    "metadata_version_with_elr": (
        "tests/metadata/test_metadata_version.py::"
        "test_eligible_leader_replicas_begin_at_another_level_in_3_9",
    ),
    "zk_migration_state_is_written": (
        f"{_BOOTSTRAP}a_fresh_log_gets_its_version_in_a_transaction",
        f"{_BOOTSTRAP}3_9_adds_the_migration_state",
        f"{_SNAPSHOT}the_migration_state_is_written_by_3_9_where_the_version_has_it",
    ),
    "elr_starts_with_cluster_min_isr": (
        "tests/house/test_rules_page.py::test_elr_starts_with_the_clusters_minimum_in_4_x_only",
    ),
    "empty_snapshot_counts_as_record": (
        f"{_LOADER}h05_an_empty_snapshot_counts_for_3_9_and_not_for_4_3",
    ),
    "metadata_version_is_assumed": (
        f"{_LOADER}without_a_metadata_version_4_3_publishes_nothing_and_3_9_assumes_one",
    ),
    "bootstraps_log_without_metadata_version": (
        f"{_BOOTSTRAP}a_log_without_a_version_is_bootstrapped_by_4_3_only",
    ),
    "aborted_transaction_leaks": (f"{_LOADER}what_was_aborted_comes_back_only_in_kafkas_loader",),
    "snapshot_omits_elr_when_off": (
        f"{_SNAPSHOT}elrs_that_outlived_their_feature_survive_a_snapshot_except_in_4_3_as_shipped",
    ),
    "broker_retry_backs_off": (
        "tests/replica/test_lifecycle.py::"
        "test_a_refused_registration_is_tried_again_after_the_heartbeat_interval",
        "tests/replica/test_lifecycle.py::test_with_the_rules_of_3_9_retries_back_off",
    ),
    "drops_old_request_versions": (
        "tests/broker/test_kafka_apis.py::"
        "test_api_versions_lists_what_is_served_and_the_finalized_features",
        "tests/broker/test_kafka_apis.py::test_the_rules_of_3_9_offer_the_versions_of_3_9",
    ),
    "sessions_by_epoch": (f"{_RELEASES}sessions_by_epoch",),
    "register_broker_is_atomic": (f"{_RELEASES}register_broker_is_atomic",),
    "new_incarnation_leaves_isr": (
        f"{_RELEASES}new_incarnation_leaves_isr",
        f"{_RELEASES}new_incarnation_of_3_9_leaves_where_elrs_can_be_written",
    ),
    "min_isr_clears_elr": (f"{_RELEASES}min_isr_clears_elr",),
    "last_known_leader_goes_with_isr": (
        f"{_CHANGE}the_last_known_leader_of_3_9_goes_with_the_isr_and_of_4_x_with_the_leader",
    ),
    "features_of_4_0_are_offered": (f"{_RELEASES}features_of_4_0_are_offered",),
    "kraft_version_is_written_as_level": (f"{_RELEASES}kraft_version_is_written_as_level",),
    "kraft_version_can_rise": (f"{_RELEASES}kraft_version_can_rise",),
    "features_change_together": (f"{_RELEASES}features_change_together",),
    "previous_broker_epoch_counts": (f"{_RELEASES}previous_broker_epoch_counts",),
    "registration_needs_metadata_version": (f"{_RELEASES}registration_needs_metadata_version",),
    "tasks_are_periodic": (f"{_RELEASES}tasks_are_periodic",),
    "failed_task_renounces": (f"{_RELEASES}failed_task_renounces",),
    "reassignment_needs_all_replicas": (f"{_RELEASES}reassignment_needs_all_replicas",),
    "config_value_length_max": (f"{_RELEASES}config_value_length_max",),
    "placement_errors_mention_cordoned": (f"{_RELEASES}placement_errors_mention_cordoned",),
    "cordoned_dirs_must_exist": (
        "tests/scenario/test_cordoned_directories.py::"
        "test_a_release_without_cordoned_directories_does_not_look_at_them",
    ),
    "full_batches_are_fatal": (f"{_RELEASES}full_batches_are_fatal",),
    "unknown_features_are_rejected": (
        "tests/controller/test_update_features.py::"
        "test_a_feature_without_a_name_is_rejected_at_level_0_as_well",
    ),
    "registered_controllers_have_configs": (f"{_RELEASES}registered_controllers_have_configs",),
    "unknown_recovery_state_is_fatal": (f"{_RELEASES}unknown_recovery_state_is_fatal",),
    "malformed_config_change_is_fatal": (f"{_RELEASES}malformed_config_change_is_fatal",),
    "wildcard_search_starts_over": (
        "tests/security/test_authorizer.py::test_the_search_for_the_wildcard_ends",
    ),
    "wildcard_acl_skips_longer_names": (
        "tests/security/test_authorizer.py::"
        "test_an_acl_for_all_names_has_those_that_begin_with_an_asterisk",
    ),
    "any_in_acl_fails_request": (
        "tests/security/test_acl_operations.py::"
        "test_any_in_an_acl_fails_it_alone_unless_as_shipped",
    ),
    "denied_scram_description_has_no_response": (
        "tests/security/test_screens.py::test_all_scram_users_are_not_described_without_the_right",
    ),
    "odd_scram_proof_has_no_response": (
        "tests/security/test_sasl.py::test_a_proof_of_another_length_has_a_response",
    ),
    "groups_have_configs": (f"{_RELEASES}groups_have_configs",),
    "zk_migration_ready_is_kept": (f"{_RELEASES}zk_migration_ready_is_kept",),
    "alter_partition_version_lowest": (
        f"{_RELEASES}alter_partition_version_lowest",
        f"{_MANAGER}g07_topics_without_id_cap_the_version_where_names_are_still_known",
    ),
    "duplicate_registration_message_has_advice": (
        f"{_RELEASES}duplicate_registration_message_has_advice",
    ),
    "read_finds_batch_base": (
        "tests/replica/test_partition_isr.py::"
        "test_f01_the_high_watermark_takes_the_offset_of_a_fetch_inside_a_batch",
    ),
    "proposals_wait_by_topic_id": (
        f"{_MANAGER}a_topic_made_anew_waits_beside_its_predecessor_by_id_and_not_by_name",
    ),
    "list_offsets_in_hash_order": (
        "tests/replica/test_response_order.py::"
        "test_list_offsets_has_the_order_of_a_map_and_in_3_9_that_of_the_request",
    ),
    "pending_transition_comes_first": (
        "tests/coordinator/test_end_txn.py::test_a_pending_transition_hides_another_producer",
    ),
    "produce_by_topic_id": (
        "tests/replica/test_response_order.py::test_in_3_9_a_produce_names_its_topics",
    ),
    "failed_replicas_reported_by": (
        f"{_OFFLINE}both_ways_lead_to_the_same_partition",
        f"{_OFFLINE}before_3_7_only_a_report_moves_the_leader",
    ),
    "isr_changes_by": (
        "tests/scenario/test_alter_isr.py::"
        "test_isrs_shrink_and_grow_and_survive_a_change_of_controller",
        "tests/controller/test_alter_isr.py::test_neither_form_is_served_where_alter_partition_is",
    ),
    "unclean_leader_recovers": (
        "tests/replica/test_unclean_recovery.py::"
        "test_as_shipped_a_leader_takes_itself_for_recovered_and_its_next_change_has_it",
        "tests/replica/test_unclean_recovery.py::"
        "test_in_the_text_it_reports_by_itself_with_the_isr_as_it_is",
    ),
    "isr_changes_of_one_fetch_leave_together": (
        "tests/scenario/test_alter_isr.py::"
        "test_the_changes_of_one_fetch_leave_one_by_one_or_together",
    ),
    "allow_empty_isr_without_elr": (f"{_TEXTS}kip_841_the_last_member_of_an_isr",),
    "ineligible_member_refuses_all_partitions": (
        f"{_TEXTS}kip_841_how_much_an_ineligible_member_refuses",
    ),
    "new_leader_elected_by_reassignment_only": (
        f"{_TEXTS}kip_841_which_change_reports_a_new_leader",
        f"{_TEXTS}kip_841_a_finished_reassignment_reports_a_new_leader_either_way",
    ),
    "amend_ends_controlled_shutdown": (
        f"{_TEXTS}kip_841_registering_again_in_controlled_shutdown",
    ),
    "fenced_broker_holds_session": (f"{_REGISTRATION}whether_a_fenced_broker_has_a_session",),
    "amend_forgets_cordoned_dirs": (f"{_REGISTRATION}amending_and_cordoned_directories",),
    "fenced_broker_is_fenced_again": (
        f"{_REGISTRATION}whether_a_fenced_brokers_session_fences_it_again",
    ),
    "replica_in_failed_dir_may_join": (
        f"{_TEXTS}kip_858_a_replica_in_a_failed_directory_is_proposed_once_more",
    ),
    "unregistered_broker_stays_in_elr": (f"{_ELR}an_unregistered_broker_and_the_elr",),
    "clear_elr_ignores_empty_isr": (f"{_ELR}z54_changing_the_minimum_leaves_a_candidate",),
    "clear_elr_skips_index": (f"{_ELR}z52_the_elr_index_follows_a_clear_elr",),
    "removed_topic_stays_in_directory_index": (
        f"{_ELR}z53_a_deleted_topic_leaves_the_directory_index",
    ),
    "fenced_last_known_leader_is_elected": (f"{_TEXTS}a_last_known_leader_that_is_fenced",),
    "assigned_directory_empties_elr": (f"{_TEXTS}the_directory_of_a_replica_and_the_elr",),
    "last_known_leader_may_be_none": (f"{_CHANGE}nobody_is_no_last_known_leader",),
    "removed_replica_stays_in_elr": (
        f"{_CHANGE}z56_a_removed_replica_leaves_the_elr",
        f"{_CHANGE}z56_a_removed_replica_is_no_last_known_leader",
    ),
    "last_offline_dir_is_kept": (f"{_BROKERS}a_broker_that_lost_its_last_directory",),
    "refused_create_partitions_writes": (
        "tests/controller/test_topics.py::test_a_refused_request_writes_nothing",
    ),
    "reassignment_keeps_old_lists": (f"{_BROKERS}an_adding_list_that_is_not_needed_goes",),
    "equal_partition_epoch_ends_pending": (
        "tests/replica/test_partition_isr.py::"
        "test_metadata_of_an_equal_partition_epoch_spares_the_change_that_is_pending",
    ),
    "high_watermark_is_what_a_read_finds": (
        "tests/replica/test_partition_log.py::"
        "test_the_high_watermark_stays_above_a_log_start_inside_a_batch",
        "tests/replica/test_partition_log.py::"
        "test_where_no_batch_holds_the_high_watermark_a_read_finds_the_log_end",
    ),
    "ignored_fetch_is_not_repeated": (
        "tests/replica/test_follower_sessions.py::"
        "test_what_was_ignored_is_sent_again_by_a_leader_that_counts_it_as_sent",
        "tests/replica/test_follower_sessions.py::test_what_came_with_a_diverging_epoch_is_sent_again",
    ),
    "late_begin_acknowledgement_is_fatal": (
        "tests/quorum/test_rows_voters.py::"
        "test_z57_a_late_begin_acknowledgement_of_a_removed_voter_changes_nothing",
    ),
    "snapshot_of_lower_epoch_is_fatal": (
        f"{_QUORUM}z58_a_snapshot_below_the_own_tail_is_installed_or_fatal",
    ),
    "parked_fetch_outlives_leadership": (
        f"{_QUORUM}z59_a_fetch_parked_at_a_deposed_leader_fails_or_completes_in_its_name",
    ),
    "reader_keeps_position_after_truncation": (
        f"{_QUORUM}z61_voters_written_below_a_truncated_tail_are_read_or_missed",
    ),
    "refused_fetch_snapshot_has_no_records": (
        f"{_QUORUM}a_refused_fetch_snapshot_has_empty_records_or_none",
    ),
    "contradicting_request_is_fatal": (
        "tests/quorum/test_shipped_faults.py::"
        "test_a_request_that_cannot_be_true_is_refused_or_fatal",
    ),
    "leader_found_again_is_fatal": (
        "tests/quorum/test_shipped_faults.py::"
        "test_a_leader_that_is_found_again_outside_the_voters_is_followed_or_fatal",
    ),
    "removed_candidate_cannot_start": (
        "tests/quorum/test_shipped_faults.py::"
        "test_a_candidate_that_was_removed_from_the_voters_starts_again_or_never",
    ),
    "unsupported_update_voter_is_retried": (
        "tests/quorum/test_shipped_faults.py::"
        "test_a_leader_without_update_voter_gets_the_request_once_or_for_ever",
    ),
    "own_state_write_is_refused": (
        "tests/zookeeper/controller/test_alter_partition.py::"
        "test_a_write_whose_response_was_lost_is_recognized",
        "tests/zookeeper/controller/test_alter_partition.py::"
        "test_as_kafka_shipped_it_the_leader_gets_a_refusal_and_waits_for_the_next_epoch",
    ),
    "kept_member_is_forgotten": (
        f"{_ELR}the_last_member_from_before_elr_is_remembered_when_it_restarts_uncleanly",
    ),
    "elr_outlives_min_isr": (
        f"{_ELR}nobody_stays_eligible_once_the_isr_is_as_large_as_it_must_be",
    ),
    "unfencing_ignores_shutdown": (
        "tests/controller/test_broker_changes.py::"
        "test_a_late_heartbeat_elects_no_broker_that_has_shut_down",
    ),
    "unfencing_ignores_lost_dirs": (
        "tests/controller/test_broker_changes.py::"
        "test_a_heartbeat_that_unfences_a_broker_elects_nobody_in_a_directory_that_it_calls_lost",
    ),
    "unreadable_subscription_hangs_group": (
        "tests/coordinator/test_migration.py::test_a_join_with_a_subscription_that_cannot_be_read",
    ),
    "refused_join_forgets_empty_group": (
        "tests/coordinator/test_migration.py::test_a_refused_join_to_an_empty_consumer_group",
    ),
}
