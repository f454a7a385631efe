package org.apache.kafka.server.compared;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;

import kafka.cluster.DelayedOperations;
import kafka.cluster.Partition;
import kafka.log.LogManager;
import kafka.server.AlterPartitionManager;
import kafka.server.KafkaConfig;

import org.apache.kafka.common.DirectoryId;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.compress.Compression;
import org.apache.kafka.common.message.FetchResponseData.EpochEndOffset;
import org.apache.kafka.common.record.TimestampType;
import org.apache.kafka.common.record.internal.FileRecords.TimestampAndOffset;
import org.apache.kafka.common.record.internal.MemoryRecords;
import org.apache.kafka.common.record.internal.MemoryRecordsBuilder;
import org.apache.kafka.common.record.internal.RecordBatch;
import org.apache.kafka.common.record.internal.SimpleRecord;
import org.apache.kafka.common.replica.ClientMetadata;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.image.MetadataProvenance;
import org.apache.kafka.metadata.KRaftMetadataCache;
import org.apache.kafka.metadata.LeaderAndIsr;
import org.apache.kafka.metadata.LeaderRecoveryState;
import org.apache.kafka.metadata.PartitionRegistration;
import org.apache.kafka.server.common.KRaftVersion;
import org.apache.kafka.server.common.RequestLocal;
import org.apache.kafka.server.common.TopicIdPartition;
import org.apache.kafka.server.partition.AlterPartitionListener;
import org.apache.kafka.server.partition.OngoingReassignmentState;
import org.apache.kafka.server.partition.PendingExpandIsr;
import org.apache.kafka.server.partition.PendingShrinkIsr;
import org.apache.kafka.server.storage.log.FetchIsolation;
import org.apache.kafka.server.storage.log.FetchParams;
import org.apache.kafka.storage.internals.checkpoint.OffsetCheckpoints;
import org.apache.kafka.storage.internals.log.AppendOrigin;
import org.apache.kafka.storage.internals.log.LogAppendInfo;
import org.apache.kafka.storage.internals.log.LogDirFailureChannel;
import org.apache.kafka.storage.internals.log.LogReadInfo;
import org.apache.kafka.storage.internals.log.OffsetResultHolder;
import org.apache.kafka.storage.internals.log.UnifiedLog;
import org.apache.kafka.storage.internals.log.VerificationGuard;
import org.apache.kafka.storage.log.metrics.BrokerTopicStats;

import java.nio.ByteBuffer;
import java.util.Arrays;
import java.util.Collection;
import java.util.List;
import java.util.Optional;
import java.util.Properties;
import java.util.concurrent.CompletableFuture;
import java.util.function.Supplier;

import scala.Option;
import scala.jdk.javaapi.CollectionConverters;

/** What release 4.3 names or asks in a way of its own. */
final class Release {
    static LogManager logs(KafkaConfig config, Supplier<Properties> topicConfig, Time time) {
        return LogManager.apply(config, CollectionConverters.asScala(List.<String>of()).toSeq(), resource -> topicConfig.get(),
            new PartitionProgram.AtOnce(), time, new BrokerTopicStats(), new LogDirFailureChannel(1));
    }

    static void updateConfig(LogManager logs, Properties topicConfig) {
        logs.updateTopicConfig(Parts.PARTITION.topic(), topicConfig, false, false);
    }

    static class Metadata extends KRaftMetadataCache {
        Metadata(int brokerId) {
            super(brokerId, () -> KRaftVersion.KRAFT_VERSION_1);
        }
    }

    static MetadataProvenance provenance(long offset, long nowMs) {
        return new MetadataProvenance(offset, 0, nowMs, true);
    }

    interface Listener extends AlterPartitionListener { }

    static class Delayed extends DelayedOperations {
        Delayed(Option<Uuid> topicId) {
            super(topicId, Parts.PARTITION, null, null, null, null);
        }
    }

    static Partition partition(PartitionProgram program, Listener listener, Delayed delayed, Metadata metadata, LogManager logs) {
        return new Partition(Parts.PARTITION, program.lagTimeMaxMs, program.brokerId, () -> program.brokerEpoch, program.clock,
            listener, delayed, metadata, logs, new Manager(program), Option.apply(program.topicId));
    }

    private record Manager(PartitionProgram program) implements AlterPartitionManager {
        public void start() { }

        public void shutdown() { }

        public CompletableFuture<LeaderAndIsr> submit(TopicIdPartition id, LeaderAndIsr proposed) {
            return program.submit(proposed.leader(), proposed.leaderEpoch(), proposed.partitionEpoch(),
                proposed.leaderRecoveryState(), proposed.isrWithBrokerEpoch()).thenApply(Release::written);
        }
    }

    private static LeaderAndIsr written(JsonNode event) {
        return new LeaderAndIsr(event.get("leader").asInt(), event.get("leader_epoch").asInt(), PartitionProgram.ints(event.get("isr")),
            LeaderRecoveryState.valueOf(event.get("recovery_state").asText()), event.get("partition_epoch").asInt());
    }

    // --- roles ------------------------------------------------------------------------------------

    static boolean makeLeader(Partition partition, JsonNode event, PartitionProgram program) {
        return partition.makeLeader(assigned(event), event.get("is_new").asBoolean(), checkpoints(program), Option.apply(program.topicId), Option.empty());
    }

    static boolean makeFollower(Partition partition, JsonNode event, PartitionProgram program) {
        return partition.makeFollower(assigned(event), event.get("is_new").asBoolean(), checkpoints(program), Option.apply(program.topicId), Option.empty());
    }

    private static OffsetCheckpoints checkpoints(PartitionProgram program) {
        return (folder, partition) -> Optional.of(program.highWatermarkCheckpoint);
    }

    private static PartitionRegistration assigned(JsonNode event) {
        int[] replicas = array(event.get("replicas"));
        Uuid[] directories = new Uuid[replicas.length];
        Arrays.fill(directories, DirectoryId.MIGRATING);
        return new PartitionRegistration.Builder().
            setReplicas(replicas).
            setDirectories(directories).
            setIsr(array(event.get("isr"))).
            setAddingReplicas(array(event.get("adding"))).
            setRemovingReplicas(array(event.get("removing"))).
            setLeader(event.get("leader").asInt()).
            setLeaderRecoveryState(LeaderRecoveryState.valueOf(event.get("recovery_state").asText())).
            setLeaderEpoch(event.get("leader_epoch").asInt()).
            setPartitionEpoch(event.get("partition_epoch").asInt()).
            build();
    }

    private static int[] array(JsonNode values) {
        return PartitionProgram.ints(values).stream().mapToInt(Integer::intValue).toArray();
    }

    // --- the log ----------------------------------------------------------------------------------

    static LogAppendInfo append(Partition partition, int count, int valueBytes, int acks, long nowMs) {
        SimpleRecord[] records = new SimpleRecord[count];
        Arrays.setAll(records, i -> new SimpleRecord(nowMs, new byte[valueBytes]));
        return partition.appendRecordsToLeader(MemoryRecords.withRecords(Compression.NONE, records), AppendOrigin.CLIENT, acks,
            RequestLocal.noCaching(), VerificationGuard.SENTINEL, (short) 2);
    }

    static MemoryRecordsBuilder batch(ByteBuffer buffer, long baseOffset, long nowMs, int epoch) {
        return MemoryRecords.builder(buffer, RecordBatch.CURRENT_MAGIC_VALUE, Compression.NONE, TimestampType.CREATE_TIME, baseOffset, nowMs, epoch);
    }

    static MemoryRecords records(ByteBuffer buffer) {
        return MemoryRecords.readableRecords(buffer);
    }

    static boolean updateHighWatermark(UnifiedLog log, long offset) throws Exception {
        return log.maybeUpdateHighWatermark(offset).isPresent();
    }

    static void truncateFully(Partition partition, long offset) {
        partition.truncateFullyAndStartAt(offset, false, Optional.empty());
    }

    static FetchParams params(int replica, long brokerEpoch, int maxBytes, String isolation, Optional<ClientMetadata> client) {
        return new FetchParams(replica, brokerEpoch, 0, 1, maxBytes, FetchIsolation.valueOf(isolation), client);
    }

    static Iterable<? extends RecordBatch> batches(LogReadInfo read) {
        return read.fetchedData().records.batches();
    }

    static Optional<EpochEndOffset> show(LogReadInfo read, ObjectNode result) {
        result.put("high_watermark", read.highWatermark()).
            put("log_start_offset", read.logStartOffset()).
            put("log_end_offset", read.logEndOffset()).
            put("last_stable_offset", read.lastStableOffset());
        return read.divergingEpoch();
    }

    static TimestampAndOffset found(OffsetResultHolder result) {
        return result.timestampAndOffsetOpt().get();
    }

    static void showEpochs(UnifiedLog log, ArrayNode epochs) {
        log.leaderEpochCache().epochEntries().forEach(entry -> epochs.addArray().add(entry.epoch()).add(entry.startOffset()));
    }

    // --- state ------------------------------------------------------------------------------------

    static OngoingReassignmentState reassignment(Partition partition) {
        return partition.assignmentState() instanceof OngoingReassignmentState ongoing ? ongoing : null;
    }

    static PendingExpandIsr expand(Partition partition) {
        return partition.partitionState() instanceof PendingExpandIsr expand ? expand : null;
    }

    static PendingShrinkIsr shrink(Partition partition) {
        return partition.partitionState() instanceof PendingShrinkIsr shrink ? shrink : null;
    }

    static Collection<Integer> ids(Collection<Integer> ids) {
        return ids;
    }
}
