package org.apache.kafka.controller;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;

import org.apache.kafka.clients.admin.AlterConfigOp.OpType;
import org.apache.kafka.clients.admin.FeatureUpdate.UpgradeType;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.message.AlterPartitionReassignmentsRequestData;
import org.apache.kafka.common.message.AlterPartitionRequestData;
import org.apache.kafka.common.message.AlterPartitionResponseData;
import org.apache.kafka.common.message.BrokerHeartbeatRequestData;
import org.apache.kafka.common.message.BrokerRegistrationRequestData;
import org.apache.kafka.common.message.CreateTopicsRequestData;
import org.apache.kafka.common.message.CreateTopicsResponseData;
import org.apache.kafka.common.metadata.ClearElrRecord;
import org.apache.kafka.common.metadata.FeatureLevelRecord;
import org.apache.kafka.common.protocol.ApiMessage;
import org.apache.kafka.common.requests.ApiError;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.controller.metrics.QuorumControllerMetrics;
import org.apache.kafka.metadata.BrokerRegistrationReply;
import org.apache.kafka.metadata.FinalizedControllerFeatures;
import org.apache.kafka.metadata.SupportedConfigChecker;
import org.apache.kafka.metadata.VersionRange;
import org.apache.kafka.server.common.EligibleLeaderReplicasVersion;
import org.apache.kafka.server.common.KRaftVersion;

import java.util.Map;
import java.util.Map.Entry;
import java.util.Optional;
import java.util.Set;

/** What the QuorumController of release 4.3 builds or calls in a way of its own. */
final class Release {
    static Map<String, VersionRange> supportedFeatures() {
        return QuorumFeatures.defaultSupportedFeatureMap(true);
    }

    static FeatureControlManager.Builder with(FeatureControlManager.Builder builder) {
        return builder.setKRaftVersionAccessor(new KRaftVersionAccessor() {
            public KRaftVersion kraftVersion() {
                return KRaftVersion.KRAFT_VERSION_1;
            }

            public void upgradeKRaftVersion(int epoch, KRaftVersion version, boolean validateOnly) { }
        });
    }

    static ClusterControlManager.Builder with(ClusterControlManager.Builder builder, Managers managers, JsonNode header, Time time) {
        return builder.
            setBrokerShutdownHandler((id, isClean, records) -> managers.replication().handleBrokerShutdown(id, isClean, records)).
            setMetrics(new QuorumControllerMetrics(Optional.empty(), time, header.get("broker_session_timeout_ms").asInt()));
    }

    static ConfigurationControlManager.Builder with(ConfigurationControlManager.Builder builder, FeatureControlManager features) {
        return builder.setFeatureControl(features).setSupportedConfigChecker(SupportedConfigChecker.TRUE);
    }

    static ReplicationControlManager.Builder with(ReplicationControlManager.Builder builder, JsonNode header) {
        return builder;
    }

    static void replayElr(FeatureControlManager features, JsonNode header) {
        short elr = (short) header.get("eligible_leader_replicas_version").asInt();
        String name = EligibleLeaderReplicasVersion.FEATURE_NAME;
        if (elr > 0) features.replay(new FeatureLevelRecord().setName(name).setFeatureLevel(elr));
    }

    static boolean replay(Managers managers, ApiMessage message) {
        if (message instanceof ClearElrRecord record) managers.replication.replay(record);
        return message instanceof ClearElrRecord;
    }

    static ControllerResult<BrokerRegistrationReply> register(
        Managers managers, BrokerRegistrationRequestData request, long offset, FinalizedControllerFeatures features, boolean isClean
    ) {
        return managers.cluster.registerBroker(request, offset, features, isClean);
    }

    static void contact(Managers managers, BrokerHeartbeatRequestData request, JsonNode cordoned) {
        request.setCordonedLogDirs(cordoned == null ? null : ControllerProgram.uuids(cordoned));
        managers.cluster.trackBrokerHeartbeat(request.brokerId(), request.brokerEpoch());
    }

    static AlterPartitionRequestData.TopicData topic(JsonNode wanted, int version) {
        return new AlterPartitionRequestData.TopicData().setTopicId(Uuid.fromString(wanted.get("topic_id").asText()));
    }

    static void nameTopic(ObjectNode shown, AlterPartitionResponseData.TopicData topic, int version) {
        shown.put("topic_id", topic.topicId().toString());
    }

    static void allowFactorChange(AlterPartitionReassignmentsRequestData request, boolean isAllowed) {
        request.setAllowReplicationFactorChange(isAllowed);
    }

    static ControllerResult<CreateTopicsResponseData> createTopics(
        Managers managers, ControllerRequestContext context, CreateTopicsRequestData request, Set<String> describable
    ) {
        return managers.replication.createTopics(context, request, describable, false);
    }

    static ControllerResult<Map<ConfigResource, ApiError>> alterConfigs(
        Managers managers, Map<ConfigResource, Map<String, Entry<OpType, String>>> changes
    ) {
        return managers.configs.incrementalAlterConfigs(changes, false, false);
    }

    static ControllerResult<?> updateFeatures(
        Managers managers, Map<String, Short> updates, Map<String, UpgradeType> types, boolean validateOnly, ObjectNode done
    ) {
        ControllerResult<ApiError> result = managers.configs.updateFeatures(updates, types, validateOnly, 0);
        ControllerProgram.show(result.response(), done);
        return result;
    }
}
