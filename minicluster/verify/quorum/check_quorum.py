"""A leader of the quorum, and the voters that fetch from it (KIP-835, KAFKA-15489).

subject   a leadership: what its controller does from the election on, and the Fetches of voters to
          which it responds
keeps     by voter when it fetched last

A Fetch may wait at the leader for the next append. It counts when it comes, once more with that
append (KafkaRaftClient.tryCompleteFetchRequest), and is known when its response leaves.

Each time that a majority has fetched, the leader's time begins again. A voter that fetched right
after that counts in the next majority, however late the others complete it: so a leader may lead
for twice its time after the last Fetches of a majority.
"""

from __future__ import annotations

from minicluster.verify.exchange.exchange import Exchange
from minicluster.verify.model import Evidence
from minicluster.verify.rules.rule import CASE, Event, Findings, broken, rule

_NOTICED_MS = 1_000
"""A process that was paused resigns as it goes on, and a Fetch waits for half as long."""


class Leadership:
    """A controller from its election on.

    Shapes:  voters: as it knows them.
    Units:   begun_ms: its election, or the last change of its voters. patience_ms: for which it may
             lead without the Fetches of a majority. acted_ms: when it did something last.
             overdue_ms: when it first did something after its time, None: never. silent_ms: for how
             long no majority had fetched when it led on all the same.
    """

    def __init__(self, leader: int, at_ms: int, patience_ms: int) -> None:
        self.leader = leader
        self.begun_ms = self.acted_ms = at_ms
        self.patience_ms = patience_ms
        self.voters: tuple[int | None, ...] = ()
        self.overdue_ms: int | None = None
        self.silent_ms: int | None = None
        self._is_told = False
        self._fetched_ms: dict[int | None, int] = {}

    @property
    def others(self) -> int:
        """How many other voters make a majority with it; it may have left the voters."""
        return len(self.voters) // 2 + 1 - (self.leader in self.voters)

    @property
    def heard_ms(self) -> int:
        """When the last one of a majority has fetched, or these voters began to count."""
        others = (voter for voter in self.voters if voter != self.leader)
        fetched = sorted(self._fetched_ms.get(voter, self.begun_ms) for voter in others)
        return max(self.begun_ms, fetched[-self.others]) if self.others else self.acted_ms

    def on_act(self, at_ms: int, voters: tuple[int | None, ...]) -> None:
        """It does something, and leads on."""
        if voters != self.voters:  # a majority of those before may have just fetched
            self.begun_ms = at_ms
        self.voters, self.acted_ms, self.silent_ms = voters, at_ms, None
        ends_ms = self.heard_ms + self.patience_ms
        if self.overdue_ms is not None and self.overdue_ms <= ends_ms:
            self.overdue_ms = None
        if self.overdue_ms is None:
            self.overdue_ms = at_ms if at_ms > ends_ms else None
        elif at_ms > self.overdue_ms + _NOTICED_MS and not self._is_told:
            self.silent_ms = at_ms - self.heard_ms
            self._is_told = True

    def on_fetch(self, fetch: Exchange) -> None:
        """The response to a Fetch leaves; a voter follows the leader."""
        if fetch.handled_ms is not None:
            self._fetched_ms[fetch.sender] = max(fetch.handled_ms, self.acted_ms)


@rule("E47", "A leader without a majority resigns",
      source="KIP-835, KAFKA-15489; LeaderState.timeUntilCheckQuorumExpires",
      at_end=True, evidence=Evidence.TRACE, tables=("raft_event", "rpc"),
      breaks="Nobody fetches from leader 101 for eight seconds, and it appends all the same.",
      keeps="102 fetches from leader 101 every two seconds, and 103 never does.")  # fmt: skip
def a_leader_without_a_majority_resigns(leadership: Leadership, event: Event) -> Findings:
    """A leader from which no majority of the voters has fetched for three times
    controller.quorum.fetch.timeout.ms resigns: the others may have elected another leader."""
    if leadership.others < 1:
        return
    yield CASE
    if leadership.silent_ms is not None:
        yield broken(
            f"controller {event.broker} leads on, and no majority has fetched from it for "
            f"{leadership.silent_ms} ms",
            event,
        )
