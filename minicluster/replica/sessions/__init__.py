"""Incremental fetch sessions (KIP-227)."""
