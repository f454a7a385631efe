package org.apache.kafka.server.compared;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;

import kafka.cluster.Partition;
import kafka.log.LogManager;
import kafka.server.KafkaConfig;

import org.apache.kafka.common.IsolationLevel;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.replica.ClientMetadata;
import org.apache.kafka.common.requests.FetchRequest;

import java.nio.ByteBuffer;
import java.util.Collection;
import java.util.Comparator;
import java.util.HashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Optional;
import java.util.Properties;
import java.util.stream.StreamSupport;

import scala.Option;
import scala.jdk.javaapi.CollectionConverters;

/** The partition, its log manager and its broker's metadata. */
class Parts {
    static final TopicPartition PARTITION = new TopicPartition("transcript", 0);

    private final PartitionProgram program;
    private LogManager logs;
    Release.Metadata metadata;
    Partition partition;

    Parts(PartitionProgram program) {
        this.program = program;
    }

    void start() {
        Map<String, Object> values = new HashMap<>();
        values.put("process.roles", "broker");
        values.put("node.id", String.valueOf(program.brokerId));
        values.put("controller.quorum.bootstrap.servers", "localhost:9093");
        values.put("controller.listener.names", "CONTROLLER");
        values.put("log.dirs", program.folder.getPath());
        values.put("log.index.size.max.bytes", "4096");
        values.put("log.cleaner.enable", "false");
        logs = Release.logs(new KafkaConfig(values, false), this::topicConfig, program.clock);
        logs.startup(CollectionConverters.asScala(List.of(PARTITION.topic())).<String>toSet(), log -> false);
        metadata = new Release.Metadata(program.brokerId);
        partition = Release.partition(program, new Listener(), new Delayed(), metadata, logs);
    }

    void stop() {
        Partition.removeMetrics(PARTITION);
        logs.shutdown(-1);
    }

    private Properties topicConfig() {
        Properties properties = new Properties();
        properties.put("min.insync.replicas", String.valueOf(program.minIsr));
        return properties;
    }

    void updateConfig() {
        Release.updateConfig(logs, topicConfig());
    }

    boolean makeLeader(JsonNode event) {
        return Release.makeLeader(partition, event, program);
    }

    boolean makeFollower(JsonNode event) {
        return Release.makeFollower(partition, event, program);
    }

    // --- the log ----------------------------------------------------------------------------------

    ByteBuffer batches(JsonNode batches, long nowMs) {
        ByteBuffer buffer = ByteBuffer.allocate(1 << 16);
        for (JsonNode batch : batches) {
            long base = batch.get(0).asLong(), last = batch.get(1).asLong();
            try (var builder = Release.batch(buffer.slice(), base, nowMs, batch.get(2).asInt())) {
                for (long offset = base; offset <= last; offset++) builder.appendWithOffset(offset, nowMs, null, new byte[0]);
                buffer.position(buffer.position() + builder.build().sizeInBytes());
            }
        }
        return buffer.flip();
    }

    void fetch(JsonNode event, ObjectNode result) {
        boolean isReplica = event.get("kind").asText().equals("fetch");
        long offset = event.get("fetch_offset").asLong();
        int maxBytes = event.get("max_bytes").asInt();
        // Whoever names itself a replica may ask the leader only.
        int replica = isReplica ? event.get("replica").asInt() : FetchRequest.ORDINARY_CONSUMER_ID;
        Optional<ClientMetadata> client = Optional.empty();
        if (!isReplica && event.get("any_replica").asBoolean()) client = Optional.of(
            new ClientMetadata.DefaultClientMetadata("rack", "client", null, null, "PLAINTEXT"));
        String isolation = isReplica ? "LOG_END"
            : event.get("isolation").asText().equals("read_committed") ? "TXN_COMMITTED" : "HIGH_WATERMARK";
        var params = Release.params(replica, isReplica ? event.get("broker_epoch").asLong() : -1, maxBytes, isolation, client);
        var data = new FetchRequest.PartitionData(program.topicId, offset, isReplica ? event.get("log_start_offset").asLong() : -1, maxBytes,
            PartitionProgram.epoch(event, "current_leader_epoch"), PartitionProgram.epoch(event, "last_fetched_epoch"));
        var read = partition.fetchRecords(params, data, program.clock.nowMs, maxBytes, true, isReplica);
        ArrayNode batches = result.putArray("batches");
        for (var batch : Release.batches(read))
            batches.addArray().add(batch.baseOffset()).add(batch.lastOffset()).add(batch.partitionLeaderEpoch());
        var diverging = Release.show(read, result);
        if (diverging.isEmpty()) result.putNull("diverging_epoch");
        else result.putObject("diverging_epoch").
            put("epoch", diverging.get().epoch()).put("end_offset", diverging.get().endOffset());
    }

    void listOffsets(JsonNode event, ObjectNode result) {
        Option<IsolationLevel> isolation = event.get("isolation").isNull() ? Option.empty()
            : Option.apply(IsolationLevel.valueOf(event.get("isolation").asText().toUpperCase(Locale.ROOT)));
        var found = Release.found(partition.fetchOffsetForTimestamp(event.get("timestamp").asLong(), isolation,
            PartitionProgram.epoch(event, "current_leader_epoch"), event.get("only_leader").asBoolean(), Option.empty()));
        result.put("offset", found.offset).put("leader_epoch", found.leaderEpoch.orElse(null));
    }

    // --- state ------------------------------------------------------------------------------------

    static Object orNull(Option<?> value) {
        return value.isEmpty() ? null : value.get();
    }

    static Object orNull(Optional<?> value) {
        return value.orElse(null);
    }

    void describe(ObjectNode state) {
        put(state, "replicas", Release.ids(partition.assignmentState().replicas()));
        var ongoing = Release.reassignment(partition);
        put(state, "adding", ongoing == null ? List.of() : Release.ids(ongoing.addingReplicas()));
        put(state, "removing", ongoing == null ? List.of() : Release.ids(ongoing.removingReplicas()));
        var isr = partition.partitionState();
        state.put("kind", "committed");
        put(state, "isr", sorted(Release.ids(isr.isr())));
        put(state, "maximal_isr", sorted(Release.ids(isr.maximalIsr())));
        state.put("recovery_state", isr.leaderRecoveryState().name());
        var expand = Release.expand(partition);
        if (expand != null) state.put("kind", "pending_expand").put("expanding", expand.newInSyncReplicaId());
        var shrink = Release.shrink(partition);
        if (shrink != null) {
            state.put("kind", "pending_shrink");
            put(state, "shrinking", sorted(Release.ids(shrink.outOfSyncReplicaIds())));
        }
        ObjectNode shown = state.putObject("followers");
        var replicas = CollectionConverters.asJava(partition.remoteReplicas()).spliterator();
        StreamSupport.stream(replicas, false).sorted(Comparator.comparingInt(replica -> replica.brokerId())).forEach(replica -> {
            var follower = replica.stateSnapshot();
            shown.putObject(String.valueOf(replica.brokerId())).
                put("log_start_offset", follower.logStartOffset()).
                put("log_end_offset", follower.logEndOffset()).
                put("last_fetch_leader_log_end_offset", follower.lastFetchLeaderLogEndOffset()).
                put("last_fetch_ms", follower.lastFetchTimeMs()).
                put("last_caught_up_ms", follower.lastCaughtUpTimeMs()).
                put("broker_epoch", (Long) orNull(follower.brokerEpoch()));
        });
    }

    void describeLog(ObjectNode state) {
        var log = partition.localLogOrException();
        state.put("log_start_offset", log.logStartOffset()).
            put("high_watermark", log.highWatermark()).
            put("log_end_offset", log.logEndOffset());
        Release.showEpochs(log, state.putArray("epochs"));
    }

    private static List<Integer> sorted(Collection<Integer> values) {
        return values.stream().sorted().toList();
    }

    private static void put(ObjectNode state, String name, Collection<Integer> values) {
        values.forEach(state.putArray(name)::add);
    }

    // --- around it --------------------------------------------------------------------------------

    private class Listener implements Release.Listener {
        public void markIsrExpand() {
            program.countExpand();
        }

        public void markIsrShrink() {
            program.countShrink();
        }

        public void markFailed() {
            program.countFailure();
        }
    }

    private class Delayed extends Release.Delayed {
        Delayed() {
            super(Option.apply(program.topicId));
        }

        @Override
        public void checkAndCompleteAll() {
            program.checkAndCompleteAll();
        }

        @Override
        public int numDelayedDelete() {
            return program.waitingDeletions();
        }
    }
}
