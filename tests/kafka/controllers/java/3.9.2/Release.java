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
import org.apache.kafka.common.protocol.ApiMessage;
import org.apache.kafka.common.requests.ApiError;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.metadata.BrokerRegistrationReply;
import org.apache.kafka.metadata.FinalizedControllerFeatures;
import org.apache.kafka.metadata.VersionRange;
import org.apache.kafka.server.common.MetadataVersion;

import java.util.Map;
import java.util.Map.Entry;
import java.util.Set;
import java.util.TreeMap;

/** What the QuorumController of release 3.9 builds or calls in a way of its own. */
final class Release {
    static Map<String, VersionRange> supportedFeatures() {
        return QuorumFeatures.defaultFeatureMap(true);
    }

    static FeatureControlManager.Builder with(FeatureControlManager.Builder builder) {
        return builder.setMetadataVersion(MetadataVersion.MINIMUM_KRAFT_VERSION);
    }

    static ClusterControlManager.Builder with(ClusterControlManager.Builder builder, Managers managers, JsonNode header, Time time) {
        return builder.
            setBrokerUncleanShutdownHandler((id, records) -> managers.replication().handleBrokerUncleanShutdown(id, records)).
            setInterBrokerListenerName("PLAINTEXT");
    }

    static ConfigurationControlManager.Builder with(ConfigurationControlManager.Builder builder, FeatureControlManager features) {
        return builder;
    }

    static ReplicationControlManager.Builder with(ReplicationControlManager.Builder builder, JsonNode header) {
        return builder.setEligibleLeaderReplicasEnabled(header.get("eligible_leader_replicas_version").asInt() > 0);
    }

    static void replayElr(FeatureControlManager features, JsonNode header) { }

    static boolean replay(Managers managers, ApiMessage message) {
        return false;
    }

    static ControllerResult<BrokerRegistrationReply> register(
        Managers managers, BrokerRegistrationRequestData request, long offset, FinalizedControllerFeatures features, boolean isClean
    ) {
        return managers.cluster.registerBroker(request, offset, features);
    }

    static void contact(Managers managers, BrokerHeartbeatRequestData request, JsonNode cordoned) { }

    static AlterPartitionRequestData.TopicData topic(JsonNode wanted, int version) {
        var topic = new AlterPartitionRequestData.TopicData();
        if (version >= 2) return topic.setTopicId(Uuid.fromString(wanted.get("topic_id").asText()));
        return topic.setTopicName(wanted.get("topic_name").asText());
    }

    static void nameTopic(ObjectNode shown, AlterPartitionResponseData.TopicData topic, int version) {
        if (version >= 2) shown.put("topic_id", topic.topicId().toString());
        else shown.put("topic_name", topic.topicName());
    }

    static void allowFactorChange(AlterPartitionReassignmentsRequestData request, boolean isAllowed) { }

    static ControllerResult<CreateTopicsResponseData> createTopics(
        Managers managers, ControllerRequestContext context, CreateTopicsRequestData request, Set<String> describable
    ) {
        return managers.replication.createTopics(context, request, describable);
    }

    static ControllerResult<Map<ConfigResource, ApiError>> alterConfigs(
        Managers managers, Map<ConfigResource, Map<String, Entry<OpType, String>>> changes
    ) {
        return managers.configs.incrementalAlterConfigs(changes, false);
    }

    static ControllerResult<?> updateFeatures(
        Managers managers, Map<String, Short> updates, Map<String, UpgradeType> types, boolean validateOnly, ObjectNode done
    ) {
        ControllerResult<Map<String, ApiError>> result = managers.features.updateFeatures(updates, types, validateOnly);
        var shown = done.putArray("response");
        new TreeMap<>(result.response()).forEach((name, error) -> shown.addObject().
            put("feature", name).
            put("error", error.error().name()).
            put("error_message", error.message()));
        return result;
    }
}
