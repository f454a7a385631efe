"""The time at which the recorded node first deleted old segments, from its responses.

The recordings' timestamps are years old, so the first check of retention empties every log that is
not compacted. It comes 30 s after the node's start, and a recording does not have that time.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

USUAL_MS = 27_000  # after the first step
_LATER_MS = 500


@dataclass(slots=True)
class _Logs:
    """State of each log from the responses so far, by topic name and partition."""

    names: dict[str, str] = field(default_factory=dict)
    compacted: set[str] = field(default_factory=set)
    starts: dict[tuple[str, int], int] = field(default_factory=dict)
    ends: dict[tuple[str, int], int] = field(default_factory=dict)

    def learn(self, api: str, request: Any, response: Mapping[str, Any]) -> None:
        """Take the topics of a response, and the log starts that DeleteRecords explains."""
        if api == "CreateTopics":
            for topic in request["topics"]:
                self._forget(topic["name"])
                if any("compact" in str(config["value"]) for config in topic["configs"]):
                    self.compacted.add(topic["name"])
        if api in ("CreateTopics", "Metadata"):
            for topic in response["topics"]:
                if topic.get("topicId") and topic.get("name"):
                    self.names[topic["topicId"]] = topic["name"]
        if api == "DeleteRecords":
            for topic in response["topics"]:
                for data in topic["partitions"]:
                    key = topic["name"], data["partitionIndex"]
                    self.starts[key] = max(self.starts.get(key, 0), data["lowWatermark"])

    def _forget(self, name: str) -> None:
        for known in (self.starts, self.ends):
            for key in [key for key in known if key[0] == name]:
                del known[key]

    def is_emptied(self, topic: Mapping[str, Any], index: int, start: int, end: int) -> bool | None:
        """Retention has emptied a log; None where the response does not show it."""
        name = topic.get("name") or topic.get("topic") or self.names.get(topic.get("topicId", ""))
        if name is None or name in self.compacted:
            return None
        explained = self.starts.get((name, index), 0)
        if start > explained:
            return True
        self.ends[name, index] = end = max(end, self.ends.get((name, index), 0))
        return False if start >= 0 and end > explained else None


def first_retention_ms(steps: Iterable[Mapping[str, Any]]) -> int:
    """The time after the first step at which old segments went."""
    logs, requests = _Logs(), {}
    not_before = 0
    for step in steps:
        if "api" in step:
            requests[step["n"]] = step["request"]
        for item in step["answers"]:
            if "response" not in item:
                continue
            api, response = item["api"], item["response"]
            for emptied in _signs(logs, api, response):
                at_ms = int(step["ms"])
                if emptied:
                    is_usual = not_before < USUAL_MS < at_ms
                    return USUAL_MS if is_usual else (not_before + at_ms) // 2
                not_before = at_ms
            logs.learn(api, requests.get(item["step"]), response)
    return max(USUAL_MS, not_before + _LATER_MS)


def _signs(logs: _Logs, api: str, response: Mapping[str, Any]) -> Iterator[bool]:
    if api == "Produce":
        ends = [
            (topic, data["index"], data.get("logStartOffset", -1), data["baseOffset"])
            for topic in response["responses"]
            for data in topic["partitionResponses"]
        ]
    elif api == "Fetch":
        ends = [
            (topic, data["partitionIndex"], data.get("logStartOffset", -1), data["highWatermark"])
            for topic in response["responses"]
            for data in topic["partitions"]
            if data["errorCode"] == 0
        ]
    else:
        return
    for topic, index, start, end in ends:
        emptied = logs.is_emptied(topic, index, start, end)
        if emptied is not None:
            yield emptied
