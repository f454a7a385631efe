"""Which releases of Apache Kafka may have written a log, at each of its offsets.

A log does not name the code that wrote it. ``metadata.version`` says what a record may hold: an old
level may be that of new code, but no code writes a level that it does not know. Controllers
register with the levels that they support (from 3.7-IV0 on), which is closer. So a rule whose
promise is younger than KRaft asks for the oldest release that may have written a record; below the
release that made the promise it is not promised.

========================  ========================================================================
takes                     FeatureLevelRecord (metadata.version), RegisterControllerRecord
keeps                     by controller the release that it registered with; each offset from which
                          another release is the oldest
========================  ========================================================================

Patch releases cannot be told apart: what 3.8.1 promises and 3.8.0 did not holds from 3.9 on.
"""

from __future__ import annotations

from bisect import bisect_right
from operator import itemgetter

from minicluster.metadata.metadata_version import (
    FEATURE_NAME,
    MAX_LEVEL,
    MIN_LEVEL,
    MetadataVersion,
)
from minicluster.protocol import records as r
from minicluster.protocol.schema import Message
from minicluster.verify.model import FROM_3_3
from minicluster.verify.promises import Release

FIRST: Release = (3, 0)  # with KRaft
_LAST_OF_3: Release = (3, 9)


class Releases:
    """The oldest release that may have written each record of a log.

    Shapes:  known: the release, where a run records it.
    """

    def __init__(self, known: Release | None = None) -> None:
        self._known = known
        self._of_level = FIRST
        self._controllers: dict[int, Release] = {}
        self._from: list[tuple[int, Release]] = []  # by offset

    @property
    def oldest(self) -> Release:
        """The oldest release that may write the next record."""
        return self.at(2**63)

    def at(self, offset: int) -> Release:
        """The oldest release that may have written what ends at an offset."""
        if self._known is not None:
            return self._known
        place = bisect_right(self._from, offset, key=itemgetter(0))
        return self._from[place - 1][1] if place else FIRST

    def take(self, offset: int, record: Message) -> None:
        """Take a record that takes effect; most tell nothing."""
        if isinstance(record, r.FeatureLevelRecord) and record.name == FEATURE_NAME:
            self._of_level = release_of_level(record.feature_level)
        elif isinstance(record, r.RegisterControllerRecord):
            self._register(record)
        else:
            return
        registered = min(self._controllers.values(), default=FIRST)
        oldest = max(self._of_level, registered)
        if not self._from or self._from[-1][1] != oldest:
            self._from.append((offset, oldest))

    def _register(self, record: r.RegisterControllerRecord) -> None:
        for feature in record.features:
            if feature.name == FEATURE_NAME:
                release = release_of_level(feature.max_supported_version)
                # Kafka 4 has dropped the levels before 3.3-IV3, and an unstable level of the next
                # release may be turned on.
                if feature.min_supported_version < FROM_3_3:
                    release = min(release, _LAST_OF_3)
                self._controllers[record.controller_id] = release


def release_of_level(level: int) -> Release:
    """The release that brought a level of metadata.version; that of the newest one known for a
    level beyond it."""
    name = MetadataVersion(min(max(level, MIN_LEVEL), MAX_LEVEL)).version_name
    major, minor = name.partition("-")[0].split(".")
    return int(major), int(minor)
