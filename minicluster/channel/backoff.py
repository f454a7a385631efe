"""The pause before a retry.

Source:  ExponentialBackoff (org.apache.kafka.common.utils).
"""

from __future__ import annotations

from minicluster.values import Value

RETRY_BACKOFF_MS = 50
"""After an error of the controller that is likely to pass, and does not grow.

Source:  AlterPartitionManager, RPCProducerIdManager.
"""
_DOUBLINGS_MAX = 30


class ExponentialBackoff(Value):
    """A pause that doubles with each failure, up to a limit.

    Leaves out: jitter, which is chance. A simulation has its own: the delays of the network.
    """

    initial_ms: int
    max_ms: int

    def backoff_ms(self, failures: int) -> int:
        """The pause after so many earlier failures in a row."""
        return min(self.initial_ms << min(failures, _DOUBLINGS_MAX), self.max_ms)
