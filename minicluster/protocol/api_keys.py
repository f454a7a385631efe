"""The registry of APIs: key to name, request and response class, and header versions.

A message declares its key. Key 74 is ListConfigResources, whose version 0 is the
ListClientMetricsResources of earlier releases. The key and version of a request have the same
place in every header, so ``request_header_version`` is known before the header is read.

Source:  org.apache.kafka.common.protocol.ApiKeys, ApiMessageType.
"""

from __future__ import annotations

from dataclasses import dataclass

from minicluster.protocol import messages as m
from minicluster.protocol.codec import check_version
from minicluster.protocol.schema import Message

CONTROLLED_SHUTDOWN = 7
API_VERSIONS = 18


@dataclass(frozen=True, slots=True)
class Api:
    """One API: a request and its response."""

    key: int
    name: str
    request: type[Message]
    response: type[Message]

    def request_header_version(self, version: int) -> int:
        """The version of the header in front of a request.

        Errors:  UnsupportedVersion if the request has no such version.
        """
        check_version(self.request, version)
        if self.key == CONTROLLED_SHUTDOWN and version == 0:
            return 0
        return 2 if version in self.request.flexible_versions else 1

    def response_header_version(self, version: int) -> int:
        """The version of the header in front of a response; always 0 for ApiVersions (KIP-511).

        Errors:  UnsupportedVersion if the response has no such version.
        """
        check_version(self.response, version)
        return int(self.key != API_VERSIONS and version in self.response.flexible_versions)


APIS: dict[int, Api] = {
    request.api_key: Api(
        request.api_key, request.__name__.removesuffix("Request"), request, response
    )
    for request, response in (
        (m.ProduceRequest, m.ProduceResponse),
        (m.FetchRequest, m.FetchResponse),
        (m.ListOffsetsRequest, m.ListOffsetsResponse),
        (m.MetadataRequest, m.MetadataResponse),
        (m.LeaderAndIsrRequest, m.LeaderAndIsrResponse),
        (m.StopReplicaRequest, m.StopReplicaResponse),
        (m.UpdateMetadataRequest, m.UpdateMetadataResponse),
        (m.ControlledShutdownRequest, m.ControlledShutdownResponse),
        (m.OffsetCommitRequest, m.OffsetCommitResponse),
        (m.OffsetFetchRequest, m.OffsetFetchResponse),
        (m.FindCoordinatorRequest, m.FindCoordinatorResponse),
        (m.JoinGroupRequest, m.JoinGroupResponse),
        (m.HeartbeatRequest, m.HeartbeatResponse),
        (m.LeaveGroupRequest, m.LeaveGroupResponse),
        (m.SyncGroupRequest, m.SyncGroupResponse),
        (m.DescribeGroupsRequest, m.DescribeGroupsResponse),
        (m.ListGroupsRequest, m.ListGroupsResponse),
        (m.SaslHandshakeRequest, m.SaslHandshakeResponse),
        (m.ApiVersionsRequest, m.ApiVersionsResponse),
        (m.CreateTopicsRequest, m.CreateTopicsResponse),
        (m.DeleteTopicsRequest, m.DeleteTopicsResponse),
        (m.DeleteRecordsRequest, m.DeleteRecordsResponse),
        (m.InitProducerIdRequest, m.InitProducerIdResponse),
        (m.OffsetForLeaderEpochRequest, m.OffsetForLeaderEpochResponse),
        (m.AddPartitionsToTxnRequest, m.AddPartitionsToTxnResponse),
        (m.AddOffsetsToTxnRequest, m.AddOffsetsToTxnResponse),
        (m.EndTxnRequest, m.EndTxnResponse),
        (m.WriteTxnMarkersRequest, m.WriteTxnMarkersResponse),
        (m.TxnOffsetCommitRequest, m.TxnOffsetCommitResponse),
        (m.DescribeAclsRequest, m.DescribeAclsResponse),
        (m.CreateAclsRequest, m.CreateAclsResponse),
        (m.DeleteAclsRequest, m.DeleteAclsResponse),
        (m.DescribeConfigsRequest, m.DescribeConfigsResponse),
        (m.AlterConfigsRequest, m.AlterConfigsResponse),
        (m.AlterReplicaLogDirsRequest, m.AlterReplicaLogDirsResponse),
        (m.DescribeLogDirsRequest, m.DescribeLogDirsResponse),
        (m.SaslAuthenticateRequest, m.SaslAuthenticateResponse),
        (m.CreatePartitionsRequest, m.CreatePartitionsResponse),
        (m.CreateDelegationTokenRequest, m.CreateDelegationTokenResponse),
        (m.RenewDelegationTokenRequest, m.RenewDelegationTokenResponse),
        (m.ExpireDelegationTokenRequest, m.ExpireDelegationTokenResponse),
        (m.DescribeDelegationTokenRequest, m.DescribeDelegationTokenResponse),
        (m.DeleteGroupsRequest, m.DeleteGroupsResponse),
        (m.ElectLeadersRequest, m.ElectLeadersResponse),
        (m.IncrementalAlterConfigsRequest, m.IncrementalAlterConfigsResponse),
        (m.AlterPartitionReassignmentsRequest, m.AlterPartitionReassignmentsResponse),
        (m.ListPartitionReassignmentsRequest, m.ListPartitionReassignmentsResponse),
        (m.OffsetDeleteRequest, m.OffsetDeleteResponse),
        (m.DescribeClientQuotasRequest, m.DescribeClientQuotasResponse),
        (m.AlterClientQuotasRequest, m.AlterClientQuotasResponse),
        (m.DescribeUserScramCredentialsRequest, m.DescribeUserScramCredentialsResponse),
        (m.AlterUserScramCredentialsRequest, m.AlterUserScramCredentialsResponse),
        (m.VoteRequest, m.VoteResponse),
        (m.BeginQuorumEpochRequest, m.BeginQuorumEpochResponse),
        (m.EndQuorumEpochRequest, m.EndQuorumEpochResponse),
        (m.DescribeQuorumRequest, m.DescribeQuorumResponse),
        (m.AlterPartitionRequest, m.AlterPartitionResponse),
        (m.UpdateFeaturesRequest, m.UpdateFeaturesResponse),
        (m.EnvelopeRequest, m.EnvelopeResponse),
        (m.FetchSnapshotRequest, m.FetchSnapshotResponse),
        (m.DescribeClusterRequest, m.DescribeClusterResponse),
        (m.DescribeProducersRequest, m.DescribeProducersResponse),
        (m.BrokerRegistrationRequest, m.BrokerRegistrationResponse),
        (m.BrokerHeartbeatRequest, m.BrokerHeartbeatResponse),
        (m.UnregisterBrokerRequest, m.UnregisterBrokerResponse),
        (m.DescribeTransactionsRequest, m.DescribeTransactionsResponse),
        (m.ListTransactionsRequest, m.ListTransactionsResponse),
        (m.AllocateProducerIdsRequest, m.AllocateProducerIdsResponse),
        (m.ConsumerGroupHeartbeatRequest, m.ConsumerGroupHeartbeatResponse),
        (m.ConsumerGroupDescribeRequest, m.ConsumerGroupDescribeResponse),
        (m.ControllerRegistrationRequest, m.ControllerRegistrationResponse),
        (m.GetTelemetrySubscriptionsRequest, m.GetTelemetrySubscriptionsResponse),
        (m.PushTelemetryRequest, m.PushTelemetryResponse),
        (m.AssignReplicasToDirsRequest, m.AssignReplicasToDirsResponse),
        (m.ListConfigResourcesRequest, m.ListConfigResourcesResponse),
        (m.DescribeTopicPartitionsRequest, m.DescribeTopicPartitionsResponse),
        (m.ShareGroupHeartbeatRequest, m.ShareGroupHeartbeatResponse),
        (m.ShareGroupDescribeRequest, m.ShareGroupDescribeResponse),
        (m.ShareFetchRequest, m.ShareFetchResponse),
        (m.ShareAcknowledgeRequest, m.ShareAcknowledgeResponse),
        (m.AddRaftVoterRequest, m.AddRaftVoterResponse),
        (m.RemoveRaftVoterRequest, m.RemoveRaftVoterResponse),
        (m.UpdateRaftVoterRequest, m.UpdateRaftVoterResponse),
        (m.InitializeShareGroupStateRequest, m.InitializeShareGroupStateResponse),
        (m.ReadShareGroupStateRequest, m.ReadShareGroupStateResponse),
        (m.WriteShareGroupStateRequest, m.WriteShareGroupStateResponse),
        (m.DeleteShareGroupStateRequest, m.DeleteShareGroupStateResponse),
        (m.ReadShareGroupStateSummaryRequest, m.ReadShareGroupStateSummaryResponse),
        (m.StreamsGroupHeartbeatRequest, m.StreamsGroupHeartbeatResponse),
        (m.StreamsGroupDescribeRequest, m.StreamsGroupDescribeResponse),
        (m.DescribeShareGroupOffsetsRequest, m.DescribeShareGroupOffsetsResponse),
        (m.AlterShareGroupOffsetsRequest, m.AlterShareGroupOffsetsResponse),
        (m.DeleteShareGroupOffsetsRequest, m.DeleteShareGroupOffsetsResponse),
    )
}
"""Every API that Kafka 3.9 and 4.3 have, by its key."""

BY_NAME: dict[str, Api] = {api.name: api for api in APIS.values()}
