"""Every request and response of Kafka 3.9 and 4.3, each in all of their versions.

A class is loaded when it is first asked for (PEP 562), so that this import costs nothing: one
module for each API.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from minicluster.protocol.messages.add_offsets_to_txn import (
        AddOffsetsToTxnRequest as AddOffsetsToTxnRequest,
    )
    from minicluster.protocol.messages.add_offsets_to_txn import (
        AddOffsetsToTxnResponse as AddOffsetsToTxnResponse,
    )
    from minicluster.protocol.messages.add_partitions_to_txn import (
        AddPartitionsToTxnRequest as AddPartitionsToTxnRequest,
    )
    from minicluster.protocol.messages.add_partitions_to_txn import (
        AddPartitionsToTxnResponse as AddPartitionsToTxnResponse,
    )
    from minicluster.protocol.messages.add_raft_voter import (
        AddRaftVoterRequest as AddRaftVoterRequest,
    )
    from minicluster.protocol.messages.add_raft_voter import (
        AddRaftVoterResponse as AddRaftVoterResponse,
    )
    from minicluster.protocol.messages.allocate_producer_ids import (
        AllocateProducerIdsRequest as AllocateProducerIdsRequest,
    )
    from minicluster.protocol.messages.allocate_producer_ids import (
        AllocateProducerIdsResponse as AllocateProducerIdsResponse,
    )
    from minicluster.protocol.messages.alter_client_quotas import (
        AlterClientQuotasRequest as AlterClientQuotasRequest,
    )
    from minicluster.protocol.messages.alter_client_quotas import (
        AlterClientQuotasResponse as AlterClientQuotasResponse,
    )
    from minicluster.protocol.messages.alter_configs import (
        AlterConfigsRequest as AlterConfigsRequest,
    )
    from minicluster.protocol.messages.alter_configs import (
        AlterConfigsResponse as AlterConfigsResponse,
    )
    from minicluster.protocol.messages.alter_partition import (
        AlterPartitionRequest as AlterPartitionRequest,
    )
    from minicluster.protocol.messages.alter_partition import (
        AlterPartitionResponse as AlterPartitionResponse,
    )
    from minicluster.protocol.messages.alter_partition_reassignments import (
        AlterPartitionReassignmentsRequest as AlterPartitionReassignmentsRequest,
    )
    from minicluster.protocol.messages.alter_partition_reassignments import (
        AlterPartitionReassignmentsResponse as AlterPartitionReassignmentsResponse,
    )
    from minicluster.protocol.messages.alter_replica_log_dirs import (
        AlterReplicaLogDirsRequest as AlterReplicaLogDirsRequest,
    )
    from minicluster.protocol.messages.alter_replica_log_dirs import (
        AlterReplicaLogDirsResponse as AlterReplicaLogDirsResponse,
    )
    from minicluster.protocol.messages.alter_share_group_offsets import (
        AlterShareGroupOffsetsRequest as AlterShareGroupOffsetsRequest,
    )
    from minicluster.protocol.messages.alter_share_group_offsets import (
        AlterShareGroupOffsetsResponse as AlterShareGroupOffsetsResponse,
    )
    from minicluster.protocol.messages.alter_user_scram_credentials import (
        AlterUserScramCredentialsRequest as AlterUserScramCredentialsRequest,
    )
    from minicluster.protocol.messages.alter_user_scram_credentials import (
        AlterUserScramCredentialsResponse as AlterUserScramCredentialsResponse,
    )
    from minicluster.protocol.messages.api_versions import (
        ApiVersionsRequest as ApiVersionsRequest,
    )
    from minicluster.protocol.messages.api_versions import (
        ApiVersionsResponse as ApiVersionsResponse,
    )
    from minicluster.protocol.messages.assign_replicas_to_dirs import (
        AssignReplicasToDirsRequest as AssignReplicasToDirsRequest,
    )
    from minicluster.protocol.messages.assign_replicas_to_dirs import (
        AssignReplicasToDirsResponse as AssignReplicasToDirsResponse,
    )
    from minicluster.protocol.messages.begin_quorum_epoch import (
        BeginQuorumEpochRequest as BeginQuorumEpochRequest,
    )
    from minicluster.protocol.messages.begin_quorum_epoch import (
        BeginQuorumEpochResponse as BeginQuorumEpochResponse,
    )
    from minicluster.protocol.messages.broker_heartbeat import (
        BrokerHeartbeatRequest as BrokerHeartbeatRequest,
    )
    from minicluster.protocol.messages.broker_heartbeat import (
        BrokerHeartbeatResponse as BrokerHeartbeatResponse,
    )
    from minicluster.protocol.messages.broker_registration import (
        BrokerRegistrationRequest as BrokerRegistrationRequest,
    )
    from minicluster.protocol.messages.broker_registration import (
        BrokerRegistrationResponse as BrokerRegistrationResponse,
    )
    from minicluster.protocol.messages.consumer_group_describe import (
        ConsumerGroupDescribeRequest as ConsumerGroupDescribeRequest,
    )
    from minicluster.protocol.messages.consumer_group_describe import (
        ConsumerGroupDescribeResponse as ConsumerGroupDescribeResponse,
    )
    from minicluster.protocol.messages.consumer_group_heartbeat import (
        ConsumerGroupHeartbeatRequest as ConsumerGroupHeartbeatRequest,
    )
    from minicluster.protocol.messages.consumer_group_heartbeat import (
        ConsumerGroupHeartbeatResponse as ConsumerGroupHeartbeatResponse,
    )
    from minicluster.protocol.messages.consumer_protocol import (
        ConsumerProtocolAssignment as ConsumerProtocolAssignment,
    )
    from minicluster.protocol.messages.consumer_protocol import (
        ConsumerProtocolSubscription as ConsumerProtocolSubscription,
    )
    from minicluster.protocol.messages.control_record_type_schema import (
        ControlRecordTypeSchema as ControlRecordTypeSchema,
    )
    from minicluster.protocol.messages.controlled_shutdown import (
        ControlledShutdownRequest as ControlledShutdownRequest,
    )
    from minicluster.protocol.messages.controlled_shutdown import (
        ControlledShutdownResponse as ControlledShutdownResponse,
    )
    from minicluster.protocol.messages.controller_registration import (
        ControllerRegistrationRequest as ControllerRegistrationRequest,
    )
    from minicluster.protocol.messages.controller_registration import (
        ControllerRegistrationResponse as ControllerRegistrationResponse,
    )
    from minicluster.protocol.messages.create_acls import (
        CreateAclsRequest as CreateAclsRequest,
    )
    from minicluster.protocol.messages.create_acls import (
        CreateAclsResponse as CreateAclsResponse,
    )
    from minicluster.protocol.messages.create_delegation_token import (
        CreateDelegationTokenRequest as CreateDelegationTokenRequest,
    )
    from minicluster.protocol.messages.create_delegation_token import (
        CreateDelegationTokenResponse as CreateDelegationTokenResponse,
    )
    from minicluster.protocol.messages.create_partitions import (
        CreatePartitionsRequest as CreatePartitionsRequest,
    )
    from minicluster.protocol.messages.create_partitions import (
        CreatePartitionsResponse as CreatePartitionsResponse,
    )
    from minicluster.protocol.messages.create_topics import (
        CreateTopicsRequest as CreateTopicsRequest,
    )
    from minicluster.protocol.messages.create_topics import (
        CreateTopicsResponse as CreateTopicsResponse,
    )
    from minicluster.protocol.messages.default_principal_data import (
        DefaultPrincipalData as DefaultPrincipalData,
    )
    from minicluster.protocol.messages.delete_acls import (
        DeleteAclsRequest as DeleteAclsRequest,
    )
    from minicluster.protocol.messages.delete_acls import (
        DeleteAclsResponse as DeleteAclsResponse,
    )
    from minicluster.protocol.messages.delete_groups import (
        DeleteGroupsRequest as DeleteGroupsRequest,
    )
    from minicluster.protocol.messages.delete_groups import (
        DeleteGroupsResponse as DeleteGroupsResponse,
    )
    from minicluster.protocol.messages.delete_records import (
        DeleteRecordsRequest as DeleteRecordsRequest,
    )
    from minicluster.protocol.messages.delete_records import (
        DeleteRecordsResponse as DeleteRecordsResponse,
    )
    from minicluster.protocol.messages.delete_share_group_offsets import (
        DeleteShareGroupOffsetsRequest as DeleteShareGroupOffsetsRequest,
    )
    from minicluster.protocol.messages.delete_share_group_offsets import (
        DeleteShareGroupOffsetsResponse as DeleteShareGroupOffsetsResponse,
    )
    from minicluster.protocol.messages.delete_share_group_state import (
        DeleteShareGroupStateRequest as DeleteShareGroupStateRequest,
    )
    from minicluster.protocol.messages.delete_share_group_state import (
        DeleteShareGroupStateResponse as DeleteShareGroupStateResponse,
    )
    from minicluster.protocol.messages.delete_topics import (
        DeleteTopicsRequest as DeleteTopicsRequest,
    )
    from minicluster.protocol.messages.delete_topics import (
        DeleteTopicsResponse as DeleteTopicsResponse,
    )
    from minicluster.protocol.messages.describe_acls import (
        DescribeAclsRequest as DescribeAclsRequest,
    )
    from minicluster.protocol.messages.describe_acls import (
        DescribeAclsResponse as DescribeAclsResponse,
    )
    from minicluster.protocol.messages.describe_client_quotas import (
        DescribeClientQuotasRequest as DescribeClientQuotasRequest,
    )
    from minicluster.protocol.messages.describe_client_quotas import (
        DescribeClientQuotasResponse as DescribeClientQuotasResponse,
    )
    from minicluster.protocol.messages.describe_cluster import (
        DescribeClusterRequest as DescribeClusterRequest,
    )
    from minicluster.protocol.messages.describe_cluster import (
        DescribeClusterResponse as DescribeClusterResponse,
    )
    from minicluster.protocol.messages.describe_configs import (
        DescribeConfigsRequest as DescribeConfigsRequest,
    )
    from minicluster.protocol.messages.describe_configs import (
        DescribeConfigsResponse as DescribeConfigsResponse,
    )
    from minicluster.protocol.messages.describe_delegation_token import (
        DescribeDelegationTokenRequest as DescribeDelegationTokenRequest,
    )
    from minicluster.protocol.messages.describe_delegation_token import (
        DescribeDelegationTokenResponse as DescribeDelegationTokenResponse,
    )
    from minicluster.protocol.messages.describe_groups import (
        DescribeGroupsRequest as DescribeGroupsRequest,
    )
    from minicluster.protocol.messages.describe_groups import (
        DescribeGroupsResponse as DescribeGroupsResponse,
    )
    from minicluster.protocol.messages.describe_log_dirs import (
        DescribeLogDirsRequest as DescribeLogDirsRequest,
    )
    from minicluster.protocol.messages.describe_log_dirs import (
        DescribeLogDirsResponse as DescribeLogDirsResponse,
    )
    from minicluster.protocol.messages.describe_producers import (
        DescribeProducersRequest as DescribeProducersRequest,
    )
    from minicluster.protocol.messages.describe_producers import (
        DescribeProducersResponse as DescribeProducersResponse,
    )
    from minicluster.protocol.messages.describe_quorum import (
        DescribeQuorumRequest as DescribeQuorumRequest,
    )
    from minicluster.protocol.messages.describe_quorum import (
        DescribeQuorumResponse as DescribeQuorumResponse,
    )
    from minicluster.protocol.messages.describe_share_group_offsets import (
        DescribeShareGroupOffsetsRequest as DescribeShareGroupOffsetsRequest,
    )
    from minicluster.protocol.messages.describe_share_group_offsets import (
        DescribeShareGroupOffsetsResponse as DescribeShareGroupOffsetsResponse,
    )
    from minicluster.protocol.messages.describe_topic_partitions import (
        DescribeTopicPartitionsRequest as DescribeTopicPartitionsRequest,
    )
    from minicluster.protocol.messages.describe_topic_partitions import (
        DescribeTopicPartitionsResponse as DescribeTopicPartitionsResponse,
    )
    from minicluster.protocol.messages.describe_transactions import (
        DescribeTransactionsRequest as DescribeTransactionsRequest,
    )
    from minicluster.protocol.messages.describe_transactions import (
        DescribeTransactionsResponse as DescribeTransactionsResponse,
    )
    from minicluster.protocol.messages.describe_user_scram_credentials import (
        DescribeUserScramCredentialsRequest as DescribeUserScramCredentialsRequest,
    )
    from minicluster.protocol.messages.describe_user_scram_credentials import (
        DescribeUserScramCredentialsResponse as DescribeUserScramCredentialsResponse,
    )
    from minicluster.protocol.messages.elect_leaders import (
        ElectLeadersRequest as ElectLeadersRequest,
    )
    from minicluster.protocol.messages.elect_leaders import (
        ElectLeadersResponse as ElectLeadersResponse,
    )
    from minicluster.protocol.messages.end_quorum_epoch import (
        EndQuorumEpochRequest as EndQuorumEpochRequest,
    )
    from minicluster.protocol.messages.end_quorum_epoch import (
        EndQuorumEpochResponse as EndQuorumEpochResponse,
    )
    from minicluster.protocol.messages.end_txn import (
        EndTxnRequest as EndTxnRequest,
    )
    from minicluster.protocol.messages.end_txn import (
        EndTxnResponse as EndTxnResponse,
    )
    from minicluster.protocol.messages.envelope import (
        EnvelopeRequest as EnvelopeRequest,
    )
    from minicluster.protocol.messages.envelope import (
        EnvelopeResponse as EnvelopeResponse,
    )
    from minicluster.protocol.messages.expire_delegation_token import (
        ExpireDelegationTokenRequest as ExpireDelegationTokenRequest,
    )
    from minicluster.protocol.messages.expire_delegation_token import (
        ExpireDelegationTokenResponse as ExpireDelegationTokenResponse,
    )
    from minicluster.protocol.messages.fetch import (
        FetchRequest as FetchRequest,
    )
    from minicluster.protocol.messages.fetch import (
        FetchResponse as FetchResponse,
    )
    from minicluster.protocol.messages.fetch_snapshot import (
        FetchSnapshotRequest as FetchSnapshotRequest,
    )
    from minicluster.protocol.messages.fetch_snapshot import (
        FetchSnapshotResponse as FetchSnapshotResponse,
    )
    from minicluster.protocol.messages.find_coordinator import (
        FindCoordinatorRequest as FindCoordinatorRequest,
    )
    from minicluster.protocol.messages.find_coordinator import (
        FindCoordinatorResponse as FindCoordinatorResponse,
    )
    from minicluster.protocol.messages.get_telemetry_subscriptions import (
        GetTelemetrySubscriptionsRequest as GetTelemetrySubscriptionsRequest,
    )
    from minicluster.protocol.messages.get_telemetry_subscriptions import (
        GetTelemetrySubscriptionsResponse as GetTelemetrySubscriptionsResponse,
    )
    from minicluster.protocol.messages.headers import (
        RequestHeader as RequestHeader,
    )
    from minicluster.protocol.messages.headers import (
        ResponseHeader as ResponseHeader,
    )
    from minicluster.protocol.messages.heartbeat import (
        HeartbeatRequest as HeartbeatRequest,
    )
    from minicluster.protocol.messages.heartbeat import (
        HeartbeatResponse as HeartbeatResponse,
    )
    from minicluster.protocol.messages.incremental_alter_configs import (
        IncrementalAlterConfigsRequest as IncrementalAlterConfigsRequest,
    )
    from minicluster.protocol.messages.incremental_alter_configs import (
        IncrementalAlterConfigsResponse as IncrementalAlterConfigsResponse,
    )
    from minicluster.protocol.messages.init_producer_id import (
        InitProducerIdRequest as InitProducerIdRequest,
    )
    from minicluster.protocol.messages.init_producer_id import (
        InitProducerIdResponse as InitProducerIdResponse,
    )
    from minicluster.protocol.messages.initialize_share_group_state import (
        InitializeShareGroupStateRequest as InitializeShareGroupStateRequest,
    )
    from minicluster.protocol.messages.initialize_share_group_state import (
        InitializeShareGroupStateResponse as InitializeShareGroupStateResponse,
    )
    from minicluster.protocol.messages.join_group import (
        JoinGroupRequest as JoinGroupRequest,
    )
    from minicluster.protocol.messages.join_group import (
        JoinGroupResponse as JoinGroupResponse,
    )
    from minicluster.protocol.messages.leader_and_isr import (
        LeaderAndIsrRequest as LeaderAndIsrRequest,
    )
    from minicluster.protocol.messages.leader_and_isr import (
        LeaderAndIsrResponse as LeaderAndIsrResponse,
    )
    from minicluster.protocol.messages.leave_group import (
        LeaveGroupRequest as LeaveGroupRequest,
    )
    from minicluster.protocol.messages.leave_group import (
        LeaveGroupResponse as LeaveGroupResponse,
    )
    from minicluster.protocol.messages.list_client_metrics_resources import (
        ListClientMetricsResourcesRequest as ListClientMetricsResourcesRequest,
    )
    from minicluster.protocol.messages.list_client_metrics_resources import (
        ListClientMetricsResourcesResponse as ListClientMetricsResourcesResponse,
    )
    from minicluster.protocol.messages.list_config_resources import (
        ListConfigResourcesRequest as ListConfigResourcesRequest,
    )
    from minicluster.protocol.messages.list_config_resources import (
        ListConfigResourcesResponse as ListConfigResourcesResponse,
    )
    from minicluster.protocol.messages.list_groups import (
        ListGroupsRequest as ListGroupsRequest,
    )
    from minicluster.protocol.messages.list_groups import (
        ListGroupsResponse as ListGroupsResponse,
    )
    from minicluster.protocol.messages.list_offsets import (
        ListOffsetsRequest as ListOffsetsRequest,
    )
    from minicluster.protocol.messages.list_offsets import (
        ListOffsetsResponse as ListOffsetsResponse,
    )
    from minicluster.protocol.messages.list_partition_reassignments import (
        ListPartitionReassignmentsRequest as ListPartitionReassignmentsRequest,
    )
    from minicluster.protocol.messages.list_partition_reassignments import (
        ListPartitionReassignmentsResponse as ListPartitionReassignmentsResponse,
    )
    from minicluster.protocol.messages.list_transactions import (
        ListTransactionsRequest as ListTransactionsRequest,
    )
    from minicluster.protocol.messages.list_transactions import (
        ListTransactionsResponse as ListTransactionsResponse,
    )
    from minicluster.protocol.messages.metadata import (
        MetadataRequest as MetadataRequest,
    )
    from minicluster.protocol.messages.metadata import (
        MetadataResponse as MetadataResponse,
    )
    from minicluster.protocol.messages.offset_commit import (
        OffsetCommitRequest as OffsetCommitRequest,
    )
    from minicluster.protocol.messages.offset_commit import (
        OffsetCommitResponse as OffsetCommitResponse,
    )
    from minicluster.protocol.messages.offset_delete import (
        OffsetDeleteRequest as OffsetDeleteRequest,
    )
    from minicluster.protocol.messages.offset_delete import (
        OffsetDeleteResponse as OffsetDeleteResponse,
    )
    from minicluster.protocol.messages.offset_fetch import (
        OffsetFetchRequest as OffsetFetchRequest,
    )
    from minicluster.protocol.messages.offset_fetch import (
        OffsetFetchResponse as OffsetFetchResponse,
    )
    from minicluster.protocol.messages.offset_for_leader_epoch import (
        OffsetForLeaderEpochRequest as OffsetForLeaderEpochRequest,
    )
    from minicluster.protocol.messages.offset_for_leader_epoch import (
        OffsetForLeaderEpochResponse as OffsetForLeaderEpochResponse,
    )
    from minicluster.protocol.messages.produce import (
        ProduceRequest as ProduceRequest,
    )
    from minicluster.protocol.messages.produce import (
        ProduceResponse as ProduceResponse,
    )
    from minicluster.protocol.messages.push_telemetry import (
        PushTelemetryRequest as PushTelemetryRequest,
    )
    from minicluster.protocol.messages.push_telemetry import (
        PushTelemetryResponse as PushTelemetryResponse,
    )
    from minicluster.protocol.messages.read_share_group_state import (
        ReadShareGroupStateRequest as ReadShareGroupStateRequest,
    )
    from minicluster.protocol.messages.read_share_group_state import (
        ReadShareGroupStateResponse as ReadShareGroupStateResponse,
    )
    from minicluster.protocol.messages.read_share_group_state_summary import (
        ReadShareGroupStateSummaryRequest as ReadShareGroupStateSummaryRequest,
    )
    from minicluster.protocol.messages.read_share_group_state_summary import (
        ReadShareGroupStateSummaryResponse as ReadShareGroupStateSummaryResponse,
    )
    from minicluster.protocol.messages.remove_raft_voter import (
        RemoveRaftVoterRequest as RemoveRaftVoterRequest,
    )
    from minicluster.protocol.messages.remove_raft_voter import (
        RemoveRaftVoterResponse as RemoveRaftVoterResponse,
    )
    from minicluster.protocol.messages.renew_delegation_token import (
        RenewDelegationTokenRequest as RenewDelegationTokenRequest,
    )
    from minicluster.protocol.messages.renew_delegation_token import (
        RenewDelegationTokenResponse as RenewDelegationTokenResponse,
    )
    from minicluster.protocol.messages.sasl_authenticate import (
        SaslAuthenticateRequest as SaslAuthenticateRequest,
    )
    from minicluster.protocol.messages.sasl_authenticate import (
        SaslAuthenticateResponse as SaslAuthenticateResponse,
    )
    from minicluster.protocol.messages.sasl_handshake import (
        SaslHandshakeRequest as SaslHandshakeRequest,
    )
    from minicluster.protocol.messages.sasl_handshake import (
        SaslHandshakeResponse as SaslHandshakeResponse,
    )
    from minicluster.protocol.messages.share_acknowledge import (
        ShareAcknowledgeRequest as ShareAcknowledgeRequest,
    )
    from minicluster.protocol.messages.share_acknowledge import (
        ShareAcknowledgeResponse as ShareAcknowledgeResponse,
    )
    from minicluster.protocol.messages.share_fetch import (
        ShareFetchRequest as ShareFetchRequest,
    )
    from minicluster.protocol.messages.share_fetch import (
        ShareFetchResponse as ShareFetchResponse,
    )
    from minicluster.protocol.messages.share_group_describe import (
        ShareGroupDescribeRequest as ShareGroupDescribeRequest,
    )
    from minicluster.protocol.messages.share_group_describe import (
        ShareGroupDescribeResponse as ShareGroupDescribeResponse,
    )
    from minicluster.protocol.messages.share_group_heartbeat import (
        ShareGroupHeartbeatRequest as ShareGroupHeartbeatRequest,
    )
    from minicluster.protocol.messages.share_group_heartbeat import (
        ShareGroupHeartbeatResponse as ShareGroupHeartbeatResponse,
    )
    from minicluster.protocol.messages.stop_replica import (
        StopReplicaRequest as StopReplicaRequest,
    )
    from minicluster.protocol.messages.stop_replica import (
        StopReplicaResponse as StopReplicaResponse,
    )
    from minicluster.protocol.messages.streams_group_describe import (
        StreamsGroupDescribeRequest as StreamsGroupDescribeRequest,
    )
    from minicluster.protocol.messages.streams_group_describe import (
        StreamsGroupDescribeResponse as StreamsGroupDescribeResponse,
    )
    from minicluster.protocol.messages.streams_group_heartbeat import (
        StreamsGroupHeartbeatRequest as StreamsGroupHeartbeatRequest,
    )
    from minicluster.protocol.messages.streams_group_heartbeat import (
        StreamsGroupHeartbeatResponse as StreamsGroupHeartbeatResponse,
    )
    from minicluster.protocol.messages.sync_group import (
        SyncGroupRequest as SyncGroupRequest,
    )
    from minicluster.protocol.messages.sync_group import (
        SyncGroupResponse as SyncGroupResponse,
    )
    from minicluster.protocol.messages.txn_offset_commit import (
        TxnOffsetCommitRequest as TxnOffsetCommitRequest,
    )
    from minicluster.protocol.messages.txn_offset_commit import (
        TxnOffsetCommitResponse as TxnOffsetCommitResponse,
    )
    from minicluster.protocol.messages.unregister_broker import (
        UnregisterBrokerRequest as UnregisterBrokerRequest,
    )
    from minicluster.protocol.messages.unregister_broker import (
        UnregisterBrokerResponse as UnregisterBrokerResponse,
    )
    from minicluster.protocol.messages.update_features import (
        UpdateFeaturesRequest as UpdateFeaturesRequest,
    )
    from minicluster.protocol.messages.update_features import (
        UpdateFeaturesResponse as UpdateFeaturesResponse,
    )
    from minicluster.protocol.messages.update_metadata import (
        UpdateMetadataRequest as UpdateMetadataRequest,
    )
    from minicluster.protocol.messages.update_metadata import (
        UpdateMetadataResponse as UpdateMetadataResponse,
    )
    from minicluster.protocol.messages.update_raft_voter import (
        UpdateRaftVoterRequest as UpdateRaftVoterRequest,
    )
    from minicluster.protocol.messages.update_raft_voter import (
        UpdateRaftVoterResponse as UpdateRaftVoterResponse,
    )
    from minicluster.protocol.messages.vote import (
        VoteRequest as VoteRequest,
    )
    from minicluster.protocol.messages.vote import (
        VoteResponse as VoteResponse,
    )
    from minicluster.protocol.messages.write_share_group_state import (
        WriteShareGroupStateRequest as WriteShareGroupStateRequest,
    )
    from minicluster.protocol.messages.write_share_group_state import (
        WriteShareGroupStateResponse as WriteShareGroupStateResponse,
    )
    from minicluster.protocol.messages.write_txn_markers import (
        WriteTxnMarkersRequest as WriteTxnMarkersRequest,
    )
    from minicluster.protocol.messages.write_txn_markers import (
        WriteTxnMarkersResponse as WriteTxnMarkersResponse,
    )

HOMES = {
    "AddOffsetsToTxnRequest": "add_offsets_to_txn",
    "AddOffsetsToTxnResponse": "add_offsets_to_txn",
    "AddPartitionsToTxnRequest": "add_partitions_to_txn",
    "AddPartitionsToTxnResponse": "add_partitions_to_txn",
    "AddRaftVoterRequest": "add_raft_voter",
    "AddRaftVoterResponse": "add_raft_voter",
    "AllocateProducerIdsRequest": "allocate_producer_ids",
    "AllocateProducerIdsResponse": "allocate_producer_ids",
    "AlterClientQuotasRequest": "alter_client_quotas",
    "AlterClientQuotasResponse": "alter_client_quotas",
    "AlterConfigsRequest": "alter_configs",
    "AlterConfigsResponse": "alter_configs",
    "AlterPartitionReassignmentsRequest": "alter_partition_reassignments",
    "AlterPartitionReassignmentsResponse": "alter_partition_reassignments",
    "AlterPartitionRequest": "alter_partition",
    "AlterPartitionResponse": "alter_partition",
    "AlterReplicaLogDirsRequest": "alter_replica_log_dirs",
    "AlterReplicaLogDirsResponse": "alter_replica_log_dirs",
    "AlterShareGroupOffsetsRequest": "alter_share_group_offsets",
    "AlterShareGroupOffsetsResponse": "alter_share_group_offsets",
    "AlterUserScramCredentialsRequest": "alter_user_scram_credentials",
    "AlterUserScramCredentialsResponse": "alter_user_scram_credentials",
    "ApiVersionsRequest": "api_versions",
    "ApiVersionsResponse": "api_versions",
    "AssignReplicasToDirsRequest": "assign_replicas_to_dirs",
    "AssignReplicasToDirsResponse": "assign_replicas_to_dirs",
    "BeginQuorumEpochRequest": "begin_quorum_epoch",
    "BeginQuorumEpochResponse": "begin_quorum_epoch",
    "BrokerHeartbeatRequest": "broker_heartbeat",
    "BrokerHeartbeatResponse": "broker_heartbeat",
    "BrokerRegistrationRequest": "broker_registration",
    "BrokerRegistrationResponse": "broker_registration",
    "ConsumerGroupDescribeRequest": "consumer_group_describe",
    "ConsumerGroupDescribeResponse": "consumer_group_describe",
    "ConsumerGroupHeartbeatRequest": "consumer_group_heartbeat",
    "ConsumerGroupHeartbeatResponse": "consumer_group_heartbeat",
    "ConsumerProtocolAssignment": "consumer_protocol",
    "ConsumerProtocolSubscription": "consumer_protocol",
    "ControlRecordTypeSchema": "control_record_type_schema",
    "ControlledShutdownRequest": "controlled_shutdown",
    "ControlledShutdownResponse": "controlled_shutdown",
    "ControllerRegistrationRequest": "controller_registration",
    "ControllerRegistrationResponse": "controller_registration",
    "CreateAclsRequest": "create_acls",
    "CreateAclsResponse": "create_acls",
    "CreateDelegationTokenRequest": "create_delegation_token",
    "CreateDelegationTokenResponse": "create_delegation_token",
    "CreatePartitionsRequest": "create_partitions",
    "CreatePartitionsResponse": "create_partitions",
    "CreateTopicsRequest": "create_topics",
    "CreateTopicsResponse": "create_topics",
    "DefaultPrincipalData": "default_principal_data",
    "DeleteAclsRequest": "delete_acls",
    "DeleteAclsResponse": "delete_acls",
    "DeleteGroupsRequest": "delete_groups",
    "DeleteGroupsResponse": "delete_groups",
    "DeleteRecordsRequest": "delete_records",
    "DeleteRecordsResponse": "delete_records",
    "DeleteShareGroupOffsetsRequest": "delete_share_group_offsets",
    "DeleteShareGroupOffsetsResponse": "delete_share_group_offsets",
    "DeleteShareGroupStateRequest": "delete_share_group_state",
    "DeleteShareGroupStateResponse": "delete_share_group_state",
    "DeleteTopicsRequest": "delete_topics",
    "DeleteTopicsResponse": "delete_topics",
    "DescribeAclsRequest": "describe_acls",
    "DescribeAclsResponse": "describe_acls",
    "DescribeClientQuotasRequest": "describe_client_quotas",
    "DescribeClientQuotasResponse": "describe_client_quotas",
    "DescribeClusterRequest": "describe_cluster",
    "DescribeClusterResponse": "describe_cluster",
    "DescribeConfigsRequest": "describe_configs",
    "DescribeConfigsResponse": "describe_configs",
    "DescribeDelegationTokenRequest": "describe_delegation_token",
    "DescribeDelegationTokenResponse": "describe_delegation_token",
    "DescribeGroupsRequest": "describe_groups",
    "DescribeGroupsResponse": "describe_groups",
    "DescribeLogDirsRequest": "describe_log_dirs",
    "DescribeLogDirsResponse": "describe_log_dirs",
    "DescribeProducersRequest": "describe_producers",
    "DescribeProducersResponse": "describe_producers",
    "DescribeQuorumRequest": "describe_quorum",
    "DescribeQuorumResponse": "describe_quorum",
    "DescribeShareGroupOffsetsRequest": "describe_share_group_offsets",
    "DescribeShareGroupOffsetsResponse": "describe_share_group_offsets",
    "DescribeTopicPartitionsRequest": "describe_topic_partitions",
    "DescribeTopicPartitionsResponse": "describe_topic_partitions",
    "DescribeTransactionsRequest": "describe_transactions",
    "DescribeTransactionsResponse": "describe_transactions",
    "DescribeUserScramCredentialsRequest": "describe_user_scram_credentials",
    "DescribeUserScramCredentialsResponse": "describe_user_scram_credentials",
    "ElectLeadersRequest": "elect_leaders",
    "ElectLeadersResponse": "elect_leaders",
    "EndQuorumEpochRequest": "end_quorum_epoch",
    "EndQuorumEpochResponse": "end_quorum_epoch",
    "EndTxnRequest": "end_txn",
    "EndTxnResponse": "end_txn",
    "EnvelopeRequest": "envelope",
    "EnvelopeResponse": "envelope",
    "ExpireDelegationTokenRequest": "expire_delegation_token",
    "ExpireDelegationTokenResponse": "expire_delegation_token",
    "FetchRequest": "fetch",
    "FetchResponse": "fetch",
    "FetchSnapshotRequest": "fetch_snapshot",
    "FetchSnapshotResponse": "fetch_snapshot",
    "FindCoordinatorRequest": "find_coordinator",
    "FindCoordinatorResponse": "find_coordinator",
    "GetTelemetrySubscriptionsRequest": "get_telemetry_subscriptions",
    "GetTelemetrySubscriptionsResponse": "get_telemetry_subscriptions",
    "HeartbeatRequest": "heartbeat",
    "HeartbeatResponse": "heartbeat",
    "IncrementalAlterConfigsRequest": "incremental_alter_configs",
    "IncrementalAlterConfigsResponse": "incremental_alter_configs",
    "InitProducerIdRequest": "init_producer_id",
    "InitProducerIdResponse": "init_producer_id",
    "InitializeShareGroupStateRequest": "initialize_share_group_state",
    "InitializeShareGroupStateResponse": "initialize_share_group_state",
    "JoinGroupRequest": "join_group",
    "JoinGroupResponse": "join_group",
    "LeaderAndIsrRequest": "leader_and_isr",
    "LeaderAndIsrResponse": "leader_and_isr",
    "LeaveGroupRequest": "leave_group",
    "LeaveGroupResponse": "leave_group",
    "ListClientMetricsResourcesRequest": "list_client_metrics_resources",
    "ListClientMetricsResourcesResponse": "list_client_metrics_resources",
    "ListConfigResourcesRequest": "list_config_resources",
    "ListConfigResourcesResponse": "list_config_resources",
    "ListGroupsRequest": "list_groups",
    "ListGroupsResponse": "list_groups",
    "ListOffsetsRequest": "list_offsets",
    "ListOffsetsResponse": "list_offsets",
    "ListPartitionReassignmentsRequest": "list_partition_reassignments",
    "ListPartitionReassignmentsResponse": "list_partition_reassignments",
    "ListTransactionsRequest": "list_transactions",
    "ListTransactionsResponse": "list_transactions",
    "MetadataRequest": "metadata",
    "MetadataResponse": "metadata",
    "OffsetCommitRequest": "offset_commit",
    "OffsetCommitResponse": "offset_commit",
    "OffsetDeleteRequest": "offset_delete",
    "OffsetDeleteResponse": "offset_delete",
    "OffsetFetchRequest": "offset_fetch",
    "OffsetFetchResponse": "offset_fetch",
    "OffsetForLeaderEpochRequest": "offset_for_leader_epoch",
    "OffsetForLeaderEpochResponse": "offset_for_leader_epoch",
    "ProduceRequest": "produce",
    "ProduceResponse": "produce",
    "PushTelemetryRequest": "push_telemetry",
    "PushTelemetryResponse": "push_telemetry",
    "ReadShareGroupStateRequest": "read_share_group_state",
    "ReadShareGroupStateResponse": "read_share_group_state",
    "ReadShareGroupStateSummaryRequest": "read_share_group_state_summary",
    "ReadShareGroupStateSummaryResponse": "read_share_group_state_summary",
    "RemoveRaftVoterRequest": "remove_raft_voter",
    "RemoveRaftVoterResponse": "remove_raft_voter",
    "RenewDelegationTokenRequest": "renew_delegation_token",
    "RenewDelegationTokenResponse": "renew_delegation_token",
    "RequestHeader": "headers",
    "ResponseHeader": "headers",
    "SaslAuthenticateRequest": "sasl_authenticate",
    "SaslAuthenticateResponse": "sasl_authenticate",
    "SaslHandshakeRequest": "sasl_handshake",
    "SaslHandshakeResponse": "sasl_handshake",
    "ShareAcknowledgeRequest": "share_acknowledge",
    "ShareAcknowledgeResponse": "share_acknowledge",
    "ShareFetchRequest": "share_fetch",
    "ShareFetchResponse": "share_fetch",
    "ShareGroupDescribeRequest": "share_group_describe",
    "ShareGroupDescribeResponse": "share_group_describe",
    "ShareGroupHeartbeatRequest": "share_group_heartbeat",
    "ShareGroupHeartbeatResponse": "share_group_heartbeat",
    "StopReplicaRequest": "stop_replica",
    "StopReplicaResponse": "stop_replica",
    "StreamsGroupDescribeRequest": "streams_group_describe",
    "StreamsGroupDescribeResponse": "streams_group_describe",
    "StreamsGroupHeartbeatRequest": "streams_group_heartbeat",
    "StreamsGroupHeartbeatResponse": "streams_group_heartbeat",
    "SyncGroupRequest": "sync_group",
    "SyncGroupResponse": "sync_group",
    "TxnOffsetCommitRequest": "txn_offset_commit",
    "TxnOffsetCommitResponse": "txn_offset_commit",
    "UnregisterBrokerRequest": "unregister_broker",
    "UnregisterBrokerResponse": "unregister_broker",
    "UpdateFeaturesRequest": "update_features",
    "UpdateFeaturesResponse": "update_features",
    "UpdateMetadataRequest": "update_metadata",
    "UpdateMetadataResponse": "update_metadata",
    "UpdateRaftVoterRequest": "update_raft_voter",
    "UpdateRaftVoterResponse": "update_raft_voter",
    "VoteRequest": "vote",
    "VoteResponse": "vote",
    "WriteShareGroupStateRequest": "write_share_group_state",
    "WriteShareGroupStateResponse": "write_share_group_state",
    "WriteTxnMarkersRequest": "write_txn_markers",
    "WriteTxnMarkersResponse": "write_txn_markers",
}
"""Which module declares a class."""


def __getattr__(name: str) -> Any:
    home = HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(importlib.import_module(f"{__name__}.{home}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*globals(), *HOMES])
