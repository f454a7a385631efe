"""The control requests that a controller sent, broker by broker, in order.

A broker logs a request when it has responded: what a broker was doing when it was killed is not
there, and leaves a gap in the correlation ids of the controller's channel.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from minicluster.controller.zookeeper.effects import ControlRequest
from tests.transcripts.report import AGREE, DIFFER, Outcome
from tests.transcripts.zookeeper.controllers import Controller
from tests.transcripts.zookeeper.forms import NAMES, comparable, read_message
from tests.transcripts.zookeeper.recording import CONTROL_APIS, Recorded, Recording

SKIPPED = "hash order"
_API_OF = {NAMES[api]: api for api in CONTROL_APIS}


class LoggedRequests:
    """The control requests that each broker logged of each controller, in order."""

    def __init__(self, recording: Recording) -> None:
        self._forms: dict[int, tuple[ControlRequest, tuple[str, Any]]] = {}
        self._brokers = sorted({one.broker for one in recording.requests})
        self._logged: dict[tuple[int, int, int], list[tuple[str, Any]]] = {}
        for one in recording.requests:
            if one.api in CONTROL_APIS and not one.is_probe:
                assert one.controller_id is not None and one.controller_epoch is not None
                key = (one.controller_id, one.controller_epoch, one.broker)
                message = read_message(one.api, "Request", one.version, one.request)
                logged = (one.api, comparable(message, one.version))
                self._logged.setdefault(key, []).append(logged)

    def first_live(self, controller: Controller) -> set[int]:
        """The live brokers of the first UpdateMetadata that a broker logged of a controller."""
        key = (controller.broker, controller.elected_epoch, controller.broker)
        for api, message in self._logged.get(key, ())[:1]:
            if api == "UPDATE_METADATA" and not message["topicStates"]:
                return {one["id"] for one in message["liveBrokers"]}
        return set()

    def has_next(self, controller: Controller, before: int) -> bool:
        """The controller's new requests are the next ones that the brokers logged, if they did."""
        found = False
        for broker in self._brokers:
            key = (controller.broker, controller.elected_epoch, broker)
            logged = self._logged.get(key, [])
            sent = [self._form(one) for one in controller.sent[before:] if one.to == broker]
            if not sent:
                continue
            earlier = [one for one in controller.sent[:before] if one.to == broker]
            follows = [logged[place : place + len(sent)] for place in self._places(logged, earlier)]
            if all(len(one) < len(sent) for one in follows):
                continue
            if sent not in follows:
                return False
            found = True
        return found

    def _places(
        self, logged: list[tuple[str, Any]], earlier: list[ControlRequest]
    ) -> tuple[int, ...]:
        """The places in the log after the requests sent earlier, of which some were not logged."""
        if earlier:
            last = self._form(earlier[-1])
            for place in range(min(len(earlier), len(logged)) - 1, -1, -1):
                if logged[place] == last:
                    return (len(earlier), place + 1)
        return (len(earlier),)

    def _form(self, sent: ControlRequest) -> tuple[str, Any]:
        known = self._forms.get(id(sent))
        if known is None:
            form = (_api(sent), comparable(sent.request, sent.version))
            self._forms[id(sent)] = known = (sent, form)
        return known[1]


def compare_sent(controllers: Sequence[Controller], recording: Recording) -> Iterator[Outcome]:
    """One outcome for each control request that a broker logged."""
    for controller in controllers:
        for broker in sorted({one.broker for one in recording.requests}):
            recorded = [
                one
                for one in recording.requests
                if one.api in CONTROL_APIS
                and not one.is_probe
                and one.broker == broker
                and (one.controller_id, one.controller_epoch)
                == (controller.broker, controller.elected_epoch)
            ]
            sent = [one for one in controller.sent if one.to == broker]
            yield from _compare(recording, recorded, sent)


def _compare(
    recording: Recording, recorded: list[Recorded], sent: list[ControlRequest]
) -> Iterator[Outcome]:
    ours = [(_api(one), comparable(one.request, one.version)) for one in sent]
    place = 0
    for one in recorded:
        message = read_message(one.api, "Request", one.version, one.request)
        theirs = (one.api, comparable(message, one.version))
        where = f"{recording.path.name} request {one.number}"
        try:
            found = ours.index(theirs, place)
        except ValueError:
            near = ours[place] if place < len(ours) else None
            detail = f"  recorded {theirs}\n  ours     {near}"
            yield Outcome(f"sent {one.api}", DIFFER, where, detail)
            continue
        skipped = found - place
        place = found + 1
        detail = f"{skipped} more were sent before it"
        yield Outcome(f"sent {one.api}", AGREE if not skipped else SKIPPED, where, detail)


def _api(sent: ControlRequest) -> str:
    return _API_OF[type(sent.request).__name__.removesuffix("Request")]
