package org.apache.kafka.server.compared;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;

import minicluster.lines.Clock;
import minicluster.lines.LineProgram;

import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.errors.OperationNotAttemptedException;
import org.apache.kafka.common.message.AlterPartitionRequestData.BrokerState;
import org.apache.kafka.common.metadata.RegisterBrokerRecord;
import org.apache.kafka.common.metadata.UnregisterBrokerRecord;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.image.MetadataDelta;
import org.apache.kafka.image.MetadataImage;
import org.apache.kafka.metadata.LeaderRecoveryState;
import org.apache.kafka.server.util.Scheduler;
import org.apache.kafka.storage.internals.log.LogStartOffsetIncrementReason;

import java.io.File;
import java.lang.reflect.Proxy;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.Iterator;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ScheduledFuture;

/**
 * One partition of a broker on a real log, with what is around it simulated: the controller, the
 * other replicas, the metadata log. Each line of standard input is an event and has one line of
 * output, in the form of the transcripts. What differs between releases is in Release.
 */
public class PartitionProgram implements LineProgram {
    final Clock clock = new Clock();
    final Uuid topicId;
    final int brokerId;
    final long lagTimeMaxMs;
    final File folder = Files.createTempDirectory("partition").toFile();
    long brokerEpoch;
    int minIsr;
    long highWatermarkCheckpoint = 0;

    private final List<Waiting> produces = new ArrayList<>();
    private final List<Waiting> deletions = new ArrayList<>();
    private final Parts parts;
    private MetadataImage image = MetadataImage.EMPTY;
    private int index = -1;
    private boolean hasStarted = false;
    private int proposals = 0;
    private InFlight inFlight = null;
    private int checks = 0;
    private int expands = 0, shrinks = 0, failures = 0;
    private ArrayNode submitted = JSON.createArrayNode();
    private ArrayNode completed = JSON.createArrayNode();

    private record Waiting(int index, long offset) { }

    private record InFlight(int id, CompletableFuture<JsonNode> future) { }

    public static void main(String[] args) throws Exception {
        LineProgram.run(PartitionProgram::new);
    }

    private PartitionProgram(JsonNode header) throws Exception {
        clock.nowMs = header.get("start_ms").asLong();
        topicId = Uuid.fromString(header.get("topic_id").asText());
        brokerId = header.get("broker_id").asInt();
        brokerEpoch = header.get("broker_epoch").asLong();
        lagTimeMaxMs = header.get("replica_lag_time_max_ms").asLong();
        minIsr = header.get("min_insync_replicas").asInt();
        parts = new Parts(this);
        parts.start();
    }

    public void close() throws Exception {
        parts.stop();
        try (var paths = Files.walk(folder.toPath())) {
            paths.sorted(Comparator.reverseOrder()).map(Path::toFile).forEach(File::delete);
        }
    }

    public JsonNode perform(JsonNode event) throws Exception {
        index++;
        submitted = JSON.createArrayNode();
        completed = JSON.createArrayNode();
        checks = 0;
        ObjectNode result = JSON.createObjectNode();
        try {
            happen(event, result);
        } catch (Exception refusal) {
            Errors error = Errors.forException(refusal);
            // Two that have no code of their own, and what is no answer at all.
            boolean isNamed = error != Errors.UNKNOWN_SERVER_ERROR;
            result.removeAll().put("error", isNamed ? error.name() : refusal.getClass().getSimpleName());
            if (!isNamed) refusal.printStackTrace();
        }
        ObjectNode done = JSON.createObjectNode().put("now_ms", clock.nowMs);
        done.set("result", result);
        done.set("alter_partition", submitted);
        done.set("completed", completed);
        done.put("completion_checks", checks);
        done.set("state", state());
        return done;
    }

    private void happen(JsonNode event, ObjectNode result) throws Exception {
        switch (event.get("kind").asText()) {
            case "metadata_changed" -> publish(event);
            case "become_leader" -> {
                hasStarted = true;
                result.put("new_leader", parts.makeLeader(event));
            }
            case "become_follower" -> {
                hasStarted = true;
                boolean isNew = parts.makeFollower(event);
                if (isNew) complete(produces, "produce");
                result.put("new_leader_epoch", isNew);
            }
            case "restart" -> restart(event);
            case "config_changed" -> {
                minIsr = event.get("min_insync_replicas").asInt();
                parts.updateConfig();
            }
            case "advance" -> clock.nowMs += event.get("ms").asLong();
            case "append" -> append(event, result);
            case "fetch", "consumer_fetch" -> parts.fetch(event, result);
            case "maybe_shrink_isr" -> parts.partition.maybeShrinkIsr();
            case "alter_partition_response" -> respond(event);
            case "delete_records" -> delete(event.get("offset").asLong(), result);
            case "list_offsets" -> parts.listOffsets(event, result);
            case "last_offset_for_leader_epoch" -> {
                var found = parts.partition.lastOffsetForLeaderEpoch(
                    epoch(event, "current_leader_epoch"), event.get("leader_epoch").asInt(), event.get("only_leader").asBoolean());
                result.put("error", Errors.forCode(found.errorCode()).name()).
                    put("leader_epoch", found.leaderEpoch()).put("end_offset", found.endOffset());
            }
            case "check_enough_replicas" -> {
                var enough = parts.partition.checkEnoughReplicasReachOffset(event.get("required_offset").asLong());
                result.put("reached", (Boolean) enough._1()).put("error", enough._2().name());
            }
            case "append_as_follower" -> appendAsFollower(event, result);
            case "truncate" -> parts.partition.truncateTo(event.get("offset").asLong(), false);
            case "truncate_fully" -> Release.truncateFully(parts.partition, event.get("offset").asLong());
            default -> throw new IllegalArgumentException(event.toString());
        }
    }

    private void publish(JsonNode event) {
        MetadataDelta delta = new MetadataDelta.Builder().setImage(image).build();
        for (JsonNode broker : event.get("brokers")) {
            int id = broker.get("id").asInt();
            if (broker.get("epoch").isNull()) delta.replay(new UnregisterBrokerRecord().setBrokerId(id));
            else delta.replay(new RegisterBrokerRecord().
                setBrokerId(id).
                setBrokerEpoch(broker.get("epoch").asLong()).
                setFenced(broker.get("fenced").asBoolean()).
                setInControlledShutdown(broker.get("in_controlled_shutdown").asBoolean()));
        }
        image = delta.apply(Release.provenance(index, clock.nowMs));
        parts.metadata.setImage(image);
    }

    private void restart(JsonNode event) throws Exception {
        brokerEpoch = event.get("broker_epoch").asLong();
        highWatermarkCheckpoint = event.get("high_watermark_checkpoint").asLong();
        produces.clear();
        deletions.clear();
        inFlight = null;
        hasStarted = false;
        parts.stop();
        parts.start();
        parts.metadata.setImage(image);
    }

    // --- the log ----------------------------------------------------------------------------------

    private void append(JsonNode event, ObjectNode result) throws Exception {
        int acks = event.get("acks").asInt();
        var appended = Release.append(parts.partition, event.get("count").asInt(), event.get("value_bytes").asInt(), acks, clock.nowMs);
        boolean increased = appended.leaderHwChange().name().equals("INCREASED");
        if (increased) {
            complete(produces, "produce");
            complete(deletions, "delete_records");
        }
        if (acks == -1) {
            wait(produces, "produce", appended.lastOffset() + 1);
        }
        result.put("first_offset", appended.firstOffset()).
            put("last_offset", appended.lastOffset()).
            put("log_start_offset", appended.logStartOffset()).
            put("high_watermark_increased", increased);
    }

    private void delete(long offset, ObjectNode result) {
        var deleted = parts.partition.deleteRecordsOnLeader(offset);
        if (deleted.lowWatermark() < deleted.requestedOffset()) {
            wait(deletions, "delete_records", deleted.requestedOffset());
        }
        result.put("requested_offset", deleted.requestedOffset()).put("low_watermark", deleted.lowWatermark());
    }

    /** As ReplicaFetcherThread.processPartitionData does. */
    private void appendAsFollower(JsonNode event, ObjectNode result) throws Exception {
        var appended = parts.partition.appendRecordsToFollowerOrFutureReplica(
            Release.records(parts.batches(event.get("batches"), clock.nowMs)), false, event.get("partition_leader_epoch").asInt());
        var log = parts.partition.localLogOrException();
        boolean hasChanged = Release.updateHighWatermark(log, event.get("leader_high_watermark").asLong());
        boolean hasStartChanged = log.maybeIncrementLogStartOffset(
            event.get("leader_log_start_offset").asLong(), LogStartOffsetIncrementReason.LeaderOffsetIncremented);
        result.put("last_offset", appended.isEmpty() ? -1 : appended.get().lastOffset()).
            put("high_watermark_changed", hasChanged).
            put("log_start_offset_changed", hasStartChanged);
    }

    // --- what waits -------------------------------------------------------------------------------

    /** DelayedOperations.checkAndCompleteAll. */
    void checkAndCompleteAll() {
        checks++;
        complete(produces, "produce");
        complete(deletions, "delete_records");
    }

    int waitingDeletions() {
        return deletions.size();
    }

    /** As DelayedOperationPurgatory.tryCompleteElseWatch: the others are not looked at. */
    private void wait(List<Waiting> waiting, String kind, long offset) {
        List<Waiting> one = new ArrayList<>(List.of(new Waiting(index, offset)));
        complete(one, kind);
        waiting.addAll(one);
    }

    /** As DelayedProduce and DelayedDeleteRecords do. */
    private void complete(List<Waiting> waiting, String kind) {
        for (Iterator<Waiting> each = waiting.iterator(); each.hasNext(); ) {
            Waiting one = each.next();
            Errors error;
            if (kind.equals("produce")) {
                var enough = parts.partition.checkEnoughReplicasReachOffset(one.offset);
                if (!(Boolean) enough._1() && enough._2() == Errors.NONE) continue;
                error = enough._2();
            } else if (parts.partition.leaderLogIfLocal().isEmpty()) {
                error = Errors.NOT_LEADER_OR_FOLLOWER;
            } else {
                if (parts.partition.lowWatermarkIfLeader() < one.offset) continue;
                error = Errors.NONE;
            }
            each.remove();
            completed.addObject().put(kind, one.index).put("error", error.name());
        }
    }

    // --- proposals --------------------------------------------------------------------------------

    CompletableFuture<JsonNode> submit(
        int leader, int leaderEpoch, int partitionEpoch, LeaderRecoveryState recovery, List<BrokerState> isr
    ) {
        boolean isAccepted = inFlight == null;
        ObjectNode shown = submitted.addObject().
            put("id", ++proposals).
            put("accepted", isAccepted).
            put("leader", leader).
            put("leader_epoch", leaderEpoch).
            put("partition_epoch", partitionEpoch);
        ArrayNode members = shown.putArray("isr");
        isr.stream().sorted(Comparator.comparingInt(BrokerState::brokerId)).forEach(
            member -> members.addArray().add(member.brokerId()).add(member.brokerEpoch()));
        shown.put("recovery_state", recovery.name());
        if (!isAccepted) return CompletableFuture.failedFuture(new OperationNotAttemptedException("one is in flight"));
        inFlight = new InFlight(proposals, new CompletableFuture<>());
        return inFlight.future;
    }

    private void respond(JsonNode event) {
        if (inFlight == null || inFlight.id != event.get("id").asInt()) return;
        CompletableFuture<JsonNode> future = inFlight.future;
        inFlight = null;
        Errors error = Errors.valueOf(event.get("error").asText());
        if (error == Errors.NONE) future.complete(event);
        else future.completeExceptionally(error.exception());
    }

    void countExpand() {
        expands++;
    }

    void countShrink() {
        shrinks++;
    }

    void countFailure() {
        failures++;
    }

    // --- state ------------------------------------------------------------------------------------

    private ObjectNode state() {
        var partition = parts.partition;
        boolean leads = partition.isLeader();
        ObjectNode state = JSON.createObjectNode().
            put("role", leads ? "leader" : hasStarted ? "follower" : "none").
            put("leader", (Integer) Parts.orNull(partition.leaderReplicaIdOpt())).
            put("leader_epoch", partition.getLeaderEpoch()).
            put("leader_epoch_start_offset", (Long) Parts.orNull(partition.leaderEpochStartOffsetOpt())).
            put("partition_epoch", partition.getPartitionEpoch());
        parts.describe(state);
        state.put("in_flight", inFlight == null ? null : inFlight.id).
            put("under_min_isr", partition.isUnderMinIsr()).
            put("at_min_isr", partition.isAtMinIsr()).
            put("under_replicated", partition.isUnderReplicated()).
            put("low_watermark", leads ? partition.lowWatermarkIfLeader() : null).
            put("waiting_produce", produces.size()).
            put("waiting_delete_records", deletions.size()).
            put("isr_expands", expands).
            put("isr_shrinks", shrinks).
            put("isr_failures", failures);
        if (hasStarted) parts.describeLog(state);
        return state;
    }

    static Optional<Integer> epoch(JsonNode event, String name) {
        return event.get(name).isNull() ? Optional.empty() : Optional.of(event.get(name).asInt());
    }

    static List<Integer> ints(JsonNode values) {
        List<Integer> all = new ArrayList<>();
        values.forEach(value -> all.add(value.asInt()));
        return all;
    }

    /** What is to be done at once is done at once, and what is to be done later never. */
    static class AtOnce implements Scheduler {
        private static final ScheduledFuture<?> NEVER = (ScheduledFuture<?>) Proxy.newProxyInstance(
            AtOnce.class.getClassLoader(), new Class<?>[] {ScheduledFuture.class}, (proxy, method, arguments) -> false);

        public void startup() { }

        public void shutdown() { }

        public ScheduledFuture<?> schedule(String name, Runnable task, long delayMs, long periodMs) {
            if (delayMs == 0 && periodMs < 0) task.run();
            return NEVER;  // logs cancel what they have scheduled
        }

        public void resizeThreadPool(int size) { }
    }
}
