"""Which right each API of a controller's listener needs that its machine does not decide.

What the machine decides declares its right in its operation (``ControllerApi.right`` and the
screens). The rest is answered by the quorum, or from the committed image.

Source:  ControllerApis.
"""

from __future__ import annotations

from collections.abc import Mapping

from minicluster.broker.authorization import described_configs
from minicluster.protocol import Message
from minicluster.protocol import messages as m
from minicluster.security.acls import Operation
from minicluster.security.screening import Screen, cluster

_NODES_ONLY = cluster(Operation.CLUSTER_ACTION)

SCREENS: Mapping[type[Message], Screen] = {
    **dict.fromkeys(
        (
            m.FetchRequest,
            m.FetchSnapshotRequest,
            m.VoteRequest,
            m.BeginQuorumEpochRequest,
            m.EndQuorumEpochRequest,
            m.UpdateRaftVoterRequest,
        ),
        _NODES_ONLY,
    ),
    m.DescribeQuorumRequest: cluster(Operation.DESCRIBE),
    m.AddRaftVoterRequest: cluster(Operation.ALTER),
    m.RemoveRaftVoterRequest: cluster(Operation.ALTER),
    m.DescribeClusterRequest: cluster(Operation.ALTER),
    m.DescribeConfigsRequest: described_configs,
    m.DescribeAclsRequest: cluster(Operation.DESCRIBE),
}
