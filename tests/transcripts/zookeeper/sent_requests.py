"""The control requests that a controller sent, broker by broker, in order.

A broker logs a request when it has responded: what a broker was doing when it was killed is not
there, and leaves a gap in the correlation ids of the controller's channel.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from minicluster.zookeeper.controller.effects import ControlRequest
from minicluster.zookeeper.znodes import paths
from tests.transcripts.report import AGREE, DIFFER, NOT_LOGGED, Outcome
from tests.transcripts.zookeeper.controllers import Controller
from tests.transcripts.zookeeper.forms import NAMES, comparable, read_message
from tests.transcripts.zookeeper.recording import CONTROL_APIS, Recorded, Recording

ENDED_MS, ENDS_MS = 1_000, 10_000
"""A session ends up to 10 s after its broker does, and a broker logs nothing more from then on."""

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
        for count in range(len(earlier), 0, -1):
            last = self._form(earlier[count - 1])
            for place in range(min(count, len(logged)) - 1, -1, -1):
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
    """One outcome for each control request that a broker logged, and for each that it should have.

    A request of ours that is not in the log is excused where the gap in the correlation ids has
    room for it, where the broker's channel began anew, or where one of the two was about to end.
    """
    ends = _Ends(recording)
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
            yield from _compare(recording, recorded, _Channel(controller, broker), ends)


class _Channel:
    """The requests of a controller to one broker, in order."""

    def __init__(self, controller: Controller, broker: int) -> None:
        places = [place for place, one in enumerate(controller.sent) if one.to == broker]
        sent = [controller.sent[place] for place in places]
        self.controller, self.broker = controller.broker, broker
        self.forms = [(_api(one), comparable(one.request, one.version)) for one in sent]
        self.ms = [controller.sent_ms[place] for place in places]


class _Ends:
    """When the sessions of brokers ended, or a controller was deposed: what they were doing then
    may not have been logged.
    """

    def __init__(self, recording: Recording) -> None:
        self._ended: dict[int | None, list[int]] = {}
        brokers = {one.session: one.broker for one in recording.transactions}
        controller = None
        for one in recording.transactions:
            if one.kind == "close_session":
                self._ended.setdefault(brokers[one.session], []).append(one.ms)
            for entry in one.entries:
                if entry.path == paths.CONTROLLER and entry.op == "create":
                    controller = one.broker
                elif entry.path == paths.CONTROLLER and entry.op == "delete":
                    self._ended.setdefault(controller, []).append(one.ms)
        self._last_ms = recording.transactions[-1].ms

    def excuse(self, channel: _Channel, sent_ms: int) -> bool:
        """The broker or the controller ended shortly after a request, or the recording did."""
        known = (self._ended.get(one, []) for one in (channel.broker, channel.controller))
        ended = [self._last_ms, *(ms for some in known for ms in some)]
        return any(sent_ms - ENDED_MS <= ms <= sent_ms + ENDS_MS for ms in ended)


def _compare(
    recording: Recording, recorded: list[Recorded], channel: _Channel, ends: _Ends
) -> Iterator[Outcome]:
    ours, place, correlation_id = channel.forms, 0, -1
    for one in recorded:
        not_logged = one.correlation_id - correlation_id - 1
        is_new = one.correlation_id <= correlation_id
        correlation_id = one.correlation_id
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
        skipped, first = found - place, place
        place = found + 1
        is_excused = all(ends.excuse(channel, channel.ms[n]) for n in range(first, found))
        fits = skipped <= not_logged or (is_new and is_excused)
        verdict = AGREE if not skipped else NOT_LOGGED if fits else DIFFER
        detail = f"  {skipped} of ours before it, a gap of {not_logged} in the correlation ids"
        yield Outcome(f"sent {one.api}", verdict, where, detail)
    for (api, message), sent_ms in zip(ours[place:], channel.ms[place:], strict=True):
        excused = ends.excuse(channel, sent_ms)
        where = f"{recording.path.name} to broker {channel.broker} of {channel.controller}"
        detail = f"  sent at {sent_ms}, after all that are recorded: {message}"
        yield Outcome(f"sent {api}", NOT_LOGGED if excused else DIFFER, where, detail)


def _api(sent: ControlRequest) -> str:
    return _API_OF[type(sent.request).__name__.removesuffix("Request")]
