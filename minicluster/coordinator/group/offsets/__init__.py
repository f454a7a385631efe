"""Committed offsets of groups, and the requests that commit, fetch and delete them."""
