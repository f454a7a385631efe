"""Classic groups: the members choose a leader, and the leader assigns (KIP-62, KIP-345)."""
