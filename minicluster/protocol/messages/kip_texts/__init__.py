"""Messages that only the texts of KIPs have: no release shipped them in this form.

``kip_497`` and ``kip_704`` are two states of AlterIsr, which shipped as AlterPartition;
``kip_589`` is AlterReplicaState, which never shipped. They are in no registry, because their api
keys belong to others or to none.
"""
