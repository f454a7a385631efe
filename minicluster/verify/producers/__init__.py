"""Producers with ids, their transactions, and groups that transform what they read."""
