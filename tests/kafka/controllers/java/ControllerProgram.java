// The package of the managers, whose methods are for this package only.
package org.apache.kafka.controller;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;

import minicluster.lines.Clock;
import minicluster.lines.CountingRandom;
import minicluster.lines.LineProgram;

import org.apache.kafka.clients.admin.AlterConfigOp.OpType;
import org.apache.kafka.clients.admin.FeatureUpdate.UpgradeType;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.config.ConfigDef;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.errors.ApiException;
import org.apache.kafka.common.errors.UnknownTopicOrPartitionException;
import org.apache.kafka.common.message.AlterPartitionReassignmentsRequestData;
import org.apache.kafka.common.message.AlterPartitionReassignmentsResponseData;
import org.apache.kafka.common.message.AlterPartitionRequestData;
import org.apache.kafka.common.message.AlterPartitionResponseData;
import org.apache.kafka.common.message.AssignReplicasToDirsRequestData;
import org.apache.kafka.common.message.AssignReplicasToDirsResponseData;
import org.apache.kafka.common.message.BrokerHeartbeatRequestData;
import org.apache.kafka.common.message.BrokerRegistrationRequestData;
import org.apache.kafka.common.message.CreatePartitionsRequestData;
import org.apache.kafka.common.message.CreatePartitionsResponseData.CreatePartitionsTopicResult;
import org.apache.kafka.common.message.CreateTopicsRequestData;
import org.apache.kafka.common.message.CreateTopicsResponseData;
import org.apache.kafka.common.message.ElectLeadersRequestData;
import org.apache.kafka.common.message.ElectLeadersResponseData;
import org.apache.kafka.common.message.ListPartitionReassignmentsRequestData.ListPartitionReassignmentsTopics;
import org.apache.kafka.common.message.ListPartitionReassignmentsResponseData;
import org.apache.kafka.common.message.RequestHeaderData;
import org.apache.kafka.common.metadata.MetadataJsonConverters;
import org.apache.kafka.common.metadata.MetadataRecordType;
import org.apache.kafka.common.metadata.TopicRecord;
import org.apache.kafka.common.protocol.ApiKeys;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.common.requests.ApiError;
import org.apache.kafka.common.security.auth.KafkaPrincipal;
import org.apache.kafka.metadata.BrokerHeartbeatReply;
import org.apache.kafka.metadata.BrokerRegistration;
import org.apache.kafka.metadata.BrokerRegistrationReply;

import org.apache.kafka.metadata.KafkaConfigSchema;
import org.apache.kafka.metadata.PartitionRegistration;
import org.apache.kafka.metadata.placement.StripedReplicaPlacer;
import org.apache.kafka.server.common.ApiMessageAndVersion;
import org.apache.kafka.server.config.ConfigSynonym;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.OptionalLong;
import java.util.Random;
import java.util.Set;
import java.util.TreeMap;

import static java.util.AbstractMap.SimpleImmutableEntry;

/**
 * The managers of Kafka's active controller, on a clock and with draws of its own. Each line of
 * standard input is an operation and has one line of output, in the form of the controller's
 * transcripts; its records are applied at once. What differs between releases is in Release.
 */
public class ControllerProgram implements LineProgram {
    private static final String MIN_ISR = "min.insync.replicas";
    private static final String UNCLEAN = "unclean.leader.election.enable";

    private final Clock clock = new Clock();
    private final ArrayNode draws = JSON.createArrayNode();
    private final Managers managers;
    private final List<Uuid> topics = new ArrayList<>();
    private long nextOffset = 0;

    public static void main(String[] args) throws Exception {
        CountingRandom.install();
        LineProgram.run(ControllerProgram::new);
    }

    private ControllerProgram(JsonNode header) {
        CountingRandom.countFrom(header.get("seed").asLong() << 24);
        Random random = new Random(header.get("seed").asLong()) {
            @Override
            public int nextInt(int bound) {
                int value = super.nextInt(bound);
                draws.addArray().add(bound).add(value);
                return value;
            }
        };
        ConfigDef configs = new ConfigDef().
            define(MIN_ISR, ConfigDef.Type.INT, 1, ConfigDef.Importance.HIGH, "").
            define(UNCLEAN, ConfigDef.Type.BOOLEAN, false, ConfigDef.Importance.HIGH, "");
        KafkaConfigSchema schema = new KafkaConfigSchema(
            Map.of(ConfigResource.Type.BROKER, configs, ConfigResource.Type.TOPIC, configs),
            Map.of(MIN_ISR, List.of(new ConfigSynonym(MIN_ISR)), UNCLEAN, List.of(new ConfigSynonym(UNCLEAN))));
        Map<String, Object> staticConfig = new HashMap<>();
        header.get("static_config").fields().forEachRemaining(e -> staticConfig.put(e.getKey(), e.getValue().asText()));
        managers = new Managers(header, clock, schema, staticConfig, new StripedReplicaPlacer(random), this::checkExists);
    }

    /** All that the managers hold. */
    private JsonNode state() {
        ObjectNode state = JSON.createObjectNode();
        ArrayNode brokers = state.putArray("brokers");
        for (BrokerRegistration broker : new TreeMap<>(managers.cluster.brokerRegistrations()).values()) {
            ObjectNode one = brokers.addObject().
                put("broker_id", broker.id()).
                put("broker_epoch", broker.epoch()).
                put("incarnation_id", broker.incarnationId().toString()).
                put("fenced", broker.fenced()).
                put("in_controlled_shutdown", broker.inControlledShutdown()).
                put("rack", broker.rack().orElse(null));
            ArrayNode directories = one.putArray("log_dirs");
            broker.directories().forEach(directory -> directories.add(directory.toString()));
        }
        ArrayNode partitions = state.putArray("partitions");
        for (Uuid id : topics) {
            if (managers.replication.getTopic(id) == null) continue;
            for (int index = 0; managers.replication.getPartition(id, index) != null; index++) {
                PartitionRegistration partition = managers.replication.getPartition(id, index);
                ObjectNode one = partitions.addObject().
                    put("topic", managers.replication.getTopic(id).name()).
                    put("topic_id", id.toString()).
                    put("partition_index", index).
                    put("leader", partition.leader).
                    put("leader_epoch", partition.leaderEpoch).
                    put("partition_epoch", partition.partitionEpoch).
                    put("leader_recovery_state", partition.leaderRecoveryState.value());
                put(one, "replicas", partition.replicas);
                ArrayNode directories = one.putArray("directories");
                for (Uuid directory : partition.directories) directories.add(directory.toString());
                put(one, "isr", partition.isr);
                put(one, "adding_replicas", partition.addingReplicas);
                put(one, "removing_replicas", partition.removingReplicas);
                put(one, "eligible_leader_replicas", partition.elr);
                put(one, "last_known_elr", partition.lastKnownElr);
            }
        }
        return state;
    }

    private static void put(ObjectNode shown, String name, int[] values) {
        ArrayNode array = shown.putArray(name);
        for (int value : values) array.add(value);
    }

    private void checkExists(ConfigResource resource) {
        if (resource.type() == ConfigResource.Type.TOPIC && managers.replication.getTopicId(resource.name()) == null)
            throw new UnknownTopicOrPartitionException("The topic '" + resource.name() + "' does not exist.");
    }

    public JsonNode perform(JsonNode command) {
        if (command.has("final_state")) return state();
        clock.nowMs = command.get("now_ms").asLong();
        String op = command.get("op").asText();
        JsonNode request = command.get("request");
        ObjectNode done = JSON.createObjectNode();
        done.put("base_offset", nextOffset);
        draws.removeAll();
        ControllerResult<?> result;
        try {
            result = decide(op, request, command, done);
        } catch (Exception e) {
            Throwable cause = e instanceof ApiException ? e : e.getCause() instanceof ApiException ? e.getCause() : e;
            boolean isKnown = cause instanceof ApiException;
            done.put("error", isKnown ? Errors.forException(cause).name() : "FAULT");
            done.put("error_message", isKnown ? cause.getMessage() : null);
            done.putArray("records");
            if (!isKnown) e.printStackTrace();  // to standard error
            return done;
        }
        ArrayNode records = done.putArray("records");
        for (ApiMessageAndVersion record : result.records()) {
            ObjectNode shown = records.addObject();
            shown.put("type", MetadataRecordType.fromId(record.message().apiKey()).name());
            shown.put("version", record.version());
            shown.set("data", MetadataJsonConverters.writeJson(record.message(), record.version()));
            managers.replay(record.message(), nextOffset++);
            if (record.message() instanceof TopicRecord topic) topics.add(topic.topicId());
        }
        done.put("atomic", result.isAtomic());
        if (!draws.isEmpty()) done.set("draws", draws.deepCopy());
        if (result.response() instanceof BrokerHeartbeatReply reply && reply.inControlledShutdown())
            managers.cluster.heartbeatManager().maybeUpdateControlledShutdownOffset(request.get("broker_id").asInt(), nextOffset - 1);
        return done;
    }

    private ControllerResult<?> decide(String op, JsonNode request, JsonNode command, ObjectNode done) {
        return switch (op) {
            case "register_broker" -> registerBroker(request, command, done);
            case "broker_heartbeat" -> heartbeat(request, done);
            case "maybe_fence_stale_brokers" -> withResponse(managers.maybeFence(), done);
            case "maybe_balance_partition_leaders" -> withResponse(managers.replication.maybeBalancePartitionLeaders(), done);
            case "maybe_elect_unclean_leaders" -> withResponse(managers.replication.maybeElectUncleanLeaders(), done);
            case "alter_partition" -> alterPartition(request, done);
            case "create_topics" -> createTopics(request, done);
            case "delete_topics" -> deleteTopics(request, done);
            case "create_partitions" -> createPartitions(request, done);
            case "elect_leaders" -> electLeaders(request, done);
            case "alter_partition_reassignments" -> reassign(request, done);
            case "list_partition_reassignments" -> listReassignments(request, done);
            case "incremental_alter_configs" -> alterConfigs(request, done);
            case "unregister_broker" -> managers.replication.unregisterBroker(request.get("broker_id").asInt());
            case "assign_replicas_to_dirs" -> assignDirectories(request, done);
            case "update_features" -> updateFeatures(request, done);
            default -> throw new IllegalArgumentException(op);
        };
    }

    private ControllerResult<?> withResponse(ControllerResult<?> result, ObjectNode done) {
        if (result.response() instanceof Boolean answer) done.put("response", answer);
        return result;
    }

    // --- brokers ----------------------------------------------------------------------------------

    private ControllerResult<?> registerBroker(JsonNode request, JsonNode command, ObjectNode done) {
        int id = request.get("broker_id").asInt();
        BrokerRegistrationRequestData data = new BrokerRegistrationRequestData().
            setBrokerId(id).
            setClusterId(request.get("cluster_id").asText()).
            setIncarnationId(Uuid.fromString(request.get("incarnation_id").asText())).
            setRack(text(request.get("rack"))).
            setLogDirs(uuids(request.get("log_dirs"))).
            setPreviousBrokerEpoch(request.get("previous_broker_epoch").asLong());
        data.listeners().add(new BrokerRegistrationRequestData.Listener().
            setName("PLAINTEXT").setHost("localhost").setPort(9092 + id).setSecurityProtocol((short) 0));
        for (JsonNode feature : command.get("features")) {
            data.features().add(new BrokerRegistrationRequestData.Feature().
                setName(feature.get(0).asText()).
                setMinSupportedVersion((short) feature.get(1).asInt()).
                setMaxSupportedVersion((short) feature.get(2).asInt()));
        }
        ControllerResult<BrokerRegistrationReply> result =
            managers.register(data, nextOffset, request.get("version").asInt() >= 3);
        done.put("response", result.response().epoch());
        return result;
    }

    private ControllerResult<?> heartbeat(JsonNode request, ObjectNode done) {
        int id = request.get("broker_id").asInt();
        BrokerHeartbeatRequestData data = new BrokerHeartbeatRequestData().
            setBrokerId(id).
            setBrokerEpoch(request.get("broker_epoch").asLong()).
            setCurrentMetadataOffset(request.get("current_metadata_offset").asLong()).
            setWantFence(request.get("want_fence").asBoolean()).
            setWantShutDown(request.get("want_shut_down").asBoolean()).
            setOfflineLogDirs(uuids(request.get("offline_log_dirs")));
        Release.contact(managers, data, request.get("cordoned_log_dirs"));
        OptionalLong offset = managers.cluster.registerBrokerRecordOffset(id);
        if (offset.isEmpty()) {
            throw Errors.STALE_BROKER_EPOCH.exception(
                "Receive a heartbeat from broker " + id + " before registration");
        }
        ControllerResult<BrokerHeartbeatReply> result = managers.replication.processBrokerHeartbeat(data, offset.getAsLong());
        BrokerHeartbeatReply reply = result.response();
        done.putObject("response").
            put("is_caught_up", reply.isCaughtUp()).
            put("is_fenced", reply.isFenced()).
            put("in_controlled_shutdown", reply.inControlledShutdown()).
            put("should_shut_down", reply.shouldShutDown());
        return result;
    }

    private ControllerResult<?> assignDirectories(JsonNode request, ObjectNode done) {
        AssignReplicasToDirsRequestData data = new AssignReplicasToDirsRequestData().
            setBrokerId(request.get("broker_id").asInt()).
            setBrokerEpoch(request.get("broker_epoch").asLong());
        for (JsonNode directory : request.get("directories")) {
            var topics = new ArrayList<AssignReplicasToDirsRequestData.TopicData>();
            for (JsonNode topic : directory.get("topics")) {
                var partitions = new ArrayList<AssignReplicasToDirsRequestData.PartitionData>();
                for (int index : ints(topic.get("partitions")))
                    partitions.add(new AssignReplicasToDirsRequestData.PartitionData().setPartitionIndex(index));
                topics.add(new AssignReplicasToDirsRequestData.TopicData().
                    setTopicId(Uuid.fromString(topic.get("topic_id").asText())).setPartitions(partitions));
            }
            data.directories().add(new AssignReplicasToDirsRequestData.DirectoryData().
                setId(Uuid.fromString(directory.get("id").asText())).setTopics(topics));
        }
        ControllerResult<AssignReplicasToDirsResponseData> result = managers.replication.handleAssignReplicasToDirs(data);
        ArrayNode shown = done.putArray("response");
        for (var directory : result.response().directories())
            for (var topic : directory.topics())
                for (var partition : topic.partitions())
                    shown.addObject().
                        put("id", directory.id().toString()).
                        put("topic_id", topic.topicId().toString()).
                        put("partition", partition.partitionIndex()).
                        put("error", Errors.forCode(partition.errorCode()).name());
        return result;
    }

    // --- partitions -------------------------------------------------------------------------------

    private ControllerResult<?> alterPartition(JsonNode request, ObjectNode done) {
        int version = request.get("version").asInt();
        AlterPartitionRequestData data = new AlterPartitionRequestData().
            setBrokerId(request.get("broker_id").asInt()).
            setBrokerEpoch(request.get("broker_epoch").asLong());
        for (JsonNode wanted : request.get("partitions"))
            managers.addPartition(data, wanted, version);
        ControllerResult<AlterPartitionResponseData> result =
            managers.replication.alterPartition(context(ApiKeys.ALTER_PARTITION, version), data);
        ArrayNode shown = done.putArray("response");
        for (var topic : result.response().topics())
            for (var partition : topic.partitions()) {
                ObjectNode one = shown.addObject();
                Release.nameTopic(one, topic, version);
                one.put("partition_index", partition.partitionIndex()).
                    put("error", Errors.forCode(partition.errorCode()).name());
                if (partition.errorCode() == 0) {
                    one.put("leader_id", partition.leaderId()).
                        put("leader_epoch", partition.leaderEpoch()).
                        put("leader_recovery_state", partition.leaderRecoveryState()).
                        put("partition_epoch", partition.partitionEpoch());
                    partition.isr().forEach(one.putArray("isr")::add);
                }
            }
        return result;
    }

    private ControllerResult<?> electLeaders(JsonNode request, ObjectNode done) {
        ElectLeadersRequestData data = new ElectLeadersRequestData().
            setElectionType((byte) request.get("election_type").asInt());
        JsonNode wanted = request.get("topic_partitions");
        if (wanted.isNull()) data.setTopicPartitions(null);
        else for (JsonNode topic : wanted)
            data.topicPartitions().add(new ElectLeadersRequestData.TopicPartitions().
                setTopic(topic.get("topic").asText()).setPartitions(ints(topic.get("partitions"))));
        ControllerResult<ElectLeadersResponseData> result = managers.replication.electLeaders(data);
        ArrayNode shown = done.putArray("response");
        for (var topic : result.response().replicaElectionResults())
            for (var partition : topic.partitionResult())
                shown.addObject().
                    put("topic", topic.topic()).
                    put("partition", partition.partitionId()).
                    put("error", Errors.forCode(partition.errorCode()).name());
        return result;
    }

    private ControllerResult<?> reassign(JsonNode request, ObjectNode done) {
        AlterPartitionReassignmentsRequestData data = new AlterPartitionReassignmentsRequestData();
        Release.allowFactorChange(data, request.path("allow_replication_factor_change").asBoolean(true));
        for (JsonNode topic : request.get("topics")) {
            var partitions = new ArrayList<AlterPartitionReassignmentsRequestData.ReassignablePartition>();
            for (JsonNode partition : topic.get("partitions"))
                partitions.add(new AlterPartitionReassignmentsRequestData.ReassignablePartition().
                    setPartitionIndex(partition.get("partition_index").asInt()).
                    setReplicas(partition.get("replicas").isNull() ? null : ints(partition.get("replicas"))));
            data.topics().add(new AlterPartitionReassignmentsRequestData.ReassignableTopic().
                setName(topic.get("name").asText()).setPartitions(partitions));
        }
        ControllerResult<AlterPartitionReassignmentsResponseData> result =
            managers.replication.alterPartitionReassignments(data);
        ArrayNode shown = done.putArray("response");
        for (var topic : result.response().responses())
            for (var partition : topic.partitions())
                shown.addObject().
                    put("topic", topic.name()).
                    put("partition", partition.partitionIndex()).
                    put("error", Errors.forCode(partition.errorCode()).name()).
                    put("error_message", partition.errorMessage());
        return result;
    }

    private ControllerResult<?> listReassignments(JsonNode request, ObjectNode done) {
        List<ListPartitionReassignmentsTopics> topics = null;
        if (!request.get("topics").isNull()) {
            topics = new ArrayList<>();
            for (JsonNode topic : request.get("topics"))
                topics.add(new ListPartitionReassignmentsTopics().
                    setName(topic.get("name").asText()).setPartitionIndexes(ints(topic.get("partition_indexes"))));
        }
        ListPartitionReassignmentsResponseData response =
            managers.replication.listPartitionReassignments(topics, Long.MAX_VALUE);
        ArrayNode shown = done.putArray("response");
        for (var topic : response.topics())
            for (var partition : topic.partitions()) {
                ObjectNode one = shown.addObject().put("topic", topic.name()).put("partition", partition.partitionIndex());
                partition.replicas().forEach(one.putArray("replicas")::add);
                partition.addingReplicas().forEach(one.putArray("adding_replicas")::add);
                partition.removingReplicas().forEach(one.putArray("removing_replicas")::add);
            }
        return ControllerResult.of(List.of(), null);
    }

    // --- topics, configs and features -------------------------------------------------------------

    private ControllerResult<?> createTopics(JsonNode request, ObjectNode done) {
        CreateTopicsRequestData data = new CreateTopicsRequestData().setValidateOnly(request.get("validate_only").asBoolean());
        Set<String> names = new HashSet<>();
        for (JsonNode topic : request.get("topics")) {
            var created = new CreateTopicsRequestData.CreatableTopic().
                setName(topic.get("name").asText()).
                setNumPartitions(topic.get("num_partitions").asInt()).
                setReplicationFactor((short) topic.get("replication_factor").asInt());
            for (JsonNode assignment : topic.get("assignments"))
                created.assignments().add(new CreateTopicsRequestData.CreatableReplicaAssignment().
                    setPartitionIndex(assignment.get("partition_index").asInt()).
                    setBrokerIds(ints(assignment.get("broker_ids"))));
            for (JsonNode config : topic.get("configs"))
                created.configs().add(new CreateTopicsRequestData.CreatableTopicConfig().
                    setName(config.get("name").asText()).setValue(text(config.get("value"))));
            data.topics().add(created);
            names.add(created.name());
        }
        ControllerResult<CreateTopicsResponseData> result =
            Release.createTopics(managers, context(ApiKeys.CREATE_TOPICS, 7), data, names);
        ArrayNode shown = done.putArray("response");
        for (var topic : result.response().topics())
            shown.addObject().
                put("name", topic.name()).
                put("topic_id", topic.topicId().toString()).
                put("error", Errors.forCode(topic.errorCode()).name()).
                put("num_partitions", topic.numPartitions()).
                put("replication_factor", topic.replicationFactor()).
                put("error_message", topic.errorMessage());
        // Without records there is nothing to be atomic; the transcripts have it so.
        return data.validateOnly() ? result.withoutRecords() : result;
    }

    private ControllerResult<?> deleteTopics(JsonNode request, ObjectNode done) {
        Uuid id = Uuid.fromString(request.get("topic_id").asText());
        ControllerResult<Map<Uuid, ApiError>> result =
            managers.replication.deleteTopics(context(ApiKeys.DELETE_TOPICS, 6), List.of(id));
        show(result.response().get(id), done);
        return result;
    }

    private ControllerResult<?> createPartitions(JsonNode request, ObjectNode done) {
        var topic = new CreatePartitionsRequestData.CreatePartitionsTopic().
            setName(request.get("name").asText()).
            setCount(request.get("count").asInt()).
            setAssignments(null);
        if (!request.get("assignments").isNull()) {
            topic.setAssignments(new ArrayList<>());
            for (JsonNode assignment : request.get("assignments"))
                topic.assignments().add(new CreatePartitionsRequestData.CreatePartitionsAssignment().
                    setBrokerIds(ints(assignment.get("broker_ids"))));
        }
        ControllerResult<List<CreatePartitionsTopicResult>> result =
            managers.replication.createPartitions(context(ApiKeys.CREATE_PARTITIONS, 3), List.of(topic));
        CreatePartitionsTopicResult one = result.response().get(0);
        done.put("response", Errors.forCode(one.errorCode()).name()).put("error_message", one.errorMessage());
        return result;
    }

    private ControllerResult<?> alterConfigs(JsonNode request, ObjectNode done) {
        ConfigResource resource = new ConfigResource(
            ConfigResource.Type.valueOf(request.get("resource_type").asText()), request.get("resource_name").asText());
        Map<String, Map.Entry<OpType, String>> changes = Map.of(request.get("name").asText(),
            new SimpleImmutableEntry<>(OpType.valueOf(request.get("operation").asText()), text(request.get("value"))));
        ControllerResult<Map<ConfigResource, ApiError>> result = Release.alterConfigs(managers, Map.of(resource, changes));
        show(result.response().get(resource), done);
        return result;
    }

    private ControllerResult<?> updateFeatures(JsonNode request, ObjectNode done) {
        Map<String, Short> updates = new HashMap<>();
        Map<String, UpgradeType> types = new HashMap<>();
        for (JsonNode update : request.get("updates")) {
            updates.put(update.get("feature").asText(), (short) update.get("max_version_level").asInt());
            types.put(update.get("feature").asText(), UpgradeType.fromCode(update.get("upgrade_type").asInt()));
        }
        return Release.updateFeatures(managers, updates, types, request.get("validate_only").asBoolean(), done);
    }

    // --- forms ------------------------------------------------------------------------------------

    static void show(ApiError error, ObjectNode done) {
        done.put("response", error.error().name()).put("error_message", error.message());
    }

    private static ControllerRequestContext context(ApiKeys api, int version) {
        return new ControllerRequestContext(
            new RequestHeaderData().setRequestApiKey(api.id).setRequestApiVersion((short) version),
            KafkaPrincipal.ANONYMOUS, OptionalLong.empty());
    }

    static String text(JsonNode value) {
        return value == null || value.isNull() ? null : value.asText();
    }

    static List<Integer> ints(JsonNode values) {
        List<Integer> all = new ArrayList<>();
        values.forEach(value -> all.add(value.asInt()));
        return all;
    }

    static List<Uuid> uuids(JsonNode values) {
        List<Uuid> all = new ArrayList<>();
        values.forEach(value -> all.add(Uuid.fromString(value.asText())));
        return all;
    }
}
