"""The metadata image: what the records of the metadata log mean.

Everything here is a value, or a machine over values. ``image.apply`` is the one fold that the
active controller, a standby, a broker, the publisher, a snapshot and the checkers share.

::

    records --image.apply--> MetadataImage --snapshot.image_records--> records
                                   |
                                 delta (the changes, for a broker)
                                   |
    commits, snapshots --loader--> publishers --snapshot_generator--> WriteSnapshot

``metadata_version`` holds every gate, ``partition`` the merge of a change, ``bootstrap`` what a
new log begins with.
"""
