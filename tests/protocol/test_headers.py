"""The header of each message's file: its versions, and the fields that each of them changed."""

from __future__ import annotations

import re
import sys

import pytest

from minicluster.protocol import messages
from minicluster.protocol.api_keys import APIS
from tests.protocol.message_versions import changes


@pytest.mark.parametrize(
    "name", [*(api.name for api in APIS.values()), "ListClientMetricsResources"]
)
def test_the_header_lists_what_changed_in_each_version(name: str) -> None:
    request = getattr(messages, f"{name}Request")
    header = re.sub(r"\s+", " ", sys.modules[request.__module__].__doc__ or "").strip()
    for version in list(request.valid_versions)[1:]:
        changed = changes(request, getattr(messages, f"{name}Response"), version)
        line = re.search(rf" {version}: (.*?)\.(?: \d+: |$| [A-Z])", header)
        assert line is not None and line[1].startswith(changed), f"{version}: {changed}"
