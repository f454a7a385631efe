package org.apache.kafka.controller;

import com.fasterxml.jackson.databind.JsonNode;

import org.apache.kafka.common.message.AlterPartitionRequestData;

import java.util.ArrayList;

/** What both releases read alike. */
class Partitions {
    static AlterPartitionRequestData.PartitionData wanted(JsonNode wanted, int version) {
        var partition = new AlterPartitionRequestData.PartitionData().
            setPartitionIndex(wanted.get("partition_index").asInt()).
            setLeaderEpoch(wanted.get("leader_epoch").asInt()).
            setPartitionEpoch(wanted.get("partition_epoch").asInt()).
            setLeaderRecoveryState((byte) wanted.get("leader_recovery_state").asInt());
        var ids = new ArrayList<Integer>();
        var brokers = new ArrayList<AlterPartitionRequestData.BrokerState>();
        for (JsonNode broker : wanted.get("new_isr_with_epochs")) {
            ids.add(broker.get("broker_id").asInt());
            brokers.add(new AlterPartitionRequestData.BrokerState().
                setBrokerId(broker.get("broker_id").asInt()).
                setBrokerEpoch(broker.get("broker_epoch").asLong()));
        }
        return version < 3 ? partition.setNewIsr(ids) : partition.setNewIsrWithEpochs(brokers);
    }
}
