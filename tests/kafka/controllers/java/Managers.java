package org.apache.kafka.controller;

import com.fasterxml.jackson.databind.JsonNode;

import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.message.AlterPartitionRequestData;
import org.apache.kafka.common.message.BrokerRegistrationRequestData;
import org.apache.kafka.common.metadata.*;
import org.apache.kafka.common.protocol.ApiMessage;
import org.apache.kafka.common.utils.LogContext;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.metadata.BrokerRegistrationReply;
import org.apache.kafka.metadata.FinalizedControllerFeatures;
import org.apache.kafka.metadata.KafkaConfigSchema;
import org.apache.kafka.metadata.VersionRange;
import org.apache.kafka.metadata.placement.ReplicaPlacer;
import org.apache.kafka.server.common.MetadataVersion;
import org.apache.kafka.timeline.SnapshotRegistry;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import java.util.Map.Entry;
import java.util.Optional;
import java.util.concurrent.TimeUnit;
import java.util.function.Consumer;

/** The managers, as the QuorumController builds and calls them. */
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
        features = Release.with(new FeatureControlManager.Builder().
            setLogContext(log).
            setSnapshotRegistry(registry).
            setQuorumFeatures(new QuorumFeatures(0, Release.supportedFeatures(), List.of(0))).
            setClusterFeatureSupportDescriber(new ClusterFeatureSupportDescriber() {
                public Iterator<Entry<Integer, Map<String, VersionRange>>> brokerSupported() {
                    return cluster().brokerSupportedFeatures();
                }

                public Iterator<Entry<Integer, Map<String, VersionRange>>> controllerSupported() {
                    return cluster().controllerSupportedFeatures();
                }
            })).build();
        cluster = Release.with(new ClusterControlManager.Builder().
            setLogContext(log).
            setClusterId(header.get("cluster_id").asText()).
            setTime(time).
            setSnapshotRegistry(registry).
            setSessionTimeoutNs(TimeUnit.MILLISECONDS.toNanos(header.get("broker_session_timeout_ms").asLong())).
            setReplicaPlacer(placer).
            setFeatureControlManager(features), this, header, time).build();
        configs = Release.with(new ConfigurationControlManager.Builder().
            setLogContext(log).
            setSnapshotRegistry(registry).
            setKafkaConfigSchema(schema).
            setExistenceChecker(existence).
            setAlterConfigPolicy(Optional.empty()).
            setValidator(ConfigurationValidator.NO_OP).
            setStaticConfig(staticConfig).
            setNodeId(0), features).build();
        replication = Release.with(new ReplicationControlManager.Builder().
            setSnapshotRegistry(registry).
            setLogContext(log).
            setDefaultReplicationFactor((short) header.get("default_replication_factor").asInt()).
            setDefaultNumPartitions(header.get("default_num_partitions").asInt()).
            setConfigurationControl(configs).
            setClusterControl(cluster).
            setCreateTopicPolicy(Optional.empty()).
            setFeatureControl(features), header).build();
        features.replay(new FeatureLevelRecord().
            setName(MetadataVersion.FEATURE_NAME).
            setFeatureLevel((short) header.get("metadata_version_level").asInt()));
        Release.replayElr(features, header);
        cluster.activate();
    }

    private ClusterControlManager cluster() {
        return cluster;
    }

    ReplicationControlManager replication() {
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
        else if (message instanceof BrokerRegistrationChangeRecord record) cluster.replay(record);
        else if (!Release.replay(this, message)) throw new IllegalStateException(message.toString());
    }

    ControllerResult<BrokerRegistrationReply> register(BrokerRegistrationRequestData request, long offset, boolean isClean) {
        Map<String, Short> levels = new HashMap<>(features.finalizedFeatures(Long.MAX_VALUE).featureMap());
        levels.put("kraft.version", (short) 0);
        return Release.register(this, request, offset, new FinalizedControllerFeatures(levels, Long.MAX_VALUE), isClean);
    }

    ControllerResult<?> maybeFence() {
        return replication.maybeFenceOneStaleBroker();
    }

    void addPartition(AlterPartitionRequestData request, JsonNode wanted, int version) {
        // Without partitions, so that another of the same topic is equal to it.
        var topic = Release.topic(wanted, version);
        for (var each : request.topics())
            if (each.duplicate().setPartitions(topic.partitions()).equals(topic)) topic = each;
        if (topic.partitions().isEmpty()) request.topics().add(topic);
        topic.partitions().add(partition(wanted, version));
    }

    private static AlterPartitionRequestData.PartitionData partition(JsonNode wanted, int version) {
        var partition = new AlterPartitionRequestData.PartitionData().
            setPartitionIndex(wanted.get("partition_index").asInt()).
            setLeaderEpoch(wanted.get("leader_epoch").asInt()).
            setPartitionEpoch(wanted.get("partition_epoch").asInt()).
            setLeaderRecoveryState((byte) wanted.get("leader_recovery_state").asInt());
        var ids = new ArrayList<Integer>();
        var brokers = new ArrayList<AlterPartitionRequestData.BrokerState>();
        for (JsonNode broker : wanted.get("new_isr_with_epochs")) {
            ids.add(broker.get("broker_id").asInt());
            brokers.add(new AlterPartitionRequestData.BrokerState().
                setBrokerId(broker.get("broker_id").asInt()).
                setBrokerEpoch(broker.get("broker_epoch").asLong()));
        }
        return version < 3 ? partition.setNewIsr(ids) : partition.setNewIsrWithEpochs(brokers);
    }
}
