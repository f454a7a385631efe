package org.apache.kafka.server.compared;

import kafka.api.LeaderAndIsr;
import kafka.server.DefaultAlterPartitionManager;

import org.apache.kafka.clients.RequestCompletionHandler;
import org.apache.kafka.common.TopicIdPartition;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.message.AlterPartitionRequestData.BrokerState;
import org.apache.kafka.common.requests.AbstractRequest;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.metadata.LeaderRecoveryState;
import org.apache.kafka.server.ControllerRequestCompletionHandler;
import org.apache.kafka.server.NodeToControllerChannelManager;
import org.apache.kafka.server.common.MetadataVersion;
import org.apache.kafka.server.util.Scheduler;

import java.util.Collection;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.function.Supplier;

import scala.jdk.javaapi.CollectionConverters;

/** What release 3.9 names or asks in a way of its own. */
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
        return new DefaultAlterPartitionManager(channel, scheduler, time, brokerId, epoch::get, () -> MetadataVersion.IBP_3_9_IV0);
    }

    static LeaderAndIsr proposal(int leaderEpoch, LeaderRecoveryState recovery, List<BrokerState> isr, int partitionEpoch) {
        return new LeaderAndIsr(1, leaderEpoch, recovery, CollectionConverters.asScala(isr).toList(), partitionEpoch);
    }

    static CompletableFuture<LeaderAndIsr> submit(
        DefaultAlterPartitionManager manager, Uuid id, String topic, int partition, LeaderAndIsr proposed
    ) {
        return manager.submit(new TopicIdPartition(id, partition, topic), proposed, 0);
    }

    static String shown(TopicPartition partition, Map<Uuid, String> topics) {
        return partition.topic() + "-" + partition.partition();
    }

    static Collection<Integer> ids(scala.collection.Iterable<Object> ids) {
        return CollectionConverters.asJavaCollection(ids).stream().map(Integer.class::cast).toList();
    }
}
