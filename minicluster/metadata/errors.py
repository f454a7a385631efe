"""Errors between records and an image."""

from __future__ import annotations

from minicluster.errors import MiniclusterError, UserError


class ReplayError(MiniclusterError):
    """A record does not fit the state that it is applied to: the log or a decision is wrong."""


class MetadataLost(MiniclusterError):
    """The image holds something that the metadata.version cannot write.

    Source:  UnwritableMetadataException.
    """


class UnknownMetadataVersion(UserError):
    """No metadata.version has this name or level."""
