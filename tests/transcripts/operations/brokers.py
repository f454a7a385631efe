"""Transcript operations of brokers: registrations, sessions, directories."""

from __future__ import annotations

from minicluster.controller.operations.assign_replicas_to_dirs import assign_replicas_to_dirs
from minicluster.controller.operations.broker_heartbeat import broker_heartbeat
from minicluster.controller.operations.broker_registration import register_broker
from minicluster.controller.operations.unregister_broker import unregister_broker
from minicluster.controller.periodic_tasks import (
    maybe_fence_stale_broker,
)
from minicluster.controller.state.broker_heartbeat_manager import BrokerIdAndEpoch
from minicluster.metadata.metadata_version import ELR_VERSION, FEATURE_NAME
from minicluster.protocol import format_uuid, parse_uuid
from minicluster.protocol import messages as m
from tests.transcripts.operations.results import (
    Result,
    error_name,
    result_of,
    uuids,
)
from tests.transcripts.replayed_controller import Json, ReplayedController


def on_register_broker(controller: ReplayedController, line: Json) -> Result:
    request = line["request"]
    Feature = m.BrokerRegistrationRequest.Feature
    low, high = controller.full_range.start, controller.full_range.stop - 1
    features = []
    top = {"full": high, "narrow": controller.level - 1, "none": None}[request["feature"]]
    if top is not None:
        features.append(
            Feature(name=FEATURE_NAME, min_supported_version=low, max_supported_version=top)
        )
    if controller.elr_offered:
        features.append(Feature(name=ELR_VERSION, min_supported_version=0, max_supported_version=1))
    broker_id = request["broker_id"]
    listener = m.BrokerRegistrationRequest.Listener(
        name="PLAINTEXT", host="localhost", port=9092 + broker_id, security_protocol=0
    )
    decision = register_broker(
        controller.state,
        m.BrokerRegistrationRequest(
            broker_id=broker_id,
            cluster_id=request["cluster_id"],
            incarnation_id=parse_uuid(request["incarnation_id"]),
            listeners=(listener,),
            features=tuple(features),
            rack=request["rack"],
            log_dirs=uuids(request["log_dirs"]),
            previous_broker_epoch=request["previous_broker_epoch"],
        ),
        request["version"],
        line["base_offset"],
        0,
        line["now_ms"],
    )
    return result_of(decision, decision.response.broker_epoch)


def on_broker_heartbeat(controller: ReplayedController, line: Json) -> Result:
    request, now_ms = line["request"], line["now_ms"]
    controller.heartbeats.contact(request["broker_id"], request["broker_epoch"], now_ms)
    controller.sessions.put(BrokerIdAndEpoch(request["broker_id"], request["broker_epoch"]))
    cordoned = request.get("cordoned_log_dirs")
    decision = broker_heartbeat(
        controller.state,
        m.BrokerHeartbeatRequest(
            broker_id=request["broker_id"],
            broker_epoch=request["broker_epoch"],
            current_metadata_offset=request["current_metadata_offset"],
            want_fence=request["want_fence"],
            want_shut_down=request["want_shut_down"],
            offline_log_dirs=uuids(request["offline_log_dirs"]),
            cordoned_log_dirs=None if cordoned is None else uuids(cordoned),
        ),
        2,
        now_ms,
    )
    response = decision.response
    names = ("is_caught_up", "is_fenced", "in_controlled_shutdown", "should_shut_down")
    return result_of(decision, {name: getattr(response, name) for name in names})


def on_maybe_fence_stale_brokers(controller: ReplayedController, line: Json) -> Result:
    now_ms = line["now_ms"]
    if not controller.state.rules.sessions_by_epoch:
        decision = maybe_fence_stale_broker(controller.state, now_ms)
        return result_of(decision, None)
    session = controller.stale_session(now_ms)
    decision = maybe_fence_stale_broker(controller.state, now_ms, first=session)
    return result_of(decision, decision.response)


def on_unregister_broker(controller: ReplayedController, line: Json) -> Result:
    request = m.UnregisterBrokerRequest(broker_id=line["request"]["broker_id"])
    return result_of(unregister_broker(controller.state, request, 0, line["now_ms"]), None)


def on_assign_replicas_to_dirs(controller: ReplayedController, line: Json) -> Result:
    request = line["request"]
    Request = m.AssignReplicasToDirsRequest
    decision = assign_replicas_to_dirs(
        controller.state,
        Request(
            broker_id=request["broker_id"],
            broker_epoch=request["broker_epoch"],
            directories=tuple(
                Request.DirectoryData(
                    id=parse_uuid(directory["id"]),
                    topics=tuple(
                        Request.TopicData(
                            topic_id=parse_uuid(topic["topic_id"]),
                            partitions=tuple(
                                Request.PartitionData(partition_index=index)
                                for index in topic["partitions"]
                            ),
                        )
                        for topic in directory["topics"]
                    ),
                )
                for directory in request["directories"]
            ),
        ),
        0,
        line["now_ms"],
    )
    return result_of(
        decision,
        [
            {
                "id": format_uuid(directory.id),
                "topic_id": format_uuid(topic.topic_id),
                "partition": part.partition_index,
                "error": error_name(part.error_code),
            }
            for directory in decision.response.directories
            for topic in directory.topics
            for part in topic.partitions
        ],
    )
