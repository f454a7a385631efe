"""Requests that the texts of KIPs specify and no release has: AlterIsr, AlterReplicaState."""
