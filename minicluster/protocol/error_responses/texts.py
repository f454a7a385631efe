"""The text of each error code, which some responses carry beside the code.

Source:  org.apache.kafka.common.protocol.Errors.
"""

from __future__ import annotations

from collections.abc import Mapping

from minicluster.protocol.error_codes import ErrorCode

_E = ErrorCode

TEXTS: Mapping[int, str] = {
    _E.UNKNOWN_SERVER_ERROR: (
        "The server experienced an unexpected error when processing the request."
    ),
    _E.OFFSET_OUT_OF_RANGE: (
        "The requested offset is not within the range of offsets maintained by the server."
    ),
    _E.CORRUPT_MESSAGE: (
        "This message has failed its CRC checksum, exceeds the valid size, has a null key for a "
        "compacted topic, or is otherwise corrupt."
    ),
    _E.UNKNOWN_TOPIC_OR_PARTITION: "This server does not host this topic-partition.",
    _E.INVALID_FETCH_SIZE: "The requested fetch size is invalid.",
    _E.LEADER_NOT_AVAILABLE: (
        "There is no leader for this topic-partition as we are in the middle of a leadership "
        "election."
    ),
    _E.NOT_LEADER_OR_FOLLOWER: (
        "For requests intended only for the leader, this error indicates that the broker is not "
        "the current leader. For requests intended for any replica, this error indicates that "
        "the broker is not a replica of the topic partition."
    ),
    _E.REQUEST_TIMED_OUT: "The request timed out.",
    _E.BROKER_NOT_AVAILABLE: "The broker is not available.",
    _E.REPLICA_NOT_AVAILABLE: (
        "The replica is not available for the requested topic-partition. Produce/Fetch requests "
        "and other requests intended only for the leader or follower return "
        "NOT_LEADER_OR_FOLLOWER if the broker is not a replica of the topic-partition."
    ),
    _E.MESSAGE_TOO_LARGE: (
        "The request included a message larger than the max message size the server will accept."
    ),
    _E.STALE_CONTROLLER_EPOCH: "The controller moved to another broker.",
    _E.OFFSET_METADATA_TOO_LARGE: "The metadata field of the offset request was too large.",
    _E.NETWORK_EXCEPTION: "The server disconnected before a response was received.",
    _E.COORDINATOR_LOAD_IN_PROGRESS: "The coordinator is loading and hence can't process requests.",
    _E.COORDINATOR_NOT_AVAILABLE: "The coordinator is not available.",
    _E.NOT_COORDINATOR: "This is not the correct coordinator.",
    _E.INVALID_TOPIC_EXCEPTION: (
        "The request attempted to perform an operation on an invalid topic."
    ),
    _E.RECORD_LIST_TOO_LARGE: (
        "The request included message batch larger than the configured segment size on the server."
    ),
    _E.NOT_ENOUGH_REPLICAS: (
        "Messages are rejected since there are fewer in-sync replicas than required."
    ),
    _E.NOT_ENOUGH_REPLICAS_AFTER_APPEND: (
        "Messages are written to the log, but to fewer in-sync replicas than required."
    ),
    _E.INVALID_REQUIRED_ACKS: "Produce request specified an invalid value for required acks.",
    _E.ILLEGAL_GENERATION: "Specified group generation id is not valid.",
    _E.INCONSISTENT_GROUP_PROTOCOL: (
        "The group member's supported protocols are incompatible with those of existing members "
        "or first group member tried to join with empty protocol type or empty protocol list."
    ),
    _E.INVALID_GROUP_ID: "The group id is invalid.",
    _E.UNKNOWN_MEMBER_ID: "The coordinator is not aware of this member.",
    _E.INVALID_SESSION_TIMEOUT: (
        "The session timeout is not within the range allowed by the broker (as configured by "
        "group.min.session.timeout.ms and group.max.session.timeout.ms)."
    ),
    _E.REBALANCE_IN_PROGRESS: "The group is rebalancing, so a rejoin is needed.",
    _E.INVALID_COMMIT_OFFSET_SIZE: "The committing offset data size is not valid.",
    _E.TOPIC_AUTHORIZATION_FAILED: "Topic authorization failed.",
    _E.GROUP_AUTHORIZATION_FAILED: "Group authorization failed.",
    _E.CLUSTER_AUTHORIZATION_FAILED: "Cluster authorization failed.",
    _E.INVALID_TIMESTAMP: "The timestamp of the message is out of acceptable range.",
    _E.UNSUPPORTED_SASL_MECHANISM: "The broker does not support the requested SASL mechanism.",
    _E.ILLEGAL_SASL_STATE: "Request is not valid given the current SASL state.",
    _E.UNSUPPORTED_VERSION: "The version of API is not supported.",
    _E.TOPIC_ALREADY_EXISTS: "Topic with this name already exists.",
    _E.INVALID_PARTITIONS: "Number of partitions is below 1.",
    _E.INVALID_REPLICATION_FACTOR: (
        "Replication factor is below 1 or larger than the number of available brokers."
    ),
    _E.INVALID_REPLICA_ASSIGNMENT: "Replica assignment is invalid.",
    _E.INVALID_CONFIG: "Configuration is invalid.",
    _E.NOT_CONTROLLER: "This is not the correct controller for this cluster.",
    _E.INVALID_REQUEST: (
        "This most likely occurs because of a request being malformed by the client library or "
        "the message was sent to an incompatible broker. See the broker logs for more details."
    ),
    _E.UNSUPPORTED_FOR_MESSAGE_FORMAT: (
        "The message format version on the broker does not support the request."
    ),
    _E.POLICY_VIOLATION: "Request parameters do not satisfy the configured policy.",
    _E.OUT_OF_ORDER_SEQUENCE_NUMBER: "The broker received an out of order sequence number.",
    _E.DUPLICATE_SEQUENCE_NUMBER: "The broker received a duplicate sequence number.",
    _E.INVALID_PRODUCER_EPOCH: "Producer attempted to produce with an old epoch.",
    _E.INVALID_TXN_STATE: "The producer attempted a transactional operation in an invalid state.",
    _E.INVALID_PRODUCER_ID_MAPPING: (
        "The producer attempted to use a producer id which is not currently assigned to its "
        "transactional id."
    ),
    _E.INVALID_TRANSACTION_TIMEOUT: (
        "The transaction timeout is larger than the maximum value allowed by the broker (as "
        "configured by transaction.max.timeout.ms)."
    ),
    _E.CONCURRENT_TRANSACTIONS: (
        "The producer attempted to update a transaction while another concurrent operation on "
        "the same transaction was ongoing."
    ),
    _E.TRANSACTION_COORDINATOR_FENCED: (
        "Indicates that the transaction coordinator sending a WriteTxnMarker is no longer the "
        "current coordinator for a given producer."
    ),
    _E.TRANSACTIONAL_ID_AUTHORIZATION_FAILED: "Transactional Id authorization failed.",
    _E.SECURITY_DISABLED: "Security features are disabled.",
    _E.OPERATION_NOT_ATTEMPTED: (
        "The broker did not attempt to execute this operation. This may happen for batched RPCs "
        "where some operations in the batch failed, causing the broker to respond without "
        "trying the rest."
    ),
    _E.KAFKA_STORAGE_ERROR: "Disk error when trying to access log file on the disk.",
    _E.LOG_DIR_NOT_FOUND: "The user-specified log directory is not found in the broker config.",
    _E.SASL_AUTHENTICATION_FAILED: "SASL Authentication failed.",
    _E.UNKNOWN_PRODUCER_ID: (
        "This exception is raised by the broker if it could not locate the producer metadata "
        "associated with the producerId in question. This could happen if, for instance, the "
        "producer's records were deleted because their retention time had elapsed. Once the "
        "last records of the producerId are removed, the producer's metadata is removed from "
        "the broker, and future appends by the producer will return this exception."
    ),
    _E.REASSIGNMENT_IN_PROGRESS: "A partition reassignment is in progress.",
    _E.DELEGATION_TOKEN_AUTH_DISABLED: "Delegation Token feature is not enabled.",
    _E.DELEGATION_TOKEN_NOT_FOUND: "Delegation Token is not found on server.",
    _E.DELEGATION_TOKEN_OWNER_MISMATCH: "Specified Principal is not valid Owner/Renewer.",
    _E.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED: (
        "Delegation Token requests are not allowed on PLAINTEXT/1-way SSL channels and on "
        "delegation token authenticated channels."
    ),
    _E.DELEGATION_TOKEN_AUTHORIZATION_FAILED: "Delegation Token authorization failed.",
    _E.DELEGATION_TOKEN_EXPIRED: "Delegation Token is expired.",
    _E.INVALID_PRINCIPAL_TYPE: "Supplied principalType is not supported.",
    _E.NON_EMPTY_GROUP: "The group is not empty.",
    _E.GROUP_ID_NOT_FOUND: "The group id does not exist.",
    _E.FETCH_SESSION_ID_NOT_FOUND: "The fetch session ID was not found.",
    _E.INVALID_FETCH_SESSION_EPOCH: "The fetch session epoch is invalid.",
    _E.LISTENER_NOT_FOUND: (
        "There is no listener on the leader broker that matches the listener on which metadata "
        "request was processed."
    ),
    _E.TOPIC_DELETION_DISABLED: "Topic deletion is disabled.",
    _E.FENCED_LEADER_EPOCH: (
        "The leader epoch in the request is older than the epoch on the broker."
    ),
    _E.UNKNOWN_LEADER_EPOCH: (
        "The leader epoch in the request is newer than the epoch on the broker."
    ),
    _E.UNSUPPORTED_COMPRESSION_TYPE: (
        "The requesting client does not support the compression type of given partition."
    ),
    _E.STALE_BROKER_EPOCH: "Broker epoch has changed.",
    _E.OFFSET_NOT_AVAILABLE: (
        "The leader high watermark has not caught up from a recent leader election so the "
        "offsets cannot be guaranteed to be monotonically increasing."
    ),
    _E.MEMBER_ID_REQUIRED: (
        "The group member needs to have a valid member id before actually entering a consumer "
        "group."
    ),
    _E.PREFERRED_LEADER_NOT_AVAILABLE: "The preferred leader was not available.",
    _E.GROUP_MAX_SIZE_REACHED: "The group has reached its maximum size.",
    _E.FENCED_INSTANCE_ID: (
        "The broker rejected this static consumer since another consumer with the same "
        "group.instance.id has registered with a different member.id."
    ),
    _E.ELIGIBLE_LEADERS_NOT_AVAILABLE: "Eligible topic partition leaders are not available.",
    _E.ELECTION_NOT_NEEDED: "Leader election not needed for topic partition.",
    _E.NO_REASSIGNMENT_IN_PROGRESS: "No partition reassignment is in progress.",
    _E.GROUP_SUBSCRIBED_TO_TOPIC: (
        "Deleting offsets of a topic is forbidden while the consumer group is actively "
        "subscribed to it."
    ),
    _E.INVALID_RECORD: (
        "This record has failed the validation on broker and hence will be rejected."
    ),
    _E.UNSTABLE_OFFSET_COMMIT: "There are unstable offsets that need to be cleared.",
    _E.THROTTLING_QUOTA_EXCEEDED: "The throttling quota has been exceeded.",
    _E.PRODUCER_FENCED: (
        "There is a newer producer with the same transactionalId which fences the current one."
    ),
    _E.RESOURCE_NOT_FOUND: "A request illegally referred to a resource that does not exist.",
    _E.DUPLICATE_RESOURCE: "A request illegally referred to the same resource twice.",
    _E.UNACCEPTABLE_CREDENTIAL: "Requested credential would not meet criteria for acceptability.",
    _E.INCONSISTENT_VOTER_SET: (
        "Indicates that the either the sender or recipient of a voter-only request is not one "
        "of the expected voters."
    ),
    _E.INVALID_UPDATE_VERSION: "The given update version was invalid.",
    _E.FEATURE_UPDATE_FAILED: (
        "Unable to update finalized features due to an unexpected server error."
    ),
    _E.PRINCIPAL_DESERIALIZATION_FAILURE: (
        "Request principal deserialization failed during forwarding. This indicates an internal "
        "error on the broker cluster security setup."
    ),
    _E.SNAPSHOT_NOT_FOUND: "Requested snapshot was not found.",
    _E.POSITION_OUT_OF_RANGE: (
        "Requested position is not greater than or equal to zero, and less than the size of the "
        "snapshot."
    ),
    _E.UNKNOWN_TOPIC_ID: "This server does not host this topic ID.",
    _E.DUPLICATE_BROKER_REGISTRATION: "This broker ID is already in use.",
    _E.BROKER_ID_NOT_REGISTERED: "The given broker ID was not registered.",
    _E.INCONSISTENT_TOPIC_ID: "The log's topic ID did not match the topic ID in the request.",
    _E.INCONSISTENT_CLUSTER_ID: (
        "The clusterId in the request does not match that found on the server."
    ),
    _E.TRANSACTIONAL_ID_NOT_FOUND: "The transactionalId could not be found.",
    _E.FETCH_SESSION_TOPIC_ID_ERROR: "The fetch session encountered inconsistent topic ID usage.",
    _E.INELIGIBLE_REPLICA: "The new ISR contains at least one ineligible replica.",
    _E.NEW_LEADER_ELECTED: (
        "The AlterPartition request successfully updated the partition state but the leader has "
        "changed."
    ),
    _E.OFFSET_MOVED_TO_TIERED_STORAGE: "The requested offset is moved to tiered storage.",
    _E.FENCED_MEMBER_EPOCH: (
        "The member epoch is fenced by the group coordinator. The member must abandon all its "
        "partitions and rejoin."
    ),
    _E.UNRELEASED_INSTANCE_ID: (
        "The instance ID is still used by another member in the consumer group. That member "
        "must leave first."
    ),
    _E.UNSUPPORTED_ASSIGNOR: (
        "The assignor or its version range is not supported by the consumer group."
    ),
    _E.STALE_MEMBER_EPOCH: (
        "The member epoch is stale. The member must retry after receiving its updated member "
        "epoch via the ConsumerGroupHeartbeat API."
    ),
    _E.MISMATCHED_ENDPOINT_TYPE: "The request was sent to an endpoint of the wrong type.",
    _E.UNSUPPORTED_ENDPOINT_TYPE: "This endpoint type is not supported yet.",
    _E.UNKNOWN_CONTROLLER_ID: "This controller ID is not known.",
    _E.UNKNOWN_SUBSCRIPTION_ID: (
        "Client sent a push telemetry request with an invalid or outdated subscription ID."
    ),
    _E.TELEMETRY_TOO_LARGE: (
        "Client sent a push telemetry request larger than the maximum size the broker will accept."
    ),
    _E.INVALID_REGISTRATION: "The controller has considered the broker registration to be invalid.",
    _E.TRANSACTION_ABORTABLE: (
        "The server encountered an error with the transaction. The client can abort the "
        "transaction to continue using this transactional ID."
    ),
    _E.INVALID_RECORD_STATE: (
        "The record state is invalid. The acknowledgement of delivery could not be completed."
    ),
    _E.SHARE_SESSION_NOT_FOUND: "The share session was not found.",
    _E.INVALID_SHARE_SESSION_EPOCH: "The share session epoch is invalid.",
    _E.FENCED_STATE_EPOCH: (
        "The share coordinator rejected the request because the share-group state epoch did not "
        "match."
    ),
    _E.INVALID_VOTER_KEY: "The voter key doesn't match the receiving replica's key.",
    _E.DUPLICATE_VOTER: "The voter is already part of the set of voters.",
    _E.VOTER_NOT_FOUND: "The voter is not part of the set of voters.",
    _E.INVALID_REGULAR_EXPRESSION: "The regular expression is not valid.",
    _E.REBOOTSTRAP_REQUIRED: (
        "Client metadata is stale. The client should rebootstrap to obtain new metadata."
    ),
    _E.STREAMS_INVALID_TOPOLOGY: "The supplied topology is invalid.",
    _E.STREAMS_INVALID_TOPOLOGY_EPOCH: "The supplied topology epoch is invalid.",
    _E.STREAMS_TOPOLOGY_FENCED: "The supplied topology epoch is outdated.",
    _E.SHARE_SESSION_LIMIT_REACHED: "The limit of share sessions has been reached.",
}
