"""The state of one node of the quorum."""
