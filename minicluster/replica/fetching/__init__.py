"""Fetching from leaders, and the fetch sessions on both sides (KIP-227)."""
