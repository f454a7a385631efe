// The package of GroupCoordinatorService, whose constructor is for this package only.
package org.apache.kafka.coordinator.group;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;

import minicluster.lines.Clock;
import minicluster.lines.CountingRandom;
import minicluster.lines.LineProgram;

import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.compress.Compression;
import org.apache.kafka.common.internals.Topic;
import org.apache.kafka.common.message.ConsumerGroupDescribeResponseData;
import org.apache.kafka.common.message.DeleteGroupsResponseData;
import org.apache.kafka.common.message.DescribeGroupsResponseData;
import org.apache.kafka.common.message.OffsetFetchResponseData;
import org.apache.kafka.common.network.ClientInformation;
import org.apache.kafka.common.network.ListenerName;
import org.apache.kafka.common.protocol.ApiKeys;
import org.apache.kafka.common.protocol.ApiMessage;
import org.apache.kafka.common.protocol.ByteBufferAccessor;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.common.protocol.MessageUtil;
import org.apache.kafka.common.record.internal.ControlRecordType;
import org.apache.kafka.common.record.internal.MemoryRecords;
import org.apache.kafka.common.record.internal.MutableRecordBatch;
import org.apache.kafka.common.record.internal.Record;
import org.apache.kafka.common.requests.AbstractRequest;
import org.apache.kafka.common.requests.AbstractResponse;
import org.apache.kafka.common.requests.ConsumerGroupDescribeRequest;
import org.apache.kafka.common.requests.ConsumerGroupHeartbeatRequest;
import org.apache.kafka.common.requests.DeleteGroupsRequest;
import org.apache.kafka.common.requests.DescribeGroupsRequest;
import org.apache.kafka.common.requests.HeartbeatRequest;
import org.apache.kafka.common.requests.JoinGroupRequest;
import org.apache.kafka.common.requests.JoinGroupResponse;
import org.apache.kafka.common.requests.LeaveGroupRequest;
import org.apache.kafka.common.requests.LeaveGroupResponse;
import org.apache.kafka.common.requests.ListGroupsRequest;
import org.apache.kafka.common.requests.OffsetCommitRequest;
import org.apache.kafka.common.requests.OffsetDeleteRequest;
import org.apache.kafka.common.requests.OffsetFetchRequest;
import org.apache.kafka.common.requests.OffsetFetchResponse;
import org.apache.kafka.common.requests.RequestContext;
import org.apache.kafka.common.requests.RequestHeader;
import org.apache.kafka.common.requests.SyncGroupRequest;
import org.apache.kafka.common.requests.TransactionResult;
import org.apache.kafka.common.requests.TxnOffsetCommitRequest;
import org.apache.kafka.common.security.auth.KafkaPrincipal;
import org.apache.kafka.common.security.auth.SecurityProtocol;
import org.apache.kafka.common.utils.BufferSupplier;
import org.apache.kafka.common.utils.LogContext;
import org.apache.kafka.coordinator.common.runtime.CoordinatorEvent;
import org.apache.kafka.coordinator.common.runtime.CoordinatorEventProcessor;
import org.apache.kafka.coordinator.common.runtime.CoordinatorLoader;
import org.apache.kafka.coordinator.common.runtime.CoordinatorPlayback;
import org.apache.kafka.coordinator.common.runtime.CoordinatorRecord;
import org.apache.kafka.coordinator.common.runtime.CoordinatorRuntime;
import org.apache.kafka.coordinator.common.runtime.CoordinatorRuntimeMetrics;
import org.apache.kafka.coordinator.common.runtime.PartitionWriter;
import org.apache.kafka.coordinator.group.metrics.GroupCoordinatorMetrics;
import org.apache.kafka.image.MetadataDelta;
import org.apache.kafka.image.MetadataImage;
import org.apache.kafka.image.MetadataProvenance;
import org.apache.kafka.metadata.MetadataRecordSerde;
import org.apache.kafka.server.share.persister.NoOpStatePersister;
import org.apache.kafka.server.util.timer.Timer;
import org.apache.kafka.server.util.timer.TimerTask;
import org.apache.kafka.server.util.timer.TimerTaskEntry;
import org.apache.kafka.storage.internals.log.LogConfig;
import org.apache.kafka.storage.internals.log.VerificationGuard;

import java.lang.reflect.Proxy;
import java.net.InetAddress;
import java.nio.ByteBuffer;
import java.time.Duration;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Base64;
import java.util.Comparator;
import java.util.Deque;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.OptionalInt;
import java.util.PriorityQueue;
import java.util.Properties;
import java.util.concurrent.AbstractExecutorService;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;

import kafka.server.KafkaConfig;

/**
 * Kafka's group coordinator over one partition in memory, on one thread and on a clock of its own.
 * Each line of standard input is a command, and has one line of output: the responses that were
 * given since, and the batches that were written.
 */
public class GroupCoordinatorProgram implements LineProgram {
    private static final TopicPartition PARTITION = new TopicPartition(Topic.GROUP_METADATA_TOPIC_NAME, 0);

    private final Clock clock = new Clock();
    private final Deque<CoordinatorEvent> events = new ArrayDeque<>();
    private final Deque<Runnable> tasks = new ArrayDeque<>();
    private final Tasks timers = new Tasks();
    private final Log log = new Log();
    private final GroupConfigManager groupConfigs;
    private final GroupCoordinatorService service;
    private MetadataImage image = MetadataImage.EMPTY;
    private int epoch = 0;
    private boolean isRunning = false;
    private ArrayNode responses = JSON.createArrayNode();
    private ArrayNode written = JSON.createArrayNode();

    public static void main(String[] args) throws Exception {
        CountingRandom.install();
        LineProgram.run(GroupCoordinatorProgram::new);
    }

    private GroupCoordinatorProgram(JsonNode command) {
        clock.nowMs = command.get("now_ms").asLong();
        CountingRandom.countFrom(0);
        Map<String, Object> values = new HashMap<>();
        values.put("process.roles", "broker");
        values.put("node.id", "1");
        values.put("controller.quorum.bootstrap.servers", "localhost:9093");
        values.put("controller.listener.names", "CONTROLLER");
        command.get("config").fields().forEachRemaining(e -> values.put(e.getKey(), e.getValue().asText()));
        KafkaConfig kafka = new KafkaConfig(values, false);
        GroupCoordinatorConfig config = kafka.groupCoordinatorConfig();
        groupConfigs = new GroupConfigManager(
            config.extractGroupConfigMap(kafka.shareGroupConfig()), config, kafka.shareGroupConfig());
        GroupCoordinatorMetrics metrics = new GroupCoordinatorMetrics();
        LogContext context = new LogContext("");
        CoordinatorRuntime<GroupCoordinatorShard, CoordinatorRecord> runtime =
            new CoordinatorRuntime.Builder<GroupCoordinatorShard, CoordinatorRecord>()
                .withTime(clock)
                .withTimer(timers)
                .withLogPrefix("")
                .withLogContext(context)
                .withEventProcessor(new Events())
                .withPartitionWriter(log)
                .withLoader(log)
                .withCoordinatorShardBuilderSupplier(() -> new GroupCoordinatorShard.Builder(config, groupConfigs)
                    .withAuthorizerPlugin(java.util.Optional.empty()))
                .withWriteTimeout(Duration.ofMillis(config.offsetCommitTimeoutMs()))
                .withCoordinatorRuntimeMetrics((CoordinatorRuntimeMetrics) Proxy.newProxyInstance(
                    getClass().getClassLoader(), new Class<?>[] {CoordinatorRuntimeMetrics.class}, (p, m, a) -> null))
                .withCoordinatorMetrics(metrics)
                .withSerializer(new GroupCoordinatorRecordSerde())
                .withCompression(Compression.NONE)
                .withAppendLingerMs(OptionalInt.of(0))
                .withExecutorService(new Background())
                .withCachedBufferMaxBytesSupplier(config::cachedBufferMaxBytes)
                .build();
        service = new GroupCoordinatorService(
            context, config, runtime, metrics, groupConfigs, new NoOpStatePersister(), timers, null);
        service.startup(() -> 1);
        service.onElection(0, epoch);
    }

    public ObjectNode perform(JsonNode command) throws Exception {
        switch (command.get("do").asText()) {
            case "metadata" -> publish(command);
            case "request" -> request(command);
            case "end_txn" -> service.completeTransaction(
                PARTITION, command.get("producer_id").asLong(), (short) command.get("epoch").asInt(), 0,
                command.get("commit").asBoolean() ? TransactionResult.COMMIT : TransactionResult.ABORT, (short) 2);
            case "advance" -> advance(clock.nowMs + command.get("ms").asLong());
            case "resolve" -> resolve();
            case "group_config" -> {
                Properties properties = new Properties();
                command.get("config").fields().forEachRemaining(e -> properties.put(e.getKey(), e.getValue().asText()));
                service.updateGroupConfig(command.get("group_id").asText(), properties);
            }
            case "restart" -> {
                service.onResignation(0, OptionalInt.of(++epoch));
                pump();
                tasks.clear();
                service.onElection(0, ++epoch);
            }
            default -> throw new IllegalArgumentException(command.toString());
        }
        pump();
        ObjectNode result = JSON.createObjectNode();
        result.set("responses", responses);
        result.set("written", written);
        result.put("tasks", tasks.size());
        responses = JSON.createArrayNode();
        written = JSON.createArrayNode();
        return result;
    }

    /** Run what waits, unless an event is running: what that adds comes after it. */
    private void pump() {
        if (isRunning) return;
        isRunning = true;
        for (CoordinatorEvent event = events.poll(); event != null; event = events.poll()) {
            try {
                event.run();
            } catch (Throwable failure) {
                event.complete(failure);
            }
        }
        isRunning = false;
    }

    private void advance(long endMs) {
        pump();
        while (true) {
            resolve();
            TimerTaskEntry next = timers.queue.peek();
            if (next == null || next.expirationMs > endMs) break;
            timers.queue.poll();
            clock.nowMs = Math.max(clock.nowMs, next.expirationMs);
            if (!next.cancelled()) {
                next.timerTask.run();
                pump();
            }
        }
        clock.nowMs = endMs;
    }

    private void resolve() {
        while (!tasks.isEmpty()) {
            tasks.poll().run();
            pump();
        }
    }

    private void publish(JsonNode command) {
        MetadataDelta delta = new MetadataDelta.Builder().setImage(image).build();
        for (JsonNode record : command.get("records")) {
            byte[] bytes = Base64.getDecoder().decode(record.asText());
            delta.replay(MetadataRecordSerde.INSTANCE.read(new ByteBufferAccessor(ByteBuffer.wrap(bytes)), bytes.length).message());
        }
        image = delta.apply(new MetadataProvenance(command.get("offset").asLong(), 0, clock.nowMs, true));
        service.onMetadataUpdate(delta, image);
    }

    private void request(JsonNode command) throws Exception {
        ApiKeys api = ApiKeys.forId(command.get("api").asInt());
        short version = (short) command.get("version").asInt();
        int token = command.get("token").asInt();
        ByteBuffer body = ByteBuffer.wrap(Base64.getDecoder().decode(command.get("body").asText()));
        RequestContext context = new RequestContext(
            new RequestHeader(api, version, command.get("client").asText(), token), "connection",
            InetAddress.getByAddress(new byte[] {127, 0, 0, 1}), KafkaPrincipal.ANONYMOUS, new ListenerName("PLAINTEXT"),
            SecurityProtocol.PLAINTEXT, ClientInformation.EMPTY, false);
        AbstractRequest request = AbstractRequest.parseRequest(api, version, new ByteBufferAccessor(body)).request;
        serve(context, request, version).whenComplete((response, failure) -> {
            ApiMessage data = response;
            if (failure != null) {
                AbstractResponse error = request.getErrorResponse(0, failure);
                data = error == null ? null : error.data();
            }
            ArrayNode given = responses.addArray().add(token);
            if (data == null) given.addNull();
            else given.add(text(MessageUtil.toByteBufferAccessor(data, version).buffer()));
        });
    }

    /** As KafkaApis does, which is without authorizer and quotas here. */
    private CompletableFuture<? extends ApiMessage> serve(RequestContext context, AbstractRequest request, short version) {
        if (request instanceof ConsumerGroupHeartbeatRequest r) return service.consumerGroupHeartbeat(context, r.data());
        if (request instanceof ConsumerGroupDescribeRequest r) return service.consumerGroupDescribe(context, r.data().groupIds())
            .thenApply(groups -> new ConsumerGroupDescribeResponseData().setGroups(groups));
        if (request instanceof JoinGroupRequest r) return service.joinGroup(context, r.data(), BufferSupplier.NO_CACHING)
            .thenApply(data -> new JoinGroupResponse(data, version).data());
        if (request instanceof SyncGroupRequest r) return service.syncGroup(context, r.data(), BufferSupplier.NO_CACHING);
        if (request instanceof HeartbeatRequest r) return service.heartbeat(context, r.data());
        if (request instanceof LeaveGroupRequest r) return service.leaveGroup(context, r.normalizedData())
            .thenApply(data -> new LeaveGroupResponse(data, version).data());
        if (request instanceof ListGroupsRequest r) return service.listGroups(context, r.data());
        if (request instanceof DescribeGroupsRequest r) return service.describeGroups(context, r.data().groups())
            .thenApply(groups -> new DescribeGroupsResponseData().setGroups(groups));
        if (request instanceof DeleteGroupsRequest r) return service.deleteGroups(context, r.data().groupsNames(), BufferSupplier.NO_CACHING)
            .thenApply(results -> new DeleteGroupsResponseData().setResults(results));
        if (request instanceof OffsetCommitRequest r) {
            r.data().topics().forEach(topic -> {
                if (version >= 10) topic.setName(image.topics().getTopic(topic.topicId()).name());
                else topic.setTopicId(image.topics().getTopic(topic.name()).id());
            });
            return service.commitOffsets(context, r.data(), BufferSupplier.NO_CACHING);
        }
        if (request instanceof TxnOffsetCommitRequest r) return service.commitTransactionalOffsets(context, r.data(), BufferSupplier.NO_CACHING);
        if (request instanceof OffsetDeleteRequest r) return service.deleteOffsets(context, r.data(), BufferSupplier.NO_CACHING);
        if (request instanceof OffsetFetchRequest r) {
            List<CompletableFuture<OffsetFetchResponseData.OffsetFetchResponseGroup>> groups = new ArrayList<>();
            r.groups().forEach(group -> {
                if (group.topics() != null && version >= 10)
                    group.topics().forEach(topic -> topic.setName(image.topics().getTopic(topic.topicId()).name()));
                groups.add(service.fetchOffsets(context, group, r.requireStable())
                    .thenApply(fetched -> version < 10 ? fetched : withTopicIds(fetched))
                    .exceptionally(failure -> OffsetFetchResponse.groupError(group, Errors.forException(failure), version)));
            });
            return CompletableFuture.allOf(groups.toArray(new CompletableFuture<?>[0])).thenApply(ignored ->
                new OffsetFetchResponse.Builder(groups.stream().map(CompletableFuture::join).toList()).build(version).data());
        }
        throw new IllegalArgumentException(request.toString());
    }

    private OffsetFetchResponseData.OffsetFetchResponseGroup withTopicIds(OffsetFetchResponseData.OffsetFetchResponseGroup group) {
        return group.setTopics(group.topics().stream()
            .filter(topic -> image.topics().getTopic(topic.name()) != null)
            .map(topic -> topic.setTopicId(image.topics().getTopic(topic.name()).id()))
            .toList());
    }

    private static String text(ByteBuffer bytes) {
        byte[] array = new byte[bytes.remaining()];
        bytes.duplicate().get(array);
        return Base64.getEncoder().encodeToString(array);
    }

    private class Events implements CoordinatorEventProcessor {
        public void enqueueLast(CoordinatorEvent event) {
            events.addLast(event);
            pump();  // the deletion of a topic waits for its events
        }

        public void enqueueFirst(CoordinatorEvent event) {
            events.addFirst(event);
            pump();
        }

        public void close() { }
    }

    private class Tasks implements Timer {
        private final Map<TimerTaskEntry, Long> numbers = new HashMap<>();
        private final PriorityQueue<TimerTaskEntry> queue = new PriorityQueue<>(
            Comparator.<TimerTaskEntry>comparingLong(entry -> entry.expirationMs).thenComparing(numbers::get));
        private long added = 0;

        public void add(TimerTask task) {
            TimerTaskEntry entry = new TimerTaskEntry(task, clock.nowMs + task.delayMs);
            numbers.put(entry, added++);
            queue.add(entry);
        }

        public boolean advanceClock(long ms) {
            throw new UnsupportedOperationException();
        }

        public int size() {
            return queue.size();
        }

        public void close() { }
    }

    private class Background extends AbstractExecutorService {
        public void execute(Runnable task) {
            tasks.add(task);
        }

        public void shutdown() { }

        public List<Runnable> shutdownNow() {
            return List.of();
        }

        public boolean isShutdown() {
            return false;
        }

        public boolean isTerminated() {
            return false;
        }

        public boolean awaitTermination(long timeout, TimeUnit unit) {
            return true;
        }
    }

    /** The partition: all that is written is committed at once. */
    private class Log implements PartitionWriter, CoordinatorLoader<CoordinatorRecord> {
        private final List<MemoryRecords> batches = new ArrayList<>();
        private Listener listener;
        private long end = 0;

        public void registerListener(TopicPartition partition, Listener listener) {
            this.listener = listener;
        }

        public void deregisterListener(TopicPartition partition, Listener listener) {
            this.listener = null;
        }

        public LogConfig config(TopicPartition partition) {
            return new LogConfig(Map.of());
        }

        public long append(TopicPartition partition, VerificationGuard guard, MemoryRecords given, short transactionVersion) {
            // Their buffer is used again.
            ByteBuffer copy = ByteBuffer.allocate(given.sizeInBytes());
            copy.put(given.buffer().duplicate()).flip();
            MemoryRecords records = MemoryRecords.readableRecords(copy);
            for (MutableRecordBatch batch : records.batches()) {
                ObjectNode shown = written.addObject();
                shown.put("producer_id", batch.producerId()).put("control", batch.isControlBatch());
                ArrayNode rows = shown.putArray("records");
                long count = 0;
                for (Record record : batch) {
                    ArrayNode row = rows.addArray();
                    row.add(text(record.key()));
                    if (record.hasValue()) row.add(text(record.value()));
                    else row.addNull();
                    count++;
                }
                batch.setLastOffset(end + count - 1);
                end += count;
            }
            batches.add(records);
            if (listener != null) listener.onHighWatermarkUpdated(partition, end);
            return end;
        }

        public CompletableFuture<VerificationGuard> maybeStartTransactionVerification(
            TopicPartition partition, String transactionalId, long producerId, short producerEpoch, int apiVersion
        ) {
            return CompletableFuture.completedFuture(VerificationGuard.SENTINEL);
        }

        public CompletableFuture<Void> deleteRecords(TopicPartition partition, long offset) {
            return CompletableFuture.completedFuture(null);
        }

        public CompletableFuture<LoadSummary> load(TopicPartition partition, CoordinatorPlayback<CoordinatorRecord> coordinator) {
            GroupCoordinatorRecordSerde serde = new GroupCoordinatorRecordSerde();
            for (MemoryRecords records : batches) {
                for (MutableRecordBatch batch : records.batches()) {
                    for (Record record : batch) {
                        if (batch.isControlBatch()) {
                            coordinator.replayEndTransactionMarker(batch.producerId(), batch.producerEpoch(),
                                ControlRecordType.parse(record.key()) == ControlRecordType.COMMIT
                                    ? TransactionResult.COMMIT : TransactionResult.ABORT);
                        } else {
                            coordinator.replay(record.offset(), batch.producerId(), batch.producerEpoch(),
                                serde.deserialize(record.key(), record.value()));
                        }
                    }
                    coordinator.updateLastWrittenOffset(batch.nextOffset());
                    coordinator.updateLastCommittedOffset(batch.nextOffset());
                }
            }
            return CompletableFuture.completedFuture(new LoadSummary(clock.nowMs, clock.nowMs, 0, end, 0));
        }

        public void close() { }
    }
}
