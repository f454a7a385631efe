package org.apache.kafka.server.compared;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;

import minicluster.lines.Clock;
import minicluster.lines.LineProgram;

import org.apache.kafka.clients.ClientResponse;
import org.apache.kafka.clients.RequestCompletionHandler;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.errors.AuthenticationException;
import org.apache.kafka.common.errors.UnsupportedVersionException;
import org.apache.kafka.common.message.AlterPartitionRequestData;
import org.apache.kafka.common.message.AlterPartitionRequestData.BrokerState;
import org.apache.kafka.common.message.AlterPartitionResponseData;
import org.apache.kafka.common.protocol.ApiKeys;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.common.requests.AlterPartitionResponse;
import org.apache.kafka.common.requests.RequestHeader;
import org.apache.kafka.server.util.Scheduler;

import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.UUID;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.concurrent.ScheduledFuture;

/**
 * A broker's AlterPartition manager without a network, on a clock of its own. Each line of standard
 * input is an event, and has one line of output: what was sent and what has ended, in the form of
 * the transcripts. What differs between releases is in Release.
 */
public class AlterPartitionProgram implements LineProgram {
    private static final short VERSION = 3;

    private final Clock clock = new Clock();
    private final List<Task> tasks = new ArrayList<>();
    private final Map<Uuid, String> topics = new HashMap<>();
    private final Manager manager;
    private ArrayNode requests = JSON.createArrayNode();
    private ArrayNode completed = JSON.createArrayNode();
    private RequestCompletionHandler handler;
    private long epoch = 100;
    private int again = 0;

    private record Task(long atMs, Runnable action) { }

    public static void main(String[] args) throws Exception {
        LineProgram.run(AlterPartitionProgram::new);
    }

    private AlterPartitionProgram(JsonNode header) {
        clock.nowMs = header.get("start_ms").asLong();
        manager = new Manager(header.get("broker_id").asInt(), this::send, new Tasks(), clock, () -> epoch);
    }

    public JsonNode perform(JsonNode event) {
        requests = JSON.createArrayNode();
        completed = JSON.createArrayNode();
        switch (event.get("kind").asText()) {
            case "submit" -> submit(event, event.get("id").asInt());
            case "response" -> respond(event);
            case "advance" -> advance(event.get("ms").asLong());
            case "broker_epoch" -> epoch = event.get("epoch").asLong();
            default -> throw new IllegalArgumentException(event.toString());
        }
        ObjectNode done = JSON.createObjectNode().put("now_ms", clock.nowMs);
        done.set("requests", requests);
        done.set("completed", completed);
        ObjectNode state = done.putObject("state").put("in_flight", handler != null);
        ArrayNode held = state.putArray("held");
        manager.held(topics).stream().sorted().forEach(held::add);
        return done;
    }

    private void advance(long ms) {
        long endMs = clock.nowMs + ms;
        while (true) {
            Task due = tasks.stream().filter(task -> task.atMs <= endMs).min(Comparator.comparingLong(Task::atMs)).orElse(null);
            if (due == null) break;
            tasks.remove(due);
            clock.nowMs = Math.max(clock.nowMs, due.atMs);
            due.action.run();
        }
        clock.nowMs = endMs;
    }

    private void submit(JsonNode event, int number) {
        String topic = event.get("topic").asText();
        topics.put(id(topic), topic);
        List<BrokerState> isr = new ArrayList<>();
        for (JsonNode member : event.get("isr"))
            isr.add(new BrokerState().setBrokerId(member.get(0).asInt()).setBrokerEpoch(member.get(1).asLong()));
        CompletableFuture<ObjectNode> future = manager.submit(id(topic), topic, event, isr);
        boolean resubmits = number > 0 && event.get("resubmits_unknown_server_error").asBoolean();
        future.whenComplete((answer, failure) -> {
            Throwable cause = failure instanceof CompletionException ? failure.getCause() : failure;
            Errors error = cause == null ? Errors.NONE : Errors.forException(cause);
            ObjectNode ended = completed.addObject().put("id", number).put("error", error.name());
            if (answer != null) ended.setAll(answer);
            if (error == Errors.UNKNOWN_SERVER_ERROR && resubmits) {
                ended.put("submits", --again);
                submit(event, again);
            }
        });
    }

    private void send(AlterPartitionRequestData data, RequestCompletionHandler onComplete) {
        handler = onComplete;
        ObjectNode request = requests.addObject().put("broker_id", data.brokerId()).put("broker_epoch", data.brokerEpoch());
        List<ObjectNode> partitions = new ArrayList<>();
        for (var topic : data.topics())
            for (var partition : topic.partitions()) {
                ObjectNode one = JSON.createObjectNode().
                    put("topic", topics.get(topic.topicId())).
                    put("partition", partition.partitionIndex()).
                    put("leader_epoch", partition.leaderEpoch()).
                    put("partition_epoch", partition.partitionEpoch()).
                    put("recovery_state", partition.leaderRecoveryState());
                ArrayNode isr = one.putArray("isr");
                for (BrokerState member : partition.newIsrWithEpochs())
                    isr.addArray().add(member.brokerId()).add(member.brokerEpoch());
                partitions.add(one);
            }
        partitions.sort(Comparator.comparing((ObjectNode p) -> p.get("topic").asText()).thenComparing(p -> p.get("partition").asInt()));
        request.putArray("partitions").addAll(partitions);
    }

    private void respond(JsonNode event) {
        RequestCompletionHandler to = handler;
        handler = null;
        RequestHeader header = new RequestHeader(ApiKeys.ALTER_PARTITION, VERSION, "compared", 1);
        String outcome = event.get("outcome").asText();
        AlterPartitionResponse response = outcome.equals("answered") ? new AlterPartitionResponse(answer(event)) : null;
        to.onComplete(new ClientResponse(header, null, "-1", clock.nowMs, clock.nowMs, false,
            outcome.equals("version_mismatch") ? new UnsupportedVersionException("compared") : null,
            outcome.equals("authentication_failed") ? new AuthenticationException("compared") : null,
            response));
    }

    private static AlterPartitionResponseData answer(JsonNode event) {
        AlterPartitionResponseData data = new AlterPartitionResponseData().
            setErrorCode(Errors.valueOf(event.get("error").asText()).code());
        for (JsonNode each : event.get("partitions")) {
            var partition = new AlterPartitionResponseData.PartitionData().
                setPartitionIndex(each.get("partition").asInt()).
                setErrorCode(Errors.valueOf(each.get("error").asText()).code()).
                setLeaderId(each.path("leader").asInt()).
                setLeaderEpoch(each.path("leader_epoch").asInt()).
                setPartitionEpoch(each.path("partition_epoch").asInt()).
                setLeaderRecoveryState((byte) each.path("recovery_state").asInt());
            List<Integer> isr = new ArrayList<>();
            each.path("isr").forEach(member -> isr.add(member.asInt()));
            data.topics().add(new AlterPartitionResponseData.TopicData().
                setTopicId(id(each.get("topic").asText())).
                setPartitions(List.of(partition.setIsr(isr))));
        }
        return data;
    }

    private static Uuid id(String topic) {
        UUID id = UUID.nameUUIDFromBytes(topic.getBytes(StandardCharsets.UTF_8));
        return new Uuid(id.getMostSignificantBits(), id.getLeastSignificantBits());
    }

    private class Tasks implements Scheduler {
        public void startup() { }

        public void shutdown() { }

        public ScheduledFuture<?> schedule(String name, Runnable task, long delayMs, long periodMs) {
            tasks.add(new Task(clock.nowMs + delayMs, task));
            return null;
        }

        public void resizeThreadPool(int size) { }
    }
}
