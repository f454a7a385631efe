"""The operations on what a cluster keeps of its clients: quotas and credentials."""
