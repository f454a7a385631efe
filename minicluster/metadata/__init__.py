"""The metadata image: what the records of the metadata log mean.

Everything here is a value. ``image.apply`` is the one fold that the active controller, a standby, a
broker, the publisher, a snapshot and the checkers share.
"""
