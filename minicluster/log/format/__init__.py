"""Bytes within a batch: varints, compression, and the limits of reading."""
