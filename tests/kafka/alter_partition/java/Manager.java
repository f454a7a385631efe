package org.apache.kafka.server.compared;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;

import kafka.server.DefaultAlterPartitionManager;

import org.apache.kafka.clients.NodeApiVersions;
import org.apache.kafka.clients.RequestCompletionHandler;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.message.AlterPartitionRequestData;
import org.apache.kafka.common.message.AlterPartitionRequestData.BrokerState;
import org.apache.kafka.common.requests.AbstractRequest;
import org.apache.kafka.common.requests.AlterPartitionRequest;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.metadata.LeaderRecoveryState;
import org.apache.kafka.server.util.Scheduler;

import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.CompletableFuture;
import java.util.function.BiConsumer;
import java.util.function.Supplier;

/** The manager, and the channel by which it would send. */
class Manager {
    private final DefaultAlterPartitionManager manager;

    Manager(
        int brokerId, BiConsumer<AlterPartitionRequestData, RequestCompletionHandler> send,
        Scheduler scheduler, Time time, Supplier<Long> epoch
    ) {
        Release.Channel channel = new Release.Channel() {
            public void start() { }

            public void shutdown() { }

            public Optional<NodeApiVersions> controllerApiVersions() {
                return Optional.empty();
            }

            void send(AbstractRequest.Builder<? extends AbstractRequest> request, RequestCompletionHandler handler) {
                send.accept(((AlterPartitionRequest) request.build((short) 3)).data(), handler);
            }

            public long getTimeoutMs() {
                return Long.MAX_VALUE;
            }
        };
        manager = Release.manager(channel, scheduler, time, brokerId, epoch);
    }

    CompletableFuture<ObjectNode> submit(Uuid id, String topic, JsonNode event, List<BrokerState> isr) {
        var proposed = Release.proposal(
            event.get("leader_epoch").asInt(), LeaderRecoveryState.of((byte) event.get("recovery_state").asInt()), isr,
            event.get("partition_epoch").asInt());
        return Release.submit(manager, id, topic, event.get("partition").asInt(), proposed).thenApply(result -> {
            ObjectNode shown = AlterPartitionProgram.JSON.createObjectNode().
                put("leader", result.leader()).
                put("leader_epoch", result.leaderEpoch()).
                put("partition_epoch", result.partitionEpoch()).
                put("recovery_state", result.leaderRecoveryState().value());
            Release.ids(result.isr()).stream().sorted().forEach(shown.putArray("isr")::add);
            return shown;
        });
    }

    /** The partitions whose proposals have no response yet. */
    List<String> held(Map<Uuid, String> topics) {
        return manager.unsentIsrUpdates().keySet().stream().
            map(partition -> Release.shown(partition, topics)).toList();
    }
}
