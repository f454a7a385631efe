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
import kafka.log.LogManager;
import kafka.log.UnifiedLog;
import kafka.server.AlterPartitionManager;
import kafka.server.BrokerTopicStats;
import kafka.server.KafkaConfig;
import kafka.server.RequestLocal;
import kafka.server.checkpoints.OffsetCheckpoints;
import kafka.server.metadata.KRaftMetadataCache;

import org.apache.kafka.common.TopicIdPartition;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.compress.Compression;
import org.apache.kafka.common.message.FetchResponseData.EpochEndOffset;
import org.apache.kafka.common.message.LeaderAndIsrRequestData.LeaderAndIsrPartitionState;
import org.apache.kafka.common.record.FileRecords.TimestampAndOffset;
import org.apache.kafka.common.record.MemoryRecords;
import org.apache.kafka.common.record.MemoryRecordsBuilder;
import org.apache.kafka.common.record.RecordBatch;
import org.apache.kafka.common.record.SimpleRecord;
import org.apache.kafka.common.record.TimestampType;
import org.apache.kafka.common.replica.ClientMetadata;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.image.MetadataProvenance;
import org.apache.kafka.metadata.LeaderRecoveryState;
import org.apache.kafka.server.common.KRaftVersion;
import org.apache.kafka.server.common.MetadataVersion;
import org.apache.kafka.storage.internals.log.AppendOrigin;
import org.apache.kafka.storage.internals.log.FetchIsolation;
import org.apache.kafka.storage.internals.log.FetchParams;
import org.apache.kafka.storage.internals.log.LogAppendInfo;
import org.apache.kafka.storage.internals.log.LogDirFailureChannel;
import org.apache.kafka.storage.internals.log.LogReadInfo;
import org.apache.kafka.storage.internals.log.VerificationGuard;

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

/** What release 3.9 names or asks in a way of its own. */
final class Release {
    static LogManager logs(KafkaConfig config, Supplier<Properties> topicConfig, Time time) {
        return LogManager.apply(config, CollectionConverters.asScala(List.<String>of()).toSeq(), resource -> topicConfig.get(),
            new PartitionProgram.AtOnce(), time, new BrokerTopicStats(false), new LogDirFailureChannel(1), true);
    }

    static void updateConfig(LogManager logs, Properties topicConfig) {
        logs.updateTopicConfig(Parts.PARTITION.topic(), topicConfig, false, false, false);
    }

    static class Metadata extends KRaftMetadataCache {
        Metadata(int brokerId) {
            super(brokerId, () -> KRaftVersion.KRAFT_VERSION_1);
        }
    }

    static MetadataProvenance provenance(long offset, long nowMs) {
        return new MetadataProvenance(offset, 0, nowMs);
    }

    interface Listener extends AlterPartitionListener { }

    static class Delayed extends DelayedOperations {
        Delayed(Option<Uuid> topicId) {
            super(Parts.PARTITION, null, null, null);
        }
    }

    static Partition partition(PartitionProgram program, Listener listener, Delayed delayed, Metadata metadata, LogManager logs) {
        return new Partition(Parts.PARTITION, program.lagTimeMaxMs, MetadataVersion.IBP_3_9_IV0, program.brokerId, () -> program.brokerEpoch, program.clock,
            listener, delayed, metadata, logs, new Manager(program), Option.apply(program.topicId));
    }

    private record Manager(PartitionProgram program) implements AlterPartitionManager {
        public void start() { }

        public void shutdown() { }

        public CompletableFuture<LeaderAndIsr> submit(TopicIdPartition id, LeaderAndIsr proposed, int controllerEpoch) {
            return program.submit(proposed.leader(), proposed.leaderEpoch(), proposed.partitionEpoch(), proposed.leaderRecoveryState(),
                CollectionConverters.asJava(proposed.isrWithBrokerEpoch())).thenApply(Release::written);
        }
    }

    private static LeaderAndIsr written(JsonNode event) {
        return LeaderAndIsr.apply(event.get("leader").asInt(), event.get("leader_epoch").asInt(),
            CollectionConverters.asScala(PartitionProgram.ints(event.get("isr")).stream().map(Object.class::cast).toList()).toList(),
            LeaderRecoveryState.valueOf(event.get("recovery_state").asText()), event.get("partition_epoch").asInt());
    }

    // --- roles ------------------------------------------------------------------------------------

    static boolean makeLeader(Partition partition, JsonNode event, PartitionProgram program) {
        return partition.makeLeader(assigned(event), checkpoints(program), Option.apply(program.topicId), Option.empty());
    }

    static boolean makeFollower(Partition partition, JsonNode event, PartitionProgram program) {
        return partition.makeFollower(assigned(event), checkpoints(program), Option.apply(program.topicId), Option.empty());
    }

    private static OffsetCheckpoints checkpoints(PartitionProgram program) {
        return (folder, partition) -> Option.apply(program.highWatermarkCheckpoint);
    }

    private static LeaderAndIsrPartitionState assigned(JsonNode event) {
        return new LeaderAndIsrPartitionState().
            setTopicName(Parts.PARTITION.topic()).
            setPartitionIndex(Parts.PARTITION.partition()).
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

    static LogAppendInfo append(Partition partition, int count, int valueBytes, int acks, long nowMs) {
        SimpleRecord[] records = new SimpleRecord[count];
        Arrays.setAll(records, i -> new SimpleRecord(nowMs, new byte[valueBytes]));
        return partition.appendRecordsToLeader(MemoryRecords.withRecords(Compression.NONE, records), AppendOrigin.CLIENT, acks,
            RequestLocal.NoCaching(), VerificationGuard.SENTINEL);
    }

    static MemoryRecordsBuilder batch(ByteBuffer buffer, long baseOffset, long nowMs, int epoch) {
        return MemoryRecords.builder(buffer, RecordBatch.CURRENT_MAGIC_VALUE, Compression.NONE, TimestampType.CREATE_TIME, baseOffset, nowMs, epoch);
    }

    static MemoryRecords records(ByteBuffer buffer) {
        return MemoryRecords.readableRecords(buffer);
    }

    static boolean updateHighWatermark(UnifiedLog log, long offset) {
        return log.maybeUpdateHighWatermark(offset).isDefined();
    }

    static void truncateFully(Partition partition, long offset) {
        partition.truncateFullyAndStartAt(offset, false, Option.empty());
    }

    static FetchParams params(int replica, long brokerEpoch, int maxBytes, String isolation, Optional<ClientMetadata> client) {
        return new FetchParams((short) 17, replica, brokerEpoch, 0, 1, maxBytes, FetchIsolation.valueOf(isolation), client);
    }

    static Iterable<? extends RecordBatch> batches(LogReadInfo read) {
        return read.fetchedData.records.batches();
    }

    static Optional<EpochEndOffset> show(LogReadInfo read, ObjectNode result) {
        result.put("high_watermark", read.highWatermark).
            put("log_start_offset", read.logStartOffset).
            put("log_end_offset", read.logEndOffset).
            put("last_stable_offset", read.lastStableOffset);
        return read.divergingEpoch;
    }

    static TimestampAndOffset found(Option<TimestampAndOffset> result) {
        return result.get();
    }

    static void showEpochs(UnifiedLog log, ArrayNode epochs) {
        log.leaderEpochCache().get().epochEntries().forEach(entry -> epochs.addArray().add(entry.epoch).add(entry.startOffset));
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

    static Collection<Integer> ids(scala.collection.Iterable<Object> ids) {
        return CollectionConverters.asJavaCollection(ids).stream().map(Integer.class::cast).toList();
    }
}
