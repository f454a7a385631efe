"""The registry of APIs: key to name, request and response class, and header versions.

Classes are loaded on first use. Key 74 is ListConfigResources, whose version 0 is the
ListClientMetricsResources of earlier releases. The key and version of a request have the same
place in every header, so ``request_header_version`` is known before the header is read.

Source:  org.apache.kafka.common.protocol.ApiKeys, ApiMessageType.
"""

from __future__ import annotations

from minicluster.lazy_dataclass import dataclass
from minicluster.protocol import messages
from minicluster.protocol.codec import check_version
from minicluster.protocol.schema import Message

CONTROLLED_SHUTDOWN = 7
API_VERSIONS = 18


@dataclass(frozen=True, slots=True)
class Api:
    """One API: a request and its response."""

    key: int
    name: str

    @property
    def request(self) -> type[Message]:
        """The class of its requests."""
        return getattr(messages, self.name + "Request")  # type: ignore[no-any-return]

    @property
    def response(self) -> type[Message]:
        """The class of its responses."""
        return getattr(messages, self.name + "Response")  # type: ignore[no-any-return]

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
    api.key: api
    for api in (
        Api(0, "Produce"),
        Api(1, "Fetch"),
        Api(2, "ListOffsets"),
        Api(3, "Metadata"),
        Api(4, "LeaderAndIsr"),
        Api(5, "StopReplica"),
        Api(6, "UpdateMetadata"),
        Api(7, "ControlledShutdown"),
        Api(8, "OffsetCommit"),
        Api(9, "OffsetFetch"),
        Api(10, "FindCoordinator"),
        Api(11, "JoinGroup"),
        Api(12, "Heartbeat"),
        Api(13, "LeaveGroup"),
        Api(14, "SyncGroup"),
        Api(15, "DescribeGroups"),
        Api(16, "ListGroups"),
        Api(17, "SaslHandshake"),
        Api(18, "ApiVersions"),
        Api(19, "CreateTopics"),
        Api(20, "DeleteTopics"),
        Api(21, "DeleteRecords"),
        Api(22, "InitProducerId"),
        Api(23, "OffsetForLeaderEpoch"),
        Api(24, "AddPartitionsToTxn"),
        Api(25, "AddOffsetsToTxn"),
        Api(26, "EndTxn"),
        Api(27, "WriteTxnMarkers"),
        Api(28, "TxnOffsetCommit"),
        Api(29, "DescribeAcls"),
        Api(30, "CreateAcls"),
        Api(31, "DeleteAcls"),
        Api(32, "DescribeConfigs"),
        Api(33, "AlterConfigs"),
        Api(34, "AlterReplicaLogDirs"),
        Api(35, "DescribeLogDirs"),
        Api(36, "SaslAuthenticate"),
        Api(37, "CreatePartitions"),
        Api(38, "CreateDelegationToken"),
        Api(39, "RenewDelegationToken"),
        Api(40, "ExpireDelegationToken"),
        Api(41, "DescribeDelegationToken"),
        Api(42, "DeleteGroups"),
        Api(43, "ElectLeaders"),
        Api(44, "IncrementalAlterConfigs"),
        Api(45, "AlterPartitionReassignments"),
        Api(46, "ListPartitionReassignments"),
        Api(47, "OffsetDelete"),
        Api(48, "DescribeClientQuotas"),
        Api(49, "AlterClientQuotas"),
        Api(50, "DescribeUserScramCredentials"),
        Api(51, "AlterUserScramCredentials"),
        Api(52, "Vote"),
        Api(53, "BeginQuorumEpoch"),
        Api(54, "EndQuorumEpoch"),
        Api(55, "DescribeQuorum"),
        Api(56, "AlterPartition"),
        Api(57, "UpdateFeatures"),
        Api(58, "Envelope"),
        Api(59, "FetchSnapshot"),
        Api(60, "DescribeCluster"),
        Api(61, "DescribeProducers"),
        Api(62, "BrokerRegistration"),
        Api(63, "BrokerHeartbeat"),
        Api(64, "UnregisterBroker"),
        Api(65, "DescribeTransactions"),
        Api(66, "ListTransactions"),
        Api(67, "AllocateProducerIds"),
        Api(68, "ConsumerGroupHeartbeat"),
        Api(69, "ConsumerGroupDescribe"),
        Api(70, "ControllerRegistration"),
        Api(71, "GetTelemetrySubscriptions"),
        Api(72, "PushTelemetry"),
        Api(73, "AssignReplicasToDirs"),
        Api(74, "ListConfigResources"),
        Api(75, "DescribeTopicPartitions"),
        Api(76, "ShareGroupHeartbeat"),
        Api(77, "ShareGroupDescribe"),
        Api(78, "ShareFetch"),
        Api(79, "ShareAcknowledge"),
        Api(80, "AddRaftVoter"),
        Api(81, "RemoveRaftVoter"),
        Api(82, "UpdateRaftVoter"),
        Api(83, "InitializeShareGroupState"),
        Api(84, "ReadShareGroupState"),
        Api(85, "WriteShareGroupState"),
        Api(86, "DeleteShareGroupState"),
        Api(87, "ReadShareGroupStateSummary"),
        Api(88, "StreamsGroupHeartbeat"),
        Api(89, "StreamsGroupDescribe"),
        Api(90, "DescribeShareGroupOffsets"),
        Api(91, "AlterShareGroupOffsets"),
        Api(92, "DeleteShareGroupOffsets"),
    )
}
"""Every API that Kafka 3.9 and 4.3 have, by its key."""

BY_NAME: dict[str, Api] = {api.name: api for api in APIS.values()}
