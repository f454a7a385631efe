package org.apache.kafka.server.compared;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;

import kafka.api.LeaderAndIsr;
import kafka.cluster.AlterPartitionListener;
import kafka.cluster.DelayedOperations;
import kafka.cluster.OngoingReassignmentState;
import kafka.cluster.Partition;
import kafka.cluster.PendingExpandIsr;
import kafka.cluster.PendingShrinkIsr;
import kafka.cluster.ReplicaState;
import kafka.log.LogManager;
import kafka.log.UnifiedLog;
import kafka.server.AlterPartitionManager;
import kafka.server.BrokerTopicStats;
import kafka.server.KafkaConfig;
import kafka.server.RequestLocal;
import kafka.server.checkpoints.OffsetCheckpoints;
import kafka.server.metadata.ConfigRepository;
import kafka.server.metadata.KRaftMetadataCache;

import org.apache.kafka.common.IsolationLevel;
import org.apache.kafka.common.TopicIdPartition;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.compress.Compression;
import org.apache.kafka.common.message.LeaderAndIsrRequestData.LeaderAndIsrPartitionState;
import org.apache.kafka.common.record.MemoryRecords;
import org.apache.kafka.common.record.RecordBatch;
import org.apache.kafka.common.record.SimpleRecord;
import org.apache.kafka.common.record.TimestampType;
import org.apache.kafka.common.requests.FetchRequest;
import org.apache.kafka.image.MetadataProvenance;
import org.apache.kafka.metadata.LeaderRecoveryState;
import org.apache.kafka.server.common.KRaftVersion;
import org.apache.kafka.server.common.MetadataVersion;
import org.apache.kafka.storage.internals.log.AppendOrigin;
import org.apache.kafka.storage.internals.log.FetchIsolation;
import org.apache.kafka.storage.internals.log.FetchParams;
import org.apache.kafka.storage.internals.log.LogAppendInfo;
import org.apache.kafka.storage.internals.log.LogDirFailureChannel;
import org.apache.kafka.storage.internals.log.VerificationGuard;

import java.nio.ByteBuffer;
import java.util.Collection;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Properties;
import java.util.TreeMap;
import java.util.concurrent.CompletableFuture;

import scala.Option;
import scala.jdk.javaapi.CollectionConverters;

/** The partition of release 3.9, its log manager and its broker's metadata. */
class Parts {
    private static final TopicPartition PARTITION = new TopicPartition("transcript", 0);

    private final PartitionProgram program;
    private LogManager logs;
    KRaftMetadataCache metadata;
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
        ConfigRepository configs = resource -> topicConfig();
        logs = LogManager.apply(new KafkaConfig(values, false), CollectionConverters.asScala(List.<String>of()).toSeq(),
            configs, new PartitionProgram.AtOnce(), program.clock, new BrokerTopicStats(false), new LogDirFailureChannel(1), true);
        logs.startup(CollectionConverters.asScala(List.of(PARTITION.topic())).<String>toSet(), log -> false);
        metadata = new KRaftMetadataCache(program.brokerId, () -> KRaftVersion.KRAFT_VERSION_1);
        AlterPartitionListener listener = new AlterPartitionListener() {
            public void markIsrExpand() {
                program.countExpand();
            }

            public void markIsrShrink() {
                program.countShrink();
            }

            public void markFailed() {
                program.countFailure();
            }
        };
        Option<Uuid> topicId = Option.apply(program.topicId);
        partition = new Partition(PARTITION, program.lagTimeMaxMs, MetadataVersion.IBP_3_9_IV0, program.brokerId, () -> program.brokerEpoch, program.clock,
            listener, new Delayed(), metadata, logs, new Manager(), topicId);
    }

    void stop() {
        Partition.removeMetrics(PARTITION);
        logs.shutdown(-1);
    }

    MetadataProvenance provenance(long offset) {
        return new MetadataProvenance(offset, 0, program.clock.nowMs);
    }

    private Properties topicConfig() {
        Properties properties = new Properties();
        properties.put("min.insync.replicas", String.valueOf(program.minIsr));
        return properties;
    }

    void updateConfig() {
        logs.updateTopicConfig(PARTITION.topic(), topicConfig(), false, false, false);
    }

    boolean makeLeader(JsonNode event) {
        return partition.makeLeader(state(event), checkpoints(), Option.apply(program.topicId), Option.empty());
    }

    boolean makeFollower(JsonNode event) {
        return partition.makeFollower(state(event), checkpoints(), Option.apply(program.topicId), Option.empty());
    }

    private OffsetCheckpoints checkpoints() {
        return (folder, partition) -> Option.apply(program.highWatermarkCheckpoint);
    }

    private static LeaderAndIsrPartitionState state(JsonNode event) {
        return new LeaderAndIsrPartitionState().
            setTopicName(PARTITION.topic()).
            setPartitionIndex(PARTITION.partition()).
            setReplicas(PartitionProgram.ints(event.get("replicas"))).
            setIsr(PartitionProgram.ints(event.get("isr"))).
            setAddingReplicas(PartitionProgram.ints(event.get("adding"))).
            setRemovingReplicas(PartitionProgram.ints(event.get("removing"))).
            setLeader(event.get("leader").asInt()).
            setLeaderRecoveryState(LeaderRecoveryState.valueOf(event.get("recovery_state").asText()).value()).
            setLeaderEpoch(event.get("leader_epoch").asInt()).
            setPartitionEpoch(event.get("partition_epoch").asInt()).
            setIsNew(event.get("is_new").asBoolean());
    }

    // --- the log ----------------------------------------------------------------------------------

    LogAppendInfo append(int count, int valueBytes, int acks) {
        SimpleRecord[] records = new SimpleRecord[count];
        for (int i = 0; i < count; i++) records[i] = new SimpleRecord(program.clock.nowMs, new byte[valueBytes]);
        return partition.appendRecordsToLeader(MemoryRecords.withRecords(Compression.NONE, records), AppendOrigin.CLIENT, acks,
            RequestLocal.NoCaching(), VerificationGuard.SENTINEL);
    }

    MemoryRecords batches(JsonNode batches, long nowMs) {
        ByteBuffer buffer = ByteBuffer.allocate(1 << 16);
        for (JsonNode batch : batches) {
            long base = batch.get(0).asLong(), last = batch.get(1).asLong();
            try (var builder = MemoryRecords.builder(buffer.slice(), RecordBatch.CURRENT_MAGIC_VALUE, Compression.NONE,
                TimestampType.CREATE_TIME, base, nowMs, batch.get(2).asInt())) {
                for (long offset = base; offset <= last; offset++) builder.appendWithOffset(offset, new SimpleRecord(nowMs, new byte[0]));
                buffer.position(buffer.position() + builder.build().sizeInBytes());
            }
        }
        buffer.flip();
        return MemoryRecords.readableRecords(buffer);
    }

    boolean updateHighWatermark(UnifiedLog log, long offset) {
        return log.maybeUpdateHighWatermark(offset).isDefined();
    }

    void truncateFully(long offset) {
        partition.truncateFullyAndStartAt(offset, false, Option.empty());
    }

    void fetch(JsonNode event, ObjectNode result) {
        boolean isReplica = event.get("kind").asText().equals("fetch");
        long offset = event.get("fetch_offset").asLong();
        int maxBytes = event.get("max_bytes").asInt();
        // Whoever names itself a replica may ask the leader only.
        int replica = isReplica ? event.get("replica").asInt() : FetchRequest.ORDINARY_CONSUMER_ID;
        var client = Optional.<org.apache.kafka.common.replica.ClientMetadata>empty();
        if (!isReplica && event.get("any_replica").asBoolean()) client = Optional.of(
            new org.apache.kafka.common.replica.ClientMetadata.DefaultClientMetadata("rack", "client", null, null, "PLAINTEXT"));
        FetchIsolation isolation = isReplica ? FetchIsolation.LOG_END
            : event.get("isolation").asText().equals("read_committed") ? FetchIsolation.TXN_COMMITTED : FetchIsolation.HIGH_WATERMARK;
        FetchParams params = new FetchParams((short) 17, replica, isReplica ? event.get("broker_epoch").asLong() : -1, 0, 1, maxBytes, isolation, client);
        var data = new FetchRequest.PartitionData(program.topicId, offset, isReplica ? event.get("log_start_offset").asLong() : -1, maxBytes,
            PartitionProgram.epoch(event, "current_leader_epoch"), PartitionProgram.epoch(event, "last_fetched_epoch"));
        var read = partition.fetchRecords(params, data, program.clock.nowMs, maxBytes, true, isReplica);
        ArrayNode batches = result.putArray("batches");
        for (RecordBatch batch : read.fetchedData.records.batches())
            batches.addArray().add(batch.baseOffset()).add(batch.lastOffset()).add(batch.partitionLeaderEpoch());
        result.put("high_watermark", read.highWatermark).
            put("log_start_offset", read.logStartOffset).
            put("log_end_offset", read.logEndOffset).
            put("last_stable_offset", read.lastStableOffset);
        if (read.divergingEpoch.isEmpty()) result.putNull("diverging_epoch");
        else result.putObject("diverging_epoch").
            put("epoch", read.divergingEpoch.get().epoch()).put("end_offset", read.divergingEpoch.get().endOffset());
    }

    void listOffsets(JsonNode event, ObjectNode result) {
        Option<IsolationLevel> isolation = event.get("isolation").isNull() ? Option.empty()
            : Option.apply(IsolationLevel.valueOf(event.get("isolation").asText().toUpperCase(java.util.Locale.ROOT)));
        var found = partition.fetchOffsetForTimestamp(event.get("timestamp").asLong(), isolation,
            PartitionProgram.epoch(event, "current_leader_epoch"), event.get("only_leader").asBoolean(), Option.empty()).get();
        result.put("offset", found.offset).put("leader_epoch", found.leaderEpoch.orElse(null));
    }

    // --- state ------------------------------------------------------------------------------------

    Object orNull(Option<?> value) {
        return value.isEmpty() ? null : value.get();
    }

    void describe(ObjectNode state) {
        var assignment = partition.assignmentState();
        put(state, "replicas", inOrder(assignment.replicas()));
        var ongoing = assignment instanceof OngoingReassignmentState reassignment ? reassignment : null;
        put(state, "adding", ongoing == null ? List.of() : inOrder(ongoing.addingReplicas()));
        put(state, "removing", ongoing == null ? List.of() : inOrder(ongoing.removingReplicas()));
        var isr = partition.partitionState();
        state.put("kind", "committed");
        put(state, "isr", sorted(isr.isr()));
        put(state, "maximal_isr", sorted(isr.maximalIsr()));
        state.put("recovery_state", isr.leaderRecoveryState().name());
        if (isr instanceof PendingExpandIsr expand) state.put("kind", "pending_expand").put("expanding", expand.newInSyncReplicaId());
        if (isr instanceof PendingShrinkIsr shrink) {
            state.put("kind", "pending_shrink");
            put(state, "shrinking", sorted(shrink.outOfSyncReplicaIds()));
        }
        var followers = new TreeMap<Integer, ReplicaState>();
        CollectionConverters.asJava(partition.remoteReplicas()).forEach(replica -> followers.put(replica.brokerId(), replica.stateSnapshot()));
        ObjectNode shown = state.putObject("followers");
        followers.forEach((id, follower) -> shown.putObject(String.valueOf(id)).
            put("log_start_offset", follower.logStartOffset()).
            put("log_end_offset", follower.logEndOffset()).
            put("last_fetch_leader_log_end_offset", follower.lastFetchLeaderLogEndOffset()).
            put("last_fetch_ms", follower.lastFetchTimeMs()).
            put("last_caught_up_ms", follower.lastCaughtUpTimeMs()).
            put("broker_epoch", (Long) orNull(follower.brokerEpoch())));
    }

    private static List<Integer> inOrder(scala.collection.Seq<Object> ids) {
        return CollectionConverters.asJava(ids).stream().map(Integer.class::cast).toList();
    }

    private static List<Integer> sorted(scala.collection.immutable.Set<Object> ids) {
        return CollectionConverters.asJava(ids).stream().map(Integer.class::cast).sorted().toList();
    }

    void describeLog(ObjectNode state) {
        UnifiedLog log = partition.localLogOrException();
        state.put("log_start_offset", log.logStartOffset()).
            put("high_watermark", log.highWatermark()).
            put("log_end_offset", log.logEndOffset());
        ArrayNode epochs = state.putArray("epochs");
        log.leaderEpochCache().get().epochEntries().forEach(entry -> epochs.addArray().add(entry.epoch).add(entry.startOffset));
    }

    private static void put(ObjectNode state, String name, Collection<Integer> values) {
        values.forEach(state.putArray(name)::add);
    }

    // --- around it --------------------------------------------------------------------------------

    /** What the controller wrote. */
    record Answer(LeaderAndIsr written) {
        Answer(JsonNode event) {
            this(LeaderAndIsr.apply(event.get("leader").asInt(), event.get("leader_epoch").asInt(),
                CollectionConverters.asScala(PartitionProgram.ints(event.get("isr")).stream().map(Object.class::cast).toList()).toList(),
                LeaderRecoveryState.valueOf(event.get("recovery_state").asText()), event.get("partition_epoch").asInt()));
        }
    }

    private class Manager implements AlterPartitionManager {
        public void start() { }

        public void shutdown() { }

        public CompletableFuture<LeaderAndIsr> submit(TopicIdPartition id, LeaderAndIsr proposed, int controllerEpoch) {
            return program.submit(proposed.leader(), proposed.leaderEpoch(), proposed.partitionEpoch(), proposed.leaderRecoveryState(),
                CollectionConverters.asJava(proposed.isrWithBrokerEpoch())).thenApply(Answer::written);
        }
    }

    private class Delayed extends DelayedOperations {
        Delayed() {
            super(PARTITION, null, null, null);
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
