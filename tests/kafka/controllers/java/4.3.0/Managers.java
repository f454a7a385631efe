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
import org.apache.kafka.common.metadata.*;
import org.apache.kafka.common.protocol.ApiMessage;
import org.apache.kafka.common.requests.ApiError;
import org.apache.kafka.common.utils.LogContext;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.controller.metrics.QuorumControllerMetrics;
import org.apache.kafka.metadata.BrokerRegistrationReply;
import org.apache.kafka.metadata.FinalizedControllerFeatures;
import org.apache.kafka.metadata.KafkaConfigSchema;
import org.apache.kafka.metadata.SupportedConfigChecker;
import org.apache.kafka.metadata.VersionRange;
import org.apache.kafka.metadata.placement.ReplicaPlacer;
import org.apache.kafka.server.common.EligibleLeaderReplicasVersion;
import org.apache.kafka.server.common.KRaftVersion;
import org.apache.kafka.server.common.MetadataVersion;
import org.apache.kafka.timeline.SnapshotRegistry;

import java.util.HashMap;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import java.util.Map.Entry;
import java.util.Optional;
import java.util.Set;
import java.util.concurrent.TimeUnit;
import java.util.function.Consumer;

/** The managers of release 4.3, as its QuorumController builds and calls them. */
class Managers {
    final FeatureControlManager features;
    final ClusterControlManager cluster;
    final ConfigurationControlManager configs;
    final ReplicationControlManager replication;

    Managers(
        JsonNode header, Time time, KafkaConfigSchema schema, Map<String, Object> staticConfig,
        ReplicaPlacer placer, Consumer<ConfigResource> existence
    ) {
        LogContext log = new LogContext();
        SnapshotRegistry registry = new SnapshotRegistry(log);
        features = new FeatureControlManager.Builder().
            setLogContext(log).
            setSnapshotRegistry(registry).
            setQuorumFeatures(new QuorumFeatures(0, QuorumFeatures.defaultSupportedFeatureMap(true), List.of(0))).
            setClusterFeatureSupportDescriber(new ClusterFeatureSupportDescriber() {
                public Iterator<Entry<Integer, Map<String, VersionRange>>> brokerSupported() {
                    return cluster().brokerSupportedFeatures();
                }

                public Iterator<Entry<Integer, Map<String, VersionRange>>> controllerSupported() {
                    return cluster().controllerSupportedFeatures();
                }
            }).
            setKRaftVersionAccessor(new KRaftVersionAccessor() {
                public KRaftVersion kraftVersion() {
                    return KRaftVersion.KRAFT_VERSION_1;
                }

                public void upgradeKRaftVersion(int epoch, KRaftVersion version, boolean validateOnly) { }
            }).
            build();
        cluster = new ClusterControlManager.Builder().
            setLogContext(log).
            setClusterId(header.get("cluster_id").asText()).
            setTime(time).
            setSnapshotRegistry(registry).
            setSessionTimeoutNs(TimeUnit.MILLISECONDS.toNanos(header.get("broker_session_timeout_ms").asLong())).
            setReplicaPlacer(placer).
            setFeatureControlManager(features).
            setBrokerShutdownHandler((id, isClean, records) -> replication().handleBrokerShutdown(id, isClean, records)).
            setMetrics(new QuorumControllerMetrics(Optional.empty(), time, header.get("broker_session_timeout_ms").asInt())).
            build();
        configs = new ConfigurationControlManager.Builder().
            setLogContext(log).
            setSnapshotRegistry(registry).
            setKafkaConfigSchema(schema).
            setExistenceChecker(existence).
            setAlterConfigPolicy(Optional.empty()).
            setValidator(ConfigurationValidator.NO_OP).
            setStaticConfig(staticConfig).
            setNodeId(0).
            setFeatureControl(features).
            setSupportedConfigChecker(SupportedConfigChecker.TRUE).
            build();
        replication = new ReplicationControlManager.Builder().
            setSnapshotRegistry(registry).
            setLogContext(log).
            setDefaultReplicationFactor((short) header.get("default_replication_factor").asInt()).
            setDefaultNumPartitions(header.get("default_num_partitions").asInt()).
            setConfigurationControl(configs).
            setClusterControl(cluster).
            setCreateTopicPolicy(Optional.empty()).
            setFeatureControl(features).
            build();
        replay(new FeatureLevelRecord().
            setName(MetadataVersion.FEATURE_NAME).
            setFeatureLevel((short) header.get("metadata_version_level").asInt()), 0);
        short elr = (short) header.get("eligible_leader_replicas_version").asInt();
        if (elr > 0) {
            String name = EligibleLeaderReplicasVersion.FEATURE_NAME;
            replay(new FeatureLevelRecord().setName(name).setFeatureLevel(elr), 0);
        }
        cluster.activate();
    }

    private ClusterControlManager cluster() {
        return cluster;
    }

    private ReplicationControlManager replication() {
        return replication;
    }

    void replay(ApiMessage message, long offset) {
        if (message instanceof RegisterBrokerRecord record) cluster.replay(record, offset);
        else if (message instanceof UnregisterBrokerRecord record) cluster.replay(record);
        else if (message instanceof TopicRecord record) replication.replay(record);
        else if (message instanceof PartitionRecord record) replication.replay(record);
        else if (message instanceof ConfigRecord record) configs.replay(record);
        else if (message instanceof PartitionChangeRecord record) replication.replay(record);
        else if (message instanceof FenceBrokerRecord record) cluster.replay(record);
        else if (message instanceof UnfenceBrokerRecord record) cluster.replay(record);
        else if (message instanceof RemoveTopicRecord record) replication.replay(record);
        else if (message instanceof FeatureLevelRecord record) features.replay(record);
        else if (message instanceof ClearElrRecord record) replication.replay(record);
        else if (message instanceof BrokerRegistrationChangeRecord record) cluster.replay(record);
        else throw new IllegalStateException(message.toString());
    }

    ControllerResult<BrokerRegistrationReply> register(BrokerRegistrationRequestData request, long offset, boolean isClean) {
        Map<String, Short> levels = new HashMap<>(features.finalizedFeatures(Long.MAX_VALUE).featureMap());
        levels.put("kraft.version", (short) 0);
        return cluster.registerBroker(request, offset, new FinalizedControllerFeatures(levels, Long.MAX_VALUE), isClean);
    }

    void contact(BrokerHeartbeatRequestData request, JsonNode cordoned) {
        request.setCordonedLogDirs(cordoned == null ? null : ControllerProgram.uuids(cordoned));
        cluster.trackBrokerHeartbeat(request.brokerId(), request.brokerEpoch());
    }

    ControllerResult<?> maybeFence() {
        return replication.maybeFenceOneStaleBroker();
    }

    void addPartition(AlterPartitionRequestData request, JsonNode wanted, int version) {
        Uuid id = Uuid.fromString(wanted.get("topic_id").asText());
        AlterPartitionRequestData.TopicData topic = null;
        for (var each : request.topics())
            if (each.topicId().equals(id)) topic = each;
        if (topic == null) {
            topic = new AlterPartitionRequestData.TopicData().setTopicId(id);
            request.topics().add(topic);
        }
        topic.partitions().add(Partitions.wanted(wanted, version));
    }

    void nameTopic(ObjectNode shown, AlterPartitionResponseData.TopicData topic, int version) {
        shown.put("topic_id", topic.topicId().toString());
    }

    void allowFactorChange(AlterPartitionReassignmentsRequestData request, boolean isAllowed) {
        request.setAllowReplicationFactorChange(isAllowed);
    }

    ControllerResult<CreateTopicsResponseData> createTopics(
        ControllerRequestContext context, CreateTopicsRequestData request, Set<String> describable
    ) {
        return replication.createTopics(context, request, describable, false);
    }

    ControllerResult<Map<ConfigResource, ApiError>> alterConfigs(
        Map<ConfigResource, Map<String, Entry<OpType, String>>> changes
    ) {
        return configs.incrementalAlterConfigs(changes, false, false);
    }

    ControllerResult<?> updateFeatures(
        Map<String, Short> updates, Map<String, UpgradeType> types, boolean validateOnly, ObjectNode done
    ) {
        ControllerResult<ApiError> result = configs.updateFeatures(updates, types, validateOnly, 0);
        ControllerProgram.show(result.response(), done);
        return result;
    }
}
