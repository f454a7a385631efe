"""Stories: scripts of a quorum with what happened written below each command.

A line that begins with ``>`` is a command (``> quietly`` records nothing), one with ``#`` is for
the reader, the rest is what the nodes did, recorded: time, node, what.
``STORIES=rewrite pytest tests/quorum/test_stories.py`` records anew; review the difference.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

from minicluster.durations import parse_duration_ms
from minicluster.effects import Effect, Respond
from minicluster.protocol.error_codes import ErrorCode
from minicluster.protocol.messages import (
    BeginQuorumEpochRequest,
    EndQuorumEpochRequest,
    FetchSnapshotRequest,
    RemoveRaftVoterRequest,
    VoteRequest,
    VoteResponse,
)
from minicluster.quorum import effects as qx
from minicluster.quorum.state.node import Draws
from tests.quorum.chaos import add_request
from tests.quorum.network import CLUSTER_ID, Member, Network, directory_of


def narrate(effect: Effect, before: Effect | None) -> str | None:
    """One effect in a few words; fetches and responses without news are left out."""
    if isinstance(effect, qx.SendTo):
        return _narrate_send(effect)
    if isinstance(effect, qx.Voted):
        return f"votes for {effect.candidate_id} in epoch {effect.epoch}"
    if isinstance(effect, qx.LeaderChange):
        if effect.leader_id < 0:
            return None
        return f"notifies its listener: {effect.leader_id} leads epoch {effect.epoch}"
    if isinstance(effect, qx.Truncated):
        return f"truncates its log to {effect.end_offset}"
    if isinstance(effect, qx.SnapshotInstalled):
        return f"starts over from snapshot {effect.snapshot_id}"
    if isinstance(effect, qx.Deposed):
        return f"leads epoch {effect.epoch} no more"
    if isinstance(effect, qx.Commit):
        values = [r.value for b in effect.batches if not b.is_control for r in b.records]
        texts = " ".join((value or b"").decode() for value in values)
        return f"commits {texts}" if values else None
    if isinstance(effect, Respond):
        return _narrate_response(effect, before)
    return None


def _narrate_send(send: qx.SendTo) -> str | None:
    to = send.host.removeprefix("node")
    if isinstance(send.request, VoteRequest):
        part = send.request.topics[0].partitions[0]
        what = "pre-vote" if part.pre_vote else "vote"
        return (
            f"-> {to} {what} epoch {part.replica_epoch} log {part.last_offset_epoch}/"
            f"{part.last_offset}"
        )
    if isinstance(send.request, BeginQuorumEpochRequest):
        return f"-> {to} begin epoch {send.request.topics[0].partitions[0].leader_epoch}"
    if isinstance(send.request, EndQuorumEpochRequest):
        ended = send.request.topics[0].partitions[0]
        preferred = [each.candidate_id for each in ended.preferred_candidates]
        return f"-> {to} end epoch {ended.leader_epoch}, preferred {preferred}"
    if isinstance(send.request, FetchSnapshotRequest):
        fetched = send.request.topics[0].partitions[0]
        return f"-> {to} fetch snapshot from byte {fetched.position}"
    return None


def _narrate_response(respond: Respond, before: Effect | None) -> str | None:
    response = respond.response
    if respond.token[0] == "admin":
        return f"responds to the admin: {ErrorCode(response.error_code).name}"
    if isinstance(response, VoteResponse) and response.topics:
        part = response.topics[0].partitions[0]
        outcome = "granted" if part.vote_granted else ErrorCode(part.error_code).name
        if isinstance(before, qx.VoteRejected):
            outcome = f"rejected: {before.reason.value}"
        return f"-> {respond.token[1]} {outcome}"
    return None


class NarratingNetwork(Network):
    """A network that writes down what its nodes do."""

    def __init__(self, jitters: dict[int, int], *args: Any, **kwargs: Any) -> None:
        self.lines: list[str] = []
        self.jitters = jitters
        self.roles: dict[int, str] = {}
        super().__init__(*args, **kwargs)

    def draws(self, node_id: int, rng: random.Random) -> Draws:
        first = self.jitters.pop(node_id, None)
        drawn = iter(() if first is None else (first,))
        return Draws(lambda bound: next(drawn, None) or rng.randrange(bound), rng.randrange)

    def _perform(self, member: Member, effects: list[Effect]) -> None:
        for before, effect in zip((None, *effects), effects, strict=False):
            text = narrate(effect, before)
            if text is not None:
                self._narrate(member.id, text)
        if member.machine is not None:
            role = f"{member.machine.role}"
            if role != self.roles.get(member.id):
                self.roles[member.id] = role
                self._narrate(member.id, f"is {role}")
        super()._perform(member, effects)

    def _narrate(self, node_id: int, text: str) -> None:
        """Add a line; the same message to another node joins the line before."""
        head = f"{self.now_ms:6} {node_id:2} "
        if text.startswith("-> ") and self.lines and self.lines[-1].startswith(head + "-> "):
            last = self.lines[-1].removeprefix(head)
            to, rest = text[3:].split(" ", 1)
            before, found, after = last[3:].partition(" " + rest)
            if found and not after:
                self.lines[-1] = f"{head}-> {before},{to} {rest}"
                return
        self.lines.append(head + text)


class Story:
    """Plays the commands of a script."""

    def __init__(self) -> None:
        self.network: NarratingNetwork

    def play(self, script: str) -> str:
        """The script with what happened below each command."""
        out: list[str] = []
        for line in script.splitlines():
            if line.startswith(">"):
                out.append(line)
                words = line[1:].split()
                quiet = words[0] == "quietly"
                words = words[1:] if quiet else words
                command: Callable[..., None] = getattr(self, f"do_{words[0]}")
                command(*words[1:])
                out += [] if quiet else self.network.lines
                self.network.lines = []
            elif line.startswith("#") or not line.strip():
                out.append(line)
        return "\n".join(out) + "\n"

    def _node(self, word: str) -> int:
        if word == "leader":
            return self.network.leader()
        return int(word)

    def do_quorum(self, voters: str, *options: str) -> None:
        """``quorum VOTERS [dynamic] [observer=N] [ID=JITTER…]``: start that many voters."""
        jitters = {int(o.split("=")[0]): int(o.split("=")[1]) for o in options if o[0].isdigit()}
        observers = [int(o.split("=")[1]) for o in options if o.startswith("observer=")]
        self.network = NarratingNetwork(
            jitters,
            range(1, int(voters) + 1),
            observers,
            seed=1,
            dynamic="dynamic" in options,
            delay_ms=(2, 2),
        )

    def do_until(self, what: str, *words: str) -> None:
        """``until leader | until leader not N | until committed N TEXT | until role N ROLE``"""
        network = self.network
        if words[:1] == ("not",):
            network.run_until(lambda: network.leader() not in (-1, int(words[1])))
        elif what == "leader":
            network.run_until(network.has_leader)
        elif what == "committed":
            text = words[1].encode()
            member = network.members[self._node(words[0])]
            network.run_until(lambda: any(value == text for _, value in member.committed))
        else:
            node, role = self._node(words[0]), words[1]
            network.run_until(lambda: network.members[node].up.role == role)

    def do_run(self, duration: str) -> None:
        """``run DURATION``"""
        self.network.advance(parse_duration_ms(duration))

    def do_append(self, node: str, *texts: str) -> None:
        """``append NODE TEXT…``: as one batch."""
        self.network.append(self._node(node), *(text.encode() for text in texts))

    def do_isolate(self, node: str) -> None:
        """``isolate NODE``: all that it sends or should receive is lost."""
        self.network.isolate(self._node(node))

    def do_deaf(self, node: str) -> None:
        """``deaf NODE``: nothing reaches it; all that it sends arrives."""
        deaf = self._node(node)
        self.network.cut([i for i in self.network.members if i != deaf], [deaf], both=False)

    def do_cut(self, source: str, target: str) -> None:
        """``cut A B``: all from A to B is lost, messages on their way included."""
        self.network.cut([self._node(source)], [self._node(target)], both=False)

    def do_heal(self) -> None:
        """``heal``: all links."""
        self.network.heal()

    def do_kill(self, node: str, *options: str) -> None:
        """``kill NODE [lossy]``"""
        self.network.kill(self._node(node), lossy="lossy" in options)
        self.network.roles.pop(self._node(node), None)

    def do_start(self, node: str) -> None:
        """``start NODE``"""
        self.network.start(self._node(node))

    def do_resign(self, node: str) -> None:
        """``resign NODE``: from the epoch that it leads."""
        leader = self._node(node)
        machine = self.network.members[leader].up
        machine.resign(machine.epoch)
        self.network.do(leader, machine.poll(self.network.now_ms))

    def do_snapshot(self, node: str) -> None:
        """``snapshot NODE``: of all that it has committed; its log then begins there."""
        member = self.network.members[self._node(node)]
        mark = member.up.high_watermark
        batch = member.log.batch_at(mark - 1)
        assert batch is not None
        member.up.create_snapshot((mark, batch.leader_epoch), (), self.network.now_ms)
        member.up.node.log.delete_before_snapshot((mark, batch.leader_epoch))

    def do_add(self, node: str) -> None:
        """``add NODE``: an AddRaftVoter to the leader."""
        new = self._node(node)
        self.network.request(self.network.leader(), add_request(new, directory_of(new)), 1)

    def do_remove(self, node: str) -> None:
        """``remove NODE``: a RemoveRaftVoter to the leader."""
        request = RemoveRaftVoterRequest(
            cluster_id=CLUSTER_ID,
            voter_id=self._node(node),
            voter_directory_id=directory_of(self._node(node)),
        )
        self.network.request(self.network.leader(), request, 0)

    def do_voters(self, node: str) -> None:
        """``voters NODE``: the voters as its log has them."""
        voters = self.network.members[self._node(node)].up.voters.ids
        self.network.lines.append(f"       {node} has the voters {list(voters)}")
