package org.apache.kafka.server.compared;

import kafka.server.DefaultAlterPartitionManager;

import org.apache.kafka.clients.RequestCompletionHandler;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.message.AlterPartitionRequestData.BrokerState;
import org.apache.kafka.common.requests.AbstractRequest;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.metadata.LeaderAndIsr;
import org.apache.kafka.metadata.LeaderRecoveryState;
import org.apache.kafka.server.common.ControllerRequestCompletionHandler;
import org.apache.kafka.server.common.NodeToControllerChannelManager;
import org.apache.kafka.server.common.TopicIdPartition;
import org.apache.kafka.server.util.Scheduler;

import java.util.Collection;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.function.Supplier;

/** What release 4.3 names or asks in a way of its own. */
final class Release {
    abstract static class Channel implements NodeToControllerChannelManager {
        abstract void send(AbstractRequest.Builder<? extends AbstractRequest> request, RequestCompletionHandler handler);

        public void sendRequest(
            AbstractRequest.Builder<? extends AbstractRequest> request, ControllerRequestCompletionHandler handler
        ) {
            send(request, handler);
        }
    }

    static DefaultAlterPartitionManager manager(
        Channel channel, Scheduler scheduler, Time time, int brokerId, Supplier<Long> epoch
    ) {
        return new DefaultAlterPartitionManager(channel, scheduler, time, brokerId, epoch::get);
    }

    static LeaderAndIsr proposal(int leaderEpoch, LeaderRecoveryState recovery, List<BrokerState> isr, int partitionEpoch) {
        return new LeaderAndIsr(1, leaderEpoch, recovery, isr, partitionEpoch);
    }

    static CompletableFuture<LeaderAndIsr> submit(
        DefaultAlterPartitionManager manager, Uuid id, String topic, int partition, LeaderAndIsr proposed
    ) {
        return manager.submit(new TopicIdPartition(id, partition), proposed);
    }

    static String shown(TopicIdPartition partition, Map<Uuid, String> topics) {
        return topics.get(partition.topicId()) + "-" + partition.partitionId();
    }

    static Collection<Integer> ids(Collection<Integer> ids) {
        return ids;
    }
}
