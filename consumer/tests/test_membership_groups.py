"""Several members and a coordinator: in any order of events, one owner a partition, and the group settles."""

import logging
import random
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

import pytest

from groupwright.assignors import Assignor, JoinedMember, Topic, by_name, perform_assignment
from groupwright.consumer._config.log import GroupLog
from groupwright.consumer._protocol import actions as act
from groupwright.consumer._protocol.consumer_protocol import read_assignment, subscription_encoder
from groupwright.consumer._protocol.events import Assign, Closed, Revoke
from groupwright.consumer._protocol.model import JoinGroupResponse, MetadataResponse, SyncGroupResponse, keys
from groupwright.consumer._protocol.transitions import Step
from groupwright.core import ErrorCode, TopicPartitionKey

if TYPE_CHECKING:
    from consumer.tests.conftest import Player

LOG = GroupLog(logging.getLogger("groupwright.consumer"), "c", "g")


class Coordinator:
    """The classic coordinator's rules for joining, syncing, beating and leaving (GroupMetadataManager)."""

    def __init__(self) -> None:
        self.generation = 0
        self.rebalancing = False
        self.synced = True
        self.protocol = ""
        self.members: dict[str, act.SendJoinGroup] = {}
        self.joining: dict[str, tuple[Player, act.SendJoinGroup]] = {}
        self.syncing: dict[str, tuple[Player, act.SendSyncGroup]] = {}
        self.assignments: dict[str, bytes] = {}
        self.pending: set[str] = set()
        self._ids = 0

    def join(self, player: "Player", sent: act.SendJoinGroup) -> None:
        member_id = sent.request.member_id
        if not member_id:
            self._ids += 1
            self.pending.add(f"m-{self._ids}")
            answer = JoinGroupResponse(ErrorCode.MEMBER_ID_REQUIRED, member_id=f"m-{self._ids}")
            player.reply(sent, act.Answered(answer))
            return
        if member_id not in self.pending | self.members.keys():
            player.reply(sent, act.Answered(JoinGroupResponse(ErrorCode.UNKNOWN_MEMBER_ID)))
            return
        self.pending.discard(member_id)
        self.members[member_id] = sent
        self.joining[member_id] = (player, sent)
        self._rebalance()

    def leave(self, member_id: str) -> None:
        self.members.pop(member_id, None)
        self.joining.pop(member_id, None)
        self.syncing.pop(member_id, None)
        if self.members:
            self._rebalance()

    def _rebalance(self) -> None:
        self.rebalancing = True
        syncing, self.syncing = self.syncing, {}
        for player, parked in syncing.values():
            player.reply(parked, act.Answered(SyncGroupResponse(ErrorCode.REBALANCE_IN_PROGRESS)))
        if not self.joining or self.joining.keys() < self.members.keys():
            return
        self.rebalancing, self.synced = False, False
        self.generation += 1
        names = [[name for name, _ in sent.request.protocols] for sent in self.members.values()]
        self.protocol = next(name for name in names[0] if all(name in others for others in names))
        leader = min(self.members)
        joined, self.joining = self.joining, {}
        rows = tuple(
            JoinedMember(id_, None, dict(sent.request.protocols)[self.protocol])
            for id_, sent in self.members.items()
        )
        for id_, (other, waiting) in joined.items():
            answer = JoinGroupResponse(
                0, self.generation, "consumer", self.protocol, leader, id_, rows if id_ == leader else ()
            )
            other.reply(waiting, act.Answered(answer))

    def sync(self, player: "Player", sent: act.SendSyncGroup) -> None:
        if sent.identity.member_id not in self.members:
            answer = SyncGroupResponse(ErrorCode.UNKNOWN_MEMBER_ID)
        elif sent.identity.generation != self.generation:
            answer = SyncGroupResponse(ErrorCode.ILLEGAL_GENERATION)
        elif self.rebalancing:
            answer = SyncGroupResponse(ErrorCode.REBALANCE_IN_PROGRESS)
        else:
            self.syncing[sent.identity.member_id] = (player, sent)
            if sent.assignment is not None:
                self.assignments, self.synced = dict(sent.assignment.assignments), True
            if self.synced:
                syncing, self.syncing = self.syncing, {}
                for id_, (other, parked) in syncing.items():
                    answer = SyncGroupResponse(0, "consumer", self.protocol, self.assignments.get(id_, b""))
                    other.reply(parked, act.Answered(answer))
            return
        player.reply(sent, act.Answered(answer))

    def heartbeat(self, sent: act.SendHeartbeat) -> int:
        if sent.identity.member_id not in self.members:
            return ErrorCode.UNKNOWN_MEMBER_ID
        if sent.identity.generation != self.generation:
            return ErrorCode.ILLEGAL_GENERATION
        return ErrorCode.REBALANCE_IN_PROGRESS if self.rebalancing else ErrorCode.NONE


class World:
    """A group of real members, each with real assignors."""

    def __init__(self, new_player: Callable[..., "Player"], seed: int) -> None:
        self.random = random.Random(seed)  # noqa: S311 - to be repeated
        self.coordinator = Coordinator()
        self.topics = {"t": 6, "u": 3}
        self.players: list[Player] = []
        self.assignors: dict[int, dict[str, Assignor]] = {}
        self.delivered: dict[int, list[Assign | Revoke]] = {}
        self._new_player = new_player

    def start(self, strategy: Iterable[str]) -> "Player":
        assignors = {name: by_name(name) for name in strategy}
        player = self._new_player(
            cooperative=list(assignors) == ["cooperative-sticky"],
            encode=subscription_encoder(assignors, None, LOG),
            decode=read_assignment,
        )
        self.players.append(player)
        self.assignors[id(player)], self.delivered[id(player)] = assignors, []
        player.subscribe(*self.random.choice([("t",), ("t", "u"), ("^[tu]$",)]))
        return player

    def close(self, player: "Player") -> None:
        player.feed(player.member.close)

    def step(self, player: "Player") -> None:
        """Let one thing happen to a member: an answer, a callback, or some time."""
        choices: list[act.Action | str] = [*player.asked, *player.looks]
        choices += ["application"] if player.inbox else []
        choice = self.random.choice(choices or ["time"])
        if isinstance(choice, str):
            if choice == "application":
                event = player.serve()
                if isinstance(event, Assign | Revoke):
                    self.delivered[id(player)].append(event)
                elif isinstance(event, Closed):
                    self.players.remove(player)
            else:
                player.wait(1.0)
        elif isinstance(choice, act.FetchMetadata):
            player.answer_look(self.topics)
        else:
            player.asked.remove(choice)
            self.answer(player, choice)
        self.check()

    def answer(self, player: "Player", action: act.Action) -> None:
        member, coordinator = player.member, self.coordinator
        match action:
            case act.FindCoordinator():
                player.reply(action, act.Answered())
            case act.SendJoinGroup() if member.awaits(action):
                coordinator.join(player, action)
            case act.PerformAssignment():
                topics = MetadataResponse({name: Topic(count) for name, count in self.topics.items()})
                plan = perform_assignment(
                    self.assignors[id(player)][action.protocol], action.members, topics.topics
                )
                computed = act.GroupAssignment(plan, frozenset(self.topics), topics)
                player.reply(action, act.Answered(computed))
            case act.SendSyncGroup() if member.awaits(action):
                coordinator.sync(player, action)
            case act.FetchOffsets():
                player.asked.append(action)
                player.answer_offsets()
            case act.SendHeartbeat():
                player.reply(action, act.Answered(coordinator.heartbeat(action)))
            case act.SendLeaveGroup():
                coordinator.leave(action.identity.member_id)
                player.reply(action, act.Answered(0))

    def check(self) -> None:
        owners: dict[TopicPartitionKey, Player] = {}
        for player in self.players:
            for key in keys(player.member.owned):
                assert key not in owners, f"{key} has two owners"
                owners[key] = player

    def settled(self) -> bool:
        wanted = {
            (topic, number)
            for topic, count in self.topics.items()
            if any(topic in (player.member.subscription or ()) for player in self.players)
            for number in range(count)
        }
        idle = all(
            player.member.state.name == "STABLE"
            and player.member.facts.rejoin_reason is None
            and player.member.facts.step is Step.IDLE
            and not player.inbox
            for player in self.players
        )
        return idle and wanted == {key for player in self.players for key in keys(player.member.owned)}

    def settle(self, limit: int = 4000) -> None:
        for _ in range(limit):
            if self.settled():
                return
            self.step(self.random.choice(self.players))
        pytest.fail(f"not settled: {[(p.member.state.name, p.member.owned) for p in self.players]}")


@pytest.mark.parametrize(
    "strategy", [("cooperative-sticky",), ("cooperative-sticky", "range"), ("sticky",)], ids="+".join
)
@pytest.mark.parametrize("seed", range(12))
def test_members_come_and_go_and_topics_grow(
    new_player: Callable[..., "Player"], strategy: tuple[str, ...], seed: int
) -> None:
    world = World(new_player, seed)
    world.start(strategy)
    for _ in range(25):
        change = world.random.random()
        if change < 0.4 and len(world.players) < 6:
            world.start(strategy)
        elif change < 0.6 and len(world.players) > 1:
            world.close(world.random.choice(world.players))
        elif change < 0.7:
            world.topics["t"] += 1
        for _ in range(world.random.randrange(60)):
            world.step(world.random.choice(world.players))
    world.settle()


@pytest.mark.parametrize("seed", range(8))
def test_a_group_changes_from_eager_to_cooperative_member_by_member(
    new_player: Callable[..., "Player"], seed: int
) -> None:
    """KIP-429: first with both assignors in the list, then with the cooperative one alone."""
    world = World(new_player, seed)
    for _ in range(3):
        world.start(("range",))
    world.settle()
    for strategy in (("cooperative-sticky", "range"), ("cooperative-sticky",)):
        for player in list(world.players):
            world.close(player)
            world.start(strategy)
            for _ in range(world.random.randrange(200)):
                world.step(world.random.choice(world.players))
        world.settle()

    assert world.coordinator.protocol == "cooperative-sticky"
    assert all(player.member.facts.cooperative for player in world.players)


@pytest.mark.parametrize("seed", range(8))
def test_a_cooperative_group_that_gains_a_member_settles_in_two_rounds(
    new_player: Callable[..., "Player"], seed: int
) -> None:
    world = World(new_player, seed)
    first = world.start(("cooperative-sticky",))
    second = world.start(("cooperative-sticky",))
    for player in (first, second):
        player.subscribe("t", "u")
    world.settle()
    before, delivered = (
        world.coordinator.generation,
        {id(p): len(world.delivered[id(p)]) for p in world.players},
    )
    kept = {id(p): set(keys(p.member.owned)) for p in world.players}
    world.start(("cooperative-sticky",)).subscribe("t", "u")
    world.settle()

    assert world.coordinator.generation == before + 2
    for player in (first, second):
        events = world.delivered[id(player)][delivered[id(player)] :]
        lost = [event for event in events if isinstance(event, Revoke)]
        assert len(lost) == 1
        assert set(keys(player.member.owned)) == kept[id(player)] - set(keys(lost[0].partitions))
