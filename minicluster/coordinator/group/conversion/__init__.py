"""Groups with members of both protocols, and their change from one kind to the other (KIP-848)."""
