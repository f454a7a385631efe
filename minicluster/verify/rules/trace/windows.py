"""Frames of windows over a run's events, and the image that a node published last."""

from __future__ import annotations

UP_TO_HERE = "rows between unbounded preceding and current row"
BEFORE = "rows between unbounded preceding and 1 preceding"

# An image that a node published, and the first one that the log, as far as it is kept, can make.
AN_IMAGE = "case when published then named_struct('offset', offset, 'first', first_image) end"
