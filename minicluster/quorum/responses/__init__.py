"""One file per response to a node's own requests."""
