"""Clients of a cluster as pure machines: members of groups, and transactional producers."""
