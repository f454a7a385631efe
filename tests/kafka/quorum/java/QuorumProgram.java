// The package of KafkaRaftClient, whose constructor with a queue and a random is for it only.
package org.apache.kafka.raft;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;

import minicluster.lines.Clock;
import minicluster.lines.LineProgram;

import org.apache.kafka.common.Node;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.config.AbstractConfig;
import org.apache.kafka.common.errors.TimeoutException;
import org.apache.kafka.common.feature.SupportedVersionRange;
import org.apache.kafka.common.internals.Topic;
import org.apache.kafka.common.memory.MemoryPool;
import org.apache.kafka.common.metrics.Metrics;
import org.apache.kafka.common.network.ListenerName;
import org.apache.kafka.common.protocol.ApiKeys;
import org.apache.kafka.common.protocol.ApiMessage;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.common.record.internal.MemoryRecords;
import org.apache.kafka.common.record.internal.Records;
import org.apache.kafka.common.utils.LogContext;
import org.apache.kafka.common.utils.Utils;
import org.apache.kafka.raft.generated.QuorumStateData;
import org.apache.kafka.raft.generated.QuorumStateDataJsonConverter;
import org.apache.kafka.raft.internals.KRaftControlRecordStateMachine;
import org.apache.kafka.raft.internals.StringSerde;
import org.apache.kafka.server.common.KRaftVersion;
import org.apache.kafka.server.common.OffsetAndEpoch;
import org.apache.kafka.snapshot.RawSnapshotWriter;
import org.apache.kafka.snapshot.SnapshotReader;
import org.apache.kafka.snapshot.SnapshotWriter;

import java.lang.reflect.Field;
import java.net.InetSocketAddress;
import java.nio.ByteBuffer;
import java.nio.file.Path;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Base64;
import java.util.Comparator;
import java.util.Deque;
import java.util.HashMap;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.OptionalInt;
import java.util.OptionalLong;
import java.util.Random;
import java.util.concurrent.CompletableFuture;

/**
 * One node of a quorum on a log in memory, without a network, polled until nothing changes. Each line
 * of standard input is an event, and has one line of output in the form of the transcripts.
 */
public class QuorumProgram implements LineProgram {
    private static final int POLLS_MAX = 1000;

    private final Clock clock = new Clock();
    private final JsonNode header;
    private final int localId;
    private final ListenerName listenerName;
    private final RecordedLog log = new RecordedLog();
    private final Deque<RaftMessage> messages = new ArrayDeque<>();
    private final Map<Integer, RaftRequest.Outbound> outstanding = new HashMap<>();
    private final Expirations expirations = new Expirations();
    private final Random random;
    private KafkaRaftClient<String> client;
    private ElectionState election = null;
    private JsonNode persisted = null;
    private Metrics metrics = null;
    private int correlations = 0;
    private int life = 0;
    // What was done in the present step; changes counts what a poll may have done besides.
    private ArrayNode draws, requests, responses, listener;
    private ObjectNode named;
    private int changes = 0;
    private long pollTimeoutMs = 0;

    public static void main(String[] args) throws Exception {
        LineProgram.run(QuorumProgram::new);
    }

    private QuorumProgram(JsonNode header) throws Exception {
        this.header = header;
        clock.nowMs = header.get("start_ms").asLong();
        localId = header.get("local_id").asInt();
        listenerName = new ListenerName(header.get("listener").asText());
        int electionTimeoutMs = header.get("election_timeout_ms").asInt();
        random = new Random(header.get("seed").asLong()) {
            @Override
            public int nextInt(int bound) {
                int value = super.nextInt(bound);
                draws.addObject().put("of", bound == electionTimeoutMs ? "election" : "bootstrap").put("bound", bound).put("value", value);
                return value;
            }
        };
        if (!header.get("quorum_state").isNull()) {
            persisted = header.get("quorum_state");
            short version = (short) header.get("kraft_version").asInt();
            election = ElectionState.fromQuorumStateData(QuorumStateDataJsonConverter.read(persisted, version));
        }
        if (!header.get("snapshot").isNull()) {
            byte[] bytes = Base64.getDecoder().decode(header.get("snapshot_bytes").asText());
            OffsetAndEpoch id = new OffsetAndEpoch(header.get("snapshot").get(0).asLong(), header.get("snapshot").get(1).asInt());
            try (RawSnapshotWriter writer = log.createNewSnapshotUnchecked(id).get()) {
                writer.append(MemoryRecords.readableRecords(ByteBuffer.wrap(bytes)));
                writer.freeze();
            }
        }
    }

    public void close() {
        if (client != null) client.close();
    }

    public JsonNode perform(JsonNode event) throws Exception {
        draws = JSON.createArrayNode();
        requests = JSON.createArrayNode();
        responses = JSON.createArrayNode();
        listener = JSON.createArrayNode();
        named = JSON.createObjectNode();
        log.begin();
        ObjectNode done = JSON.createObjectNode();
        int polls;
        try {
            happen(event);
            polls = poll();
        } catch (RuntimeException fault) {  // KafkaRaftClientDriver ends the process over it
            return done.put("fault", fault.toString());
        }
        done.put("now_ms", clock.nowMs).set("named", named);
        done.set("draws", draws);
        ObjectNode outbound = done.putObject("outbound");
        outbound.set("requests", requests);
        outbound.set("responses", responses);
        done.set("log", log.shown());
        done.set("listener", listener);
        done.put("polls", polls).put("poll_timeout_ms", pollTimeoutMs);
        done.set("state", state());
        return done;
    }

    private int poll() {
        String before = state().toString();
        for (int polls = 1; client.isRunning(); polls++) {
            int changesBefore = changes;
            client.poll();
            String after = state().toString();
            if (messages.isEmpty() && changes == changesBefore && after.equals(before)) return polls;
            if (polls > POLLS_MAX) throw new IllegalStateException("the node does not come to rest");
            if (!client.isRunning()) return polls;
            before = after;
        }
        return 0;
    }

    // --- events -----------------------------------------------------------------------------------

    private void happen(JsonNode event) throws Exception {
        switch (event.get("kind").asText()) {
            case "start" -> start();
            case "restart" -> {
                long end = log.endOffset().offset();
                if (!event.get("lossy").asBoolean()) log.flush(true);
                named.put("first_unflushed", log.firstUnflushedOffset());
                // It is not closed, which would flush its log.
                messages.clear();
                outstanding.clear();
                expirations.waiting.clear();
                log.reopen();
                log.endWithoutBatches = log.startOffset();
                // As KafkaRaftLog.createLog does.
                if (log.latestSnapshotId().map(OffsetAndEpoch::offset).orElse(0L) > log.endOffset().offset()) log.truncateToLatestSnapshot();
                if (log.endOffset().offset() < end) log.truncatedTo = log.endOffset().offset();
                start();
            }
            case "advance" -> {
                clock.nowMs += event.get("ms").asLong();
                expirations.expire();
            }
            case "request" -> request(event);
            case "response" -> {
                RaftRequest.Outbound request = outstanding.remove(event.get("correlation").asInt());
                if (request != null) respond(request, QuorumForms.read(api(event), "Response", version(event), event.get("body")));
            }
            case "disconnect" -> {
                RaftRequest.Outbound request = outstanding.remove(event.get("correlation").asInt());
                // As KafkaNetworkChannel does.
                if (request != null) respond(request, RaftUtil.errorResponse(api(event), Errors.BROKER_NOT_AVAILABLE));
            }
            case "append" -> attempt(() -> {
                List<String> records = new ArrayList<>();
                event.get("records").forEach(record -> records.add(record.asText()));
                named.put("offset", client.prepareAppend(event.get("epoch").asInt(), records));
                client.schedulePreparedAppend();
            });
            case "resign" -> attempt(() -> client.resign(event.get("epoch").asInt()));
            case "upgrade_kraft_version" -> attempt(() -> client.upgradeKRaftVersion(
                event.get("epoch").asInt(), KRaftVersion.fromFeatureLevel((short) event.get("version").asInt()), event.get("validate_only").asBoolean()));
            case "shutdown_gracefully" -> client.shutdown(event.get("timeout_ms").asInt());
            case "create_snapshot" -> attempt(() -> createSnapshot(event));
            default -> throw new IllegalArgumentException(event.toString());
        }
    }

    private interface Action {
        void run();
    }

    private void attempt(Action action) {
        try {
            action.run();
        } catch (RuntimeException refusal) {
            named.put("error", refusal.getClass().getSimpleName());
        }
    }

    private static ApiKeys api(JsonNode event) {
        return ApiKeys.valueOf(event.get("api").asText());
    }

    private static short version(JsonNode event) {
        return (short) event.get("version").asInt();
    }

    private void start() throws Exception {
        life++;
        if (metrics != null) metrics.close();
        metrics = new Metrics(clock);
        Map<Integer, InetSocketAddress> voters = new HashMap<>();
        if (header.get("kraft_version").asInt() == 0)
            for (JsonNode voter : header.get("voters"))
                voters.put(voter.get("id").asInt(), address(voter));
        List<InetSocketAddress> bootstrap = new ArrayList<>();
        if (voters.isEmpty()) header.get("bootstrap_servers").forEach(server -> bootstrap.add(address(server)));
        Endpoints endpoints = Endpoints.fromInetSocketAddresses(
            Map.of(listenerName, InetSocketAddress.createUnresolved("node" + localId, 9090 + localId)));
        client = new KafkaRaftClient<>(
            OptionalInt.of(localId), Uuid.fromString(header.get("local_directory_id").asText()), new StringSerde(), new Channel(), new Queue(),
            log, MemoryPool.NONE, clock, expirations, header.get("fetch_max_wait_ms").asInt(), header.get("can_become_voter").asBoolean(),
            header.get("cluster_id").asText(), bootstrap, endpoints, new SupportedVersionRange((short) 0, (short) 1), new LogContext(), random, config());
        client.register(new Machine());
        client.initialize(voters, new Store(), metrics, isIgnored -> { });
    }

    private QuorumConfig config() {
        Map<String, Object> values = new HashMap<>();
        values.put("controller.quorum.election.timeout.ms", header.get("election_timeout_ms").asInt());
        values.put("controller.quorum.fetch.timeout.ms", header.get("fetch_timeout_ms").asInt());
        values.put("controller.quorum.request.timeout.ms", header.get("request_timeout_ms").asInt());
        values.put("controller.quorum.retry.backoff.ms", header.get("retry_backoff_ms").asInt());
        values.put("controller.quorum.election.backoff.max.ms", header.get("election_backoff_max_ms").asInt());
        values.put("controller.quorum.append.linger.ms", header.get("append_linger_ms").asInt());
        values.put("controller.quorum.auto.join.enable", header.get("auto_join").asBoolean());
        values.put(QuorumConfig.QUORUM_FETCH_MAX_BYTES_CONFIG, header.get("fetch_max_bytes").asInt());
        values.put(QuorumConfig.QUORUM_FETCH_SNAPSHOT_MAX_BYTES_CONFIG, header.get("fetch_snapshot_max_bytes").asInt());
        return new QuorumConfig(new AbstractConfig(QuorumConfig.CONFIG_DEF, values, false));
    }

    private static InetSocketAddress address(JsonNode node) {
        return InetSocketAddress.createUnresolved(node.get("host").asText(), node.get("port").asInt());
    }

    private void request(JsonNode event) throws Exception {
        short version = version(event);
        int correlation = event.get("correlation").asInt(), ofLife = life;
        ApiMessage body = QuorumForms.read(api(event), "Request", version, event.get("body"));
        RaftRequest.Inbound inbound = new RaftRequest.Inbound(listenerName, correlation, version, body, clock.nowMs);
        inbound.completion.whenComplete((response, failure) -> {
            if (life != ofLife) return;
            changes++;
            try {
                responses.addObject().
                    put("correlation", correlation).
                    put("api", event.get("api").asText()).
                    put("version", version).
                    set("body", QuorumForms.write(response.data(), "Response", version));
            } catch (RuntimeException e) {  // a future would keep it to itself
                e.printStackTrace();
                System.exit(1);
            }
        });
        client.handle(inbound);
    }

    private void respond(RaftRequest.Outbound request, ApiMessage body) {
        request.completion.complete(new RaftResponse.Inbound(request.correlationId(), body, request.destination()));
    }

    private void createSnapshot(JsonNode event) {
        OffsetAndEpoch id = new OffsetAndEpoch(event.get("offset").asLong(), event.get("epoch").asInt());
        Optional<SnapshotWriter<String>> writer = client.createSnapshot(id, clock.nowMs);
        named.put("created", writer.isPresent());
        if (writer.isEmpty()) return;
        try (SnapshotWriter<String> snapshot = writer.get()) {
            List<String> records = new ArrayList<>();
            event.get("records").forEach(record -> records.add(record.asText()));
            snapshot.append(records);
            snapshot.freeze();
        }
        MemoryRecords records = (MemoryRecords) log.readSnapshot(id).get().records();
        named.put("bytes", Base64.getEncoder().encodeToString(Utils.toArray(records.buffer().duplicate())));
        if (event.get("delete_before").asBoolean()) log.deleteBeforeSnapshot(id);
    }

    // --- state ------------------------------------------------------------------------------------

    private ObjectNode state() {
        QuorumState quorum = client.quorum();
        KRaftControlRecordStateMachine control = control();
        ObjectNode state = JSON.createObjectNode().
            put("role", role(quorum)).
            put("epoch", quorum.epoch()).
            put("leader", quorum.leaderIdOrSentinel()).
            put("voted", quorum.votedKey().map(QuorumProgram::text).orElse(null)).
            put("high_watermark", quorum.highWatermark().map(LogOffsetMetadata::offset).orElse(-1L)).
            put("log_start", log.startOffset()).
            put("log_end", log.endOffset().offset()).
            put("last_epoch", log.lastFetchedEpoch());
        state.set("snapshot", log.latestSnapshotId().map(QuorumProgram::pair).orElse(null));
        Optional<RawSnapshotWriter> fetching = quorum.isFollower() ? quorum.followerStateOrThrow().fetchingSnapshot() : Optional.empty();
        state.set("fetching_snapshot", fetching.map(writer -> pair(writer.snapshotId()).add(writer.sizeInBytes())).orElse(null));
        state.put("kraft_version", control.lastKraftVersion().featureLevel());
        ArrayNode voters = state.putArray("voters");
        control.lastVoterSet().voterKeys().stream().sorted(Comparator.comparingInt(ReplicaKey::id)).map(QuorumProgram::text).forEach(voters::add);
        state.set("persisted", persisted);
        return state.put("running", client.isRunning());
    }

    /** What was last read from the log, committed or not; the client has no method for it. */
    private KRaftControlRecordStateMachine control() {
        return (KRaftControlRecordStateMachine) field(KafkaRaftClient.class, client, "partitionState");
    }

    private static Object field(Class<?> of, Object object, String name) {
        try {
            Field field = of.getDeclaredField(name);
            field.setAccessible(true);
            return field.get(object);
        } catch (ReflectiveOperationException e) {
            throw new IllegalStateException(e);
        }
    }

    private static String role(QuorumState quorum) {
        if (quorum.isLeader()) return "Leader";
        if (quorum.isFollower()) return "Follower";
        if (quorum.isCandidate()) return "Candidate";
        if (quorum.isProspective()) return "Prospective";
        if (quorum.isResigned()) return "Resigned";
        return "Unattached";
    }

    private static String text(ReplicaKey key) {
        return key.directoryId().map(directory -> key.id() + ":" + directory).orElse(String.valueOf(key.id()));
    }

    private static ArrayNode pair(OffsetAndEpoch id) {
        return JSON.createArrayNode().add(id.offset()).add(id.epoch());
    }

    // --- around it --------------------------------------------------------------------------------

    private class Channel implements NetworkChannel {
        public int newCorrelationId() {
            return correlations++;
        }

        public void send(RaftRequest.Outbound request) {
            changes++;
            outstanding.put(request.correlationId(), request);
            ApiKeys api = ApiKeys.forId(request.data().apiKey());
            Node to = request.destination();
            requests.addObject().
                put("correlation", request.correlationId()).
                put("to", to.id()).
                put("host", to.host()).
                put("api", api.name()).
                put("version", api.latestVersion()).
                set("body", QuorumForms.write(request.data(), "Request", api.latestVersion()));
        }

        public ListenerName listenerName() {
            return listenerName;
        }
    }

    private class Queue implements RaftMessageQueue {
        public RaftMessage poll(long timeoutMs) {
            pollTimeoutMs = timeoutMs == Long.MAX_VALUE ? -1 : timeoutMs;
            return messages.poll();
        }

        public void add(RaftMessage message) {
            messages.add(message);
        }

        public boolean isEmpty() {
            return messages.isEmpty();
        }

        public void wakeup() { }
    }

    private class Expirations implements ExpirationService {
        private record Waiting(long atMs, CompletableFuture<?> future) { }

        private final List<Waiting> waiting = new ArrayList<>();

        public <T> CompletableFuture<T> failAfter(long ms) {
            CompletableFuture<T> future = new CompletableFuture<>();
            waiting.add(new Waiting(clock.nowMs + ms, future));
            return future;
        }

        private void expire() {
            List<Waiting> due = new ArrayList<>(waiting.stream().filter(each -> each.atMs <= clock.nowMs).toList());
            due.sort(Comparator.comparingLong(Waiting::atMs));
            waiting.removeAll(due);
            due.forEach(each -> each.future.completeExceptionally(new TimeoutException("its time is over")));
        }
    }

    /** The quorum-state file. */
    private class Store implements QuorumStateStore {
        public Optional<ElectionState> readElectionState() {
            return Optional.ofNullable(election);
        }

        public void writeElectionState(ElectionState state, KRaftVersion version) {
            changes++;
            QuorumStateData data = state.toQuorumStateData(version.quorumStateVersion());
            persisted = QuorumStateDataJsonConverter.write(data, version.quorumStateVersion());
            election = ElectionState.fromQuorumStateData(data);
        }

        public Path path() {
            return Path.of("quorum-state");
        }

        public void clear() {
            election = null;
        }
    }

    private class Machine implements RaftClient.Listener<String> {
        public void handleCommit(BatchReader<String> reader) {
            changes++;
            try (reader) {
                ObjectNode call = listener.addObject().put("call", "commit").put("base_offset", reader.baseOffset());
                ArrayNode batches = call.putArray("batches");
                while (reader.hasNext()) {
                    Batch<String> batch = reader.next();
                    ObjectNode shown = batches.addObject().
                        put("base", batch.baseOffset()).put("last", batch.lastOffset()).put("epoch", batch.epoch());
                    if (batch.controlRecords().isEmpty()) batch.records().forEach(shown.putArray("records")::add);
                    else {
                        ArrayNode types = shown.putArray("control");
                        batch.controlRecords().forEach(record -> types.add(record.type().name()));
                    }
                }
            }
        }

        public void handleLoadSnapshot(SnapshotReader<String> reader) {
            load("load_snapshot", reader);
        }

        public void handleLoadBootstrap(SnapshotReader<String> reader) {
            load("load_bootstrap", reader);
        }

        private void load(String name, SnapshotReader<String> reader) {
            changes++;
            try (reader) {
                ObjectNode call = listener.addObject().put("call", name).
                    put("offset", reader.snapshotId().offset()).put("epoch", reader.snapshotId().epoch());
                ArrayNode records = call.putArray("records");
                while (reader.hasNext()) reader.next().records().forEach(records::add);
            }
        }

        public void handleLeaderChange(LeaderAndEpoch leader) {
            changes++;
            listener.addObject().put("call", "leader_change").
                put("leader", leader.leaderId().orElse(-1)).put("epoch", leader.epoch());
        }
    }

    /**
     * Kafka's log in memory, which reads as many whole batches as fit, and at least one. Without
     * batches, that log would end at any snapshot that is stored; this one, as a log on disk does,
     * where it became empty.
     */
    private class RecordedLog extends MockLog {
        private long endWithoutBatches = 0;
        private boolean isTruncatingToSnapshot = false;
        private Long truncatedTo;
        private ArrayNode appended;

        RecordedLog() {
            super(Topic.CLUSTER_METADATA_TOPIC_PARTITION, Uuid.METADATA_TOPIC_ID, new LogContext());
        }

        private void begin() {
            truncatedTo = null;
            appended = JSON.createArrayNode();
        }

        private ObjectNode shown() {
            ObjectNode shown = JSON.createObjectNode();
            if (truncatedTo != null) shown.put("truncated_to", truncatedTo);
            if (!appended.isEmpty()) shown.set("appended", appended);
            return shown;
        }

        private boolean isEmpty() {
            return ((List<?>) field(MockLog.class, this, "batches")).isEmpty();
        }

        @Override
        public LogOffsetMetadata endOffset() {
            LogOffsetMetadata end = super.endOffset();
            return isEmpty() ? new LogOffsetMetadata(endWithoutBatches, end.metadata()) : end;
        }

        @Override
        public boolean deleteBeforeSnapshot(OffsetAndEpoch id) {
            // As KafkaRaftLog does; the newest is the one of the highest epoch, whatever its offset.
            boolean isAhead = startOffset() < id.offset() && id.offset() <= latestSnapshotId().map(OffsetAndEpoch::offset).orElse(-1L);
            if (!isAhead) return false;
            long end = endOffset().offset();
            boolean isUpdated = super.deleteBeforeSnapshot(id);
            if (isEmpty()) endWithoutBatches = end;
            return isUpdated;
        }

        @Override
        public boolean truncateToLatestSnapshot() {
            long end = endOffset().offset();
            isTruncatingToSnapshot = true;
            boolean isTruncated = super.truncateToLatestSnapshot();
            isTruncatingToSnapshot = false;
            if (endOffset().offset() < end) truncatedTo = endOffset().offset();
            return isTruncated;
        }

        @Override
        public void updateHighWatermark(LogOffsetMetadata mark) {
            if (isTruncatingToSnapshot) endWithoutBatches = mark.offset();  // when it has become empty
            super.updateHighWatermark(mark);
        }

        @Override
        public void truncateTo(long offset) {
            long end = endOffset().offset();
            super.truncateTo(offset);
            if (isEmpty()) endWithoutBatches = startOffset();
            if (endOffset().offset() < end) truncatedTo = endOffset().offset();
        }

        @Override
        public LogAppendInfo appendAsLeader(Records records, int epoch) {
            long end = endOffset().offset();
            LogAppendInfo info = super.appendAsLeader(records, epoch);
            note(end);
            return info;
        }

        @Override
        public LogAppendInfo appendAsFollower(Records records, int epoch) {
            long end = endOffset().offset();
            try {
                return super.appendAsFollower(records, epoch);
            } finally {
                note(end);
            }
        }

        private void note(long from) {
            changes++;
            if (from < endOffset().offset()) for (LogBatch batch : readBatches(from, OptionalLong.empty()))
                appended.addArray().add(batch.firstOffset()).add(batch.lastOffset()).add(batch.epoch()).add(batch.isControlBatch() ? 1 : 0);
        }

        @Override
        public LogFetchInfo read(long startOffset, Isolation isolation, int maxBytes) {
            long end = isolation == Isolation.COMMITTED ? highWatermark().offset() : endOffset().offset();
            if (startOffset >= end) return super.read(startOffset, isolation, maxBytes);
            Iterator<LogBatch> batches = readBatches(startOffset, OptionalLong.of(end)).iterator();
            if (!batches.hasNext()) return super.read(startOffset, isolation, maxBytes);
            ByteBuffer all = ByteBuffer.allocate(1 << 20);
            LogOffsetMetadata start = null;
            while (batches.hasNext()) {
                LogBatch batch = batches.next();
                ByteBuffer one = batch.writeTo(ByteBuffer.allocate(1 << 16)).flip();
                if (start != null && all.position() + one.remaining() > maxBytes) break;
                if (start == null) start = batch.first().logOffsetMetadata();
                all.put(one);
            }
            return new LogFetchInfo(MemoryRecords.readableRecords(all.flip()), start);
        }
    }
}
