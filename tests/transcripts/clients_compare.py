"""Comparison of responses with recorded ones, without all that timing or the host decides.

Compared as sets are the topics of a Metadata response to "all topics", listed groups, described
configs and their synonyms, members of described groups. Left out are throttle times, sizes of log
directories, broker configs whose value is a path, a port or an address, and offsets of the
metadata log, which records without content push on every half second. An OffsetFetch may have come
while the recorded coordinator still loaded its partition, which takes no time here. The first
FindCoordinator waits here until the topic is made, where the recorded node refused it at once.

A secured node's responses have further sets, and list topics that failed behind the others.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from minicluster.protocol import ErrorCode
from tests.transcripts.clients_forms import ANY_NUMBER, TIME, Names, holds_name, is_name

IGNORED = frozenset({"throttleTimeMs"})
IGNORED_OF = {
    "ApiVersions": frozenset({"finalizedFeaturesEpoch"}),
    "DescribeQuorum": frozenset(
        {"highWatermark", "logEndOffset", "lastFetchTimestamp", "lastCaughtUpTimestamp"}
    ),
    "DescribeLogDirs": frozenset({"totalBytes", "usableBytes", "partitionSize"}),
}
MESSAGE = "errorMessage"
_MADE = (ErrorCode.COORDINATOR_NOT_AVAILABLE, ErrorCode.NONE)
_LOADED = (ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ErrorCode.NONE)
LOCAL_CONFIGS = frozenset(
    {
        "advertised.listeners",
        "broker.id",
        "controller.quorum.bootstrap.servers",
        "controller.quorum.voters",
        "listeners",
        "log.dir",
        "log.dirs",
        "metadata.log.dir",
    }
)
_SORTED: dict[str, dict[str, tuple[str, ...]]] = {  # API -> field -> the order of its items
    "Metadata": {"topics": ("name", "topicId"), "brokers": ("nodeId",)},
    "DeleteTopics": {"responses": ("name", "topicId")},  # Kafka shuffles them
    "ElectLeaders": {"replicaElectionResults": ("topic",)},  # by what the table once held
    "ListGroups": {"groups": ("groupId",)},
    "DescribeConfigs": {"configs": ("name",), "synonyms": ("source", "name", "value")},
    "JoinGroup": {"members": ("groupInstanceId", "memberId")},  # by the hash of random ids
    "DescribeGroups": {"members": ("groupInstanceId", "memberId")},
    "ConsumerGroupDescribe": {"members": ("memberId",)},
}
_ACL = ("principal", "host", "operation", "permissionType")
_PATTERN = ("resourceType", "resourceName", "patternType")
_SORTED_SECURED: dict[str, dict[str, tuple[str, ...]]] = {
    "CreateTopics": {"topics": ("name",)},
    "DescribeAcls": {"resources": _PATTERN, "acls": _ACL},
    "DeleteAcls": {"matchingAcls": _PATTERN + _ACL},
    "AlterUserScramCredentials": {"results": ("user",)},
    "DeleteRecords": {"topics": ("name",), "partitions": ("partitionIndex",)},
    "AddPartitionsToTxn": {
        "resultsByTopicV3AndBelow": ("name",),
        "resultsByPartition": ("partitionIndex",),
    },
    "DescribeDelegationToken": {"tokens": ("tokenId",)},
    "Produce": {"responses": ("name", "topicId")},  # by the hash of random ids
}
"""Further sets of a secured node's responses."""
_REQUEST = " <request>"  # in place of a text with addresses, which is left out here


@dataclass(slots=True)
class Difference:
    """Where two responses differ."""

    path: str
    expected: Any
    got: Any

    def __str__(self) -> str:
        return f"  {self.path}: expected {_short(self.expected)}, got {_short(self.got)}"


@dataclass(slots=True)
class Comparison:
    """A recorded response beside the one that was given.

    Shapes:  in_order: the request names its topics, so their order counts; secured: by a node
             with an authorizer.
    """

    api: str
    names: Names
    in_order: bool = False
    secured: bool = False
    differences: list[Difference] = field(default_factory=list)
    messages: list[Difference] = field(default_factory=list)
    not_advertised: list[int] = field(default_factory=list)

    def of(self, expected: Any, got: Any) -> Comparison:
        """Compare two responses."""
        self._walk("", "", expected, got)
        return self

    def _walk(self, name: str, path: str, expected: Any, got: Any) -> None:
        if isinstance(expected, dict) and isinstance(got, dict):
            self._object(path, expected, got)
        elif isinstance(expected, list) and isinstance(got, list):
            self._array(name, path, expected, got)
        elif name == MESSAGE and isinstance(expected, str) and _REQUEST in expected:
            self._walk(name, path, expected.replace(_REQUEST, ""), got)
        elif isinstance(expected, str) and isinstance(got, str) and holds_name(expected):
            self._walk(name, path, self.names.in_text(expected), got)
        elif expected in ANY_NUMBER:
            if not isinstance(got, int) or isinstance(got, bool) or got < 0:
                self.differences.append(Difference(path, expected, got))
        elif is_name(expected):
            if not self.names.matches(expected, got):
                bound = self.names.values.get(expected, "a new value")
                self.differences.append(Difference(path, f"{expected} = {bound}", got))
        elif self.api == "OffsetFetch" and name == "errorCode" and (expected, got) == _LOADED:
            return
        elif expected != got and not _same_but_for_times(expected, got):
            kept = self.messages if name == MESSAGE else self.differences
            kept.append(Difference(path, expected, got))

    def _object(self, path: str, expected: Mapping[str, Any], got: Mapping[str, Any]) -> None:
        codes = (expected.get("errorCode"), got.get("errorCode"))
        if self.api == "FindCoordinator" and codes == _MADE:
            return
        ignored = IGNORED | IGNORED_OF.get(self.api, frozenset())
        if self.api == "DescribeConfigs" and expected.get("name") in LOCAL_CONFIGS:
            ignored |= {"value", "synonyms"}
        for key in {**expected, **got}:
            if key in ignored:
                continue
            if key not in expected or key not in got:
                self.differences.append(
                    Difference(
                        f"{path}.{key}", expected.get(key, "nothing"), got.get(key, "nothing")
                    )
                )
            else:
                self._walk(key, f"{path}.{key}", expected[key], got[key])

    def _array(self, name: str, path: str, expected: list[Any], got: list[Any]) -> None:
        if self.api == "ApiVersions" and name == "apiKeys":
            offered = {item["apiKey"] for item in got}
            self.not_advertised += [i["apiKey"] for i in expected if i["apiKey"] not in offered]
            expected = [item for item in expected if item["apiKey"] in offered]
        keys = _SORTED.get(self.api, {}).get(name)
        if self.secured:
            keys = _SORTED_SECURED.get(self.api, {}).get(name, keys)
        if self.secured and name in ("topics", "responses"):
            expected, got = self._failed_last(expected), self._failed_last(got)
        elif self.in_order and name == "topics" and _outcomes(expected) == _outcomes(got):
            keys = None
        if keys is not None:
            self._bind_new_names(expected, got, keys)
            expected = self._in_order(expected, keys)
            got = self._in_order(got, keys)
            if name == "configs":
                self._configs(path, expected, got)
                return
        if len(expected) != len(got):
            self.differences.append(Difference(path, expected, got))
            return
        for index, (one, other) in enumerate(zip(expected, got, strict=True)):
            self._walk("", f"{path}[{index}]", one, other)

    def _failed_last(self, items: list[Any]) -> list[Any]:
        """Topics that have failed stand behind the others, in no order."""
        failed = [item for item in items if _has_error(item)]
        failed = self._in_order(failed, ("name", "topicId", "topic", "resourceName"))
        return [item for item in items if not _has_error(item)] + failed

    def _configs(self, path: str, expected: list[Any], got: list[Any]) -> None:
        given = {item["name"]: item for item in got}
        for item in expected:
            other = given.pop(item["name"], None)
            where = f"{path}[{item['name']}]"
            if other is None:
                self.differences.append(Difference(where, item, "nothing"))
            else:
                self._walk("", where, item, other)
        for name, item in given.items():
            self.differences.append(Difference(f"{path}[{name}]", "nothing", item))

    def _bind_new_names(self, expected: list[Any], got: list[Any], keys: tuple[str, ...]) -> None:
        """Bind names that appear first in a set: to the item that is the same otherwise."""
        for item in expected:
            for key in keys:
                name = item.get(key)
                if not is_name(name) or name in self.names.values:
                    continue
                bound = self.names.values.values()
                free = [one for one in got if one.get(key) not in bound]
                same = [one for one in free if self._is_same_but_for_names(item, one)]
                for one in (same or free)[:1]:
                    self.names.matches(name, one[key])

    def _is_same_but_for_names(self, item: Mapping[str, Any], one: Mapping[str, Any]) -> bool:
        return all(one.get(key) == value for key, value in item.items() if not is_name(value))

    def _in_order(self, items: list[Any], keys: tuple[str, ...]) -> list[Any]:
        return sorted(items, key=lambda item: tuple(self._text(item.get(key)) for key in keys))

    def _text(self, value: Any) -> str:
        return json.dumps(self.names.values.get(value, value) if is_name(value) else value)


def _same_but_for_times(expected: Any, got: Any) -> bool:
    """Two texts are the same but for the numbers where the recorded one has ``<time>``."""
    if not isinstance(expected, str) or not isinstance(got, str) or TIME not in expected:
        return False
    pieces = (re.escape(piece) for piece in expected.split(TIME))
    return re.fullmatch("[0-9]+".join(pieces), got) is not None


def _short(value: Any, width: int = 400) -> str:
    text = json.dumps(value, default=str)
    return text if len(text) <= width else text[:width] + " …"


def _has_error(item: Any) -> bool:
    if isinstance(item, list):
        return any(map(_has_error, item))
    return isinstance(item, dict) and any(
        value if key.lower().endswith("errorcode") else _has_error(value)
        for key, value in item.items()
    )


def _outcomes(topics: list[Any]) -> set[tuple[Any, Any]]:
    """The topics with their errors; where these differ, the order does as well."""
    return {(topic.get("name"), topic.get("errorCode")) for topic in topics}
