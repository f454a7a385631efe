"""The error of a partition that no znode has, with the text of the ZooKeeper controller.

Source:  KafkaController.processReplicaLeaderElection, processApiPartitionReassignment.
"""

from __future__ import annotations

from minicluster.controller.errors import ApiError
from minicluster.protocol import ErrorCode

NO_PARTITION = ApiError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "The partition does not exist.")
