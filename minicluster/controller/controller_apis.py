"""The APIs of a controller: each is declared at the end of the module that decides it.

Source:  ControllerApis.
"""

from __future__ import annotations

from collections.abc import Mapping

from minicluster.controller.api import ControllerApi
from minicluster.controller.operations import (
    allocate_producer_ids,
    alter_client_quotas,
    alter_configs,
    alter_partition,
    alter_partition_reassignments,
    alter_user_scram_credentials,
    assign_replicas_to_dirs,
    broker_heartbeat,
    broker_registration,
    controller_registration,
    create_acls,
    create_partitions,
    create_topics,
    delegation_tokens,
    delete_acls,
    delete_topics,
    elect_leaders,
    list_partition_reassignments,
    unregister_broker,
    update_features,
)
from minicluster.controller.operations.kip_texts import alter_isr, alter_replica_state
from minicluster.protocol import Message

_OF_NODES = (
    alter_partition.API,
    broker_registration.API,
    broker_heartbeat.API,
    assign_replicas_to_dirs.API,
    controller_registration.API,
    allocate_producer_ids.API,
)
# Forwarded by a broker or sent to the controller itself.
_OF_ADMINISTRATORS = (
    create_topics.API,
    unregister_broker.API,
    delete_topics.API,
    create_partitions.API,
    elect_leaders.API,
    alter_partition_reassignments.API,
    list_partition_reassignments.API,
    alter_configs.INCREMENTAL_ALTER_CONFIGS,
    alter_configs.ALTER_CONFIGS,
    alter_client_quotas.API,
    alter_user_scram_credentials.API,
    update_features.API,
    create_acls.API,
    delete_acls.API,
    delegation_tokens.CREATE_DELEGATION_TOKEN,
    delegation_tokens.RENEW_DELEGATION_TOKEN,
    delegation_tokens.EXPIRE_DELEGATION_TOKEN,
)
# Never shipped.
_OF_KIP_TEXTS = (alter_isr.OF_KIP_497, alter_isr.OF_KIP_704, alter_replica_state.API)

CONTROLLER_APIS: Mapping[type[Message], ControllerApi] = {
    api.request: api for api in (*_OF_NODES, *_OF_ADMINISTRATORS, *_OF_KIP_TEXTS)
}
