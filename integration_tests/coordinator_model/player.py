"""Plays a program on a broker and on the model in lockstep, and compares every answer.

How timing cannot make the comparison fail:

- The model's clock is the time at which a request is sent. A request is sent only if no timer of the model
  ends within `GUARD` seconds of it; otherwise the player waits until the timer is `GUARD` seconds past.
- The model says which requests are answered now and which are parked. The player waits for the former, and
  the latter must have no answer.
- If two timers that were started at different times end within `RACE` seconds of each other, the order in
  which the broker handles them is open. The program ends there.
- On a busy machine everything is slower by the same factor, `pace`: timeouts, waits and these distances.
- The player measures how late it is and how long answers take. A difference after more than `GUARD` seconds
  of either means nothing: `Player.late` is then true, and the program is played again.
- After a request that is parked, the player waits until DescribeGroups gives the model's answer.
- Kafka chooses member ids. The model takes them from the broker: a JoinGroup without an id is first tried on
  a copy of the model. If it is parked, DescribeGroups has the new id.

The model's choices among equal members depend on the ids, as Kafka's do, so they are compared too.
"""

import asyncio
import copy
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass, field

from groupwright.core import ErrorCode, TopicPartitionKey
from groupwright.testing._simulation import messages as msg
from groupwright.testing._simulation import subscription
from groupwright.testing._simulation.coordinator import Coordinator
from groupwright.testing._simulation.messages import Reply, Request, Response
from groupwright.testing._simulation.settings import GroupSettings, KafkaVersion
from integration_tests.coordinator_model.codec import canonical
from integration_tests.coordinator_model.network import CLIENT_ID, Network
from integration_tests.coordinator_model.programs import (
    PARTITIONS,
    TOPICS,
    Actor,
    Commit,
    Delete,
    DeleteOffsets,
    Describe,
    Fetch,
    Generation,
    Heartbeat,
    Join,
    Leave,
    MemberId,
    Names,
    Plan,
    Program,
    Restart,
    Step,
    Sync,
    Wait,
    step_words,
)

NO_SUBSCRIPTION = b"?"
"""Metadata that the coordinator cannot read. Kafka refuses longer bytes in several ways; after some, such as
those with an impossible number of topics, 4.3.1 never completes the rebalance."""
GUARD = 0.25
"""Seconds between a request and the end of a timer."""
RACE = 0.06
"""Seconds between the ends of two timers."""
_PAUSE = 0.03
"""Seconds between two requests, longer than the broker collects records before it writes them."""
_RESTART_GUARD = 5.0
"""Longest time in seconds from the loading of a group to the end of the broker's restart."""


_OfGroup = Fetch | DeleteOffsets | Describe | Delete
"""Steps that are no client's."""


class DifferenceError(Exception):
    """The broker and the model gave different answers."""

    def __init__(self, step: str, request: Request | None, broker: object, model: object) -> None:
        super().__init__(f"at {step}")
        self.lines = [f"at step {step}", f"request {request}", f"broker  {broker}", f"model   {model}"]


@dataclass(slots=True)
class _Client:
    """State of an actor, from the responses that it has received."""

    actor: Actor
    member_id: str = ""
    former_id: str = "former"
    generation: int = -1
    protocol_name: str | None = "range"
    members: tuple[str, ...] = ()
    parked: set[int] = field(default_factory=set)

    def take_id(self, member_id: str) -> None:
        if member_id and member_id != self.member_id:
            self.former_id = self.member_id or self.former_id
            self.member_id = member_id


@dataclass(slots=True)
class _Parked:
    request: Request
    client: _Client | None
    answer: asyncio.Future[Response]


class Player:
    """One play of a program, in a group of its own."""

    def __init__(
        self,
        program: Program,
        group_id: str,
        network: Network,
        settings: GroupSettings,
        version: KafkaVersion,
        restart: Callable[[], Awaitable[None]] | None = None,
        pace: float = 1.0,
    ) -> None:
        self._program = program
        self._group = group_id
        self._network = network
        self._settings = settings
        self._version = version
        self._restart_broker = restart
        self._connections = network.open()
        self._clients = [_Client(actor) for actor in program.actors]
        self._began = network.time()
        self._new_id = _NewId()
        self._known_ids: set[str] = set()
        self._model = Coordinator(self._new_id, settings, version)
        self._parked: dict[int, _Parked] = {}
        self._sent = 0
        self._step = ""
        self._pace = pace
        self._guard_before = GUARD * pace
        self.raced = False
        """True if the play ended early, because two timers ended at the same time."""
        self.slowest = 0.0
        """Longest time in seconds that an answer took which the model had given at once."""
        self.played = 0
        """Number of steps that were played."""
        self.requests = 0

    async def play(self) -> None:
        """Play the program.

        Raises:
            DifferenceError: The answers differ.
        """
        try:
            for number, step in enumerate(self._program.steps):
                self._step = f"{number}. {step_words(step)}"
                await self._network.sleep(_PAUSE)
                await self._wait(step.seconds * self._pace if isinstance(step, Wait) else 0.0)
                if self.raced:
                    return
                self._check_parked()
                await self._play_step(step)
                self.played += 1
            await self._network.sleep(_PAUSE)
            self._check_parked()
        finally:
            await self._connections.close()

    @property
    def late(self) -> bool:
        """True if answers were so late that timers may have ended in another order than in the model."""
        return self.slowest > GUARD * self._pace

    # --- Time

    def _now(self) -> int:
        return int((self._network.time() - self._began) * 1000)

    async def _wait(self, seconds: float) -> None:
        """Wait until no timer of the model ends near the present, and compare what the timers cause."""
        until = self._now() + int(seconds * 1000)
        guard = int(GUARD * self._pace * 1000)
        while (deadline := self._model.next_timer()) is not None:
            if deadline > max(until, self._now()) + int(self._guard_before * 1000):
                break
            until = max(until, deadline + guard)
            await self._sleep_until(deadline)
            replies = self._model.advance(deadline)
            following = self._model.next_timer()
            if following is not None and following - deadline < RACE * self._pace * 1000:
                self.raced = True
                return
            await self._compare(replies, deadline)
        await self._network.sleep(max(0, until - self._now()) / 1000)

    async def _sleep_until(self, milliseconds: int) -> None:
        await self._network.sleep(max(0, milliseconds - self._now()) / 1000)
        self._measure(milliseconds)

    def _measure(self, since: int) -> None:
        """Record the time that has passed since an event of the model."""
        self.slowest = max(self.slowest, (self._now() - since) / 1000)

    # --- Steps

    async def _play_step(self, step: Step) -> None:
        if isinstance(step, Restart):
            await self._restart()
        elif not isinstance(step, Wait):
            client = None if isinstance(step, Leave | _OfGroup) else self._clients[step.actor]
            busy = client is not None and bool(client.parked)
            if not (busy and isinstance(step, Join | Sync) and step.only_if_idle):
                await self._ask(self._request(step, client or self._clients[0]), client)

    def _request(self, step: Step, client: _Client) -> Request:
        match step:
            case Join():
                return self._join(step, client)
            case Sync():
                return self._sync(step, client)
            case Heartbeat():
                return msg.HeartbeatRequest(
                    self._group,
                    self._id(step.member_id, client),
                    _generation(step.generation, client),
                    client.actor.instance_id,
                )
            case Leave():
                return msg.LeaveGroupRequest(self._group, tuple(self._leaving(step)))
            case Commit():
                return self._commit(step, client)
            case _:
                return self._group_request(step)

    def _group_request(self, step: Step) -> Request:
        match step:
            case Fetch():
                return msg.OffsetFetchRequest(self._group, _all_partitions())
            case DeleteOffsets():
                return msg.OffsetDeleteRequest(self._group, _all_partitions())
            case Delete():
                return msg.DeleteGroupsRequest(self._group)
            case _:
                return msg.DescribeGroupsRequest(self._group)

    async def _restart(self) -> None:
        await self._connections.close()
        for client in self._clients:
            client.parked.clear()
        self._parked.clear()
        if self._restart_broker is not None:
            await self._restart_broker()
        self._connections = self._network.open()
        await self._wait_until_loaded()
        now = self._now()
        self._model = Coordinator(self._new_id, self._settings, self._version, log=self._model.log, now=now)
        self._guard_before = _RESTART_GUARD * self._pace

    async def _wait_until_loaded(self) -> None:
        """Wait until the broker has loaded the group's partition of `__consumer_offsets`."""
        request = msg.DescribeGroupsRequest(self._group)
        until = self._now() + int(_RESTART_GUARD * 1000)
        while self._now() < until:
            response = await self._connections.ask(request, self._network.patience)
            loading = ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
            if isinstance(response, msg.DescribeGroupsResponse) and response.error is not loading:
                return
            await self._network.sleep(_PAUSE)

    def _join(self, step: Join, client: _Client) -> msg.JoinGroupRequest:
        actor = client.actor
        client.actor = actor = Actor(
            actor.instance_id,
            actor.protocol_type,
            actor.protocols if step.protocols is None else step.protocols,
            actor.topics if step.topics is None else step.topics,
            actor.session_ms,
            actor.rebalance_ms,
        )
        metadata = subscription.encode(actor.topics) if actor.topics else NO_SUBSCRIPTION
        return msg.JoinGroupRequest(
            self._group,
            self._id(step.member_id, client),
            actor.instance_id if step.version >= 5 else None,
            int(actor.session_ms * self._pace) if step.session_ms is None else step.session_ms,
            int(actor.rebalance_ms * self._pace),
            actor.protocol_type,
            tuple(msg.Protocol(name, metadata) for name in actor.protocols),
            CLIENT_ID,
            step.version,
        )

    def _sync(self, step: Sync, client: _Client) -> msg.SyncGroupRequest:
        named = {Plan.ALL: client.members, Plan.SOME: client.members[:1], Plan.NONE: ()}[step.plan]
        plan = tuple(
            (member_id, f"{client.generation}/{number}".encode()) for number, member_id in enumerate(named)
        )
        names: tuple[str | None, str | None] = {
            Names.OWN: (client.actor.protocol_type, client.protocol_name),
            Names.OTHER: (client.actor.protocol_type, "other"),
            Names.MISSING: (None, None),
        }[step.names]
        return msg.SyncGroupRequest(
            self._group,
            self._id(step.member_id, client),
            _generation(step.generation, client),
            client.actor.instance_id,
            *(names if step.version >= 5 else (None, None)),
            plan,
            step.version,
        )

    def _leaving(self, step: Leave) -> Iterable[msg.LeavingMember]:
        for number in step.actors:
            client = self._clients[number]
            instance_id = client.actor.instance_id if step.by_instance else None
            yield msg.LeavingMember(self._id(step.member_id, client), instance_id)

    def _commit(self, step: Commit, client: _Client) -> msg.OffsetCommitRequest:
        outside = step.member_id is MemberId.NONE and step.generation is Generation.NONE
        offsets = [((TOPICS[0], 0), msg.CommittedOffset(self._sent, f"at {self._sent}"))]
        if step.too_large:
            offsets.append(((TOPICS[0], 1), msg.CommittedOffset(self._sent, "x" * 5000)))
        offsets.append(((TOPICS[1], 0), msg.CommittedOffset(self._sent, leader_epoch=0)))
        return msg.OffsetCommitRequest(
            self._group,
            tuple(offsets),
            self._id(step.member_id, client),
            _generation(step.generation, client),
            None if outside else client.actor.instance_id,
            step.version,
        )

    def _id(self, which: MemberId, client: _Client) -> str:
        others = (other.member_id for other in self._clients if other is not client and other.member_id)
        return {
            MemberId.OWN: client.member_id,
            MemberId.NONE: "",
            MemberId.FORMER: client.former_id,
            MemberId.UNKNOWN: "unknown",
            MemberId.OTHERS: next(others, "other"),
        }[which]

    # --- Requests and answers

    async def _ask(self, request: Request, client: _Client | None = None) -> None:
        self._sent += 1
        self.requests += 1
        number, now = self._sent, self._now()
        answer = await self._connections.send(request)
        self._parked[number] = _Parked(request, client, answer)
        if isinstance(request, msg.JoinGroupRequest) and not request.member_id:
            await self._learn_id(number, request, now)
            self._measure(now)
        replies = self._model.handle(number, request, now)
        if client is not None:
            client.parked.add(number)
        await self._compare(replies, now)
        if number in self._parked:
            await self._see_parked()

    async def _learn_id(self, number: int, request: msg.JoinGroupRequest, now: int) -> None:
        """Learn from the broker the id that it will give to a new member, if it gives one."""
        self._new_id.next_id = ""
        trial = copy.deepcopy(self._model)
        replies = trial.handle(number, request, now)
        trial_id = trial._new_member_id
        if isinstance(trial_id, _NewId) and self._new_id.calls == trial_id.calls:
            return
        if any(reply.correlation_id == number for reply in replies):
            response = await self._answer_of(number)
            found = [response.member_id] if isinstance(response, msg.JoinGroupResponse) else []
        else:
            found = await self._find_new_member()
        self._new_id.next_id = found[0] if len(found) == 1 else f"one of {found}"
        self._known_ids.update(found)

    async def _see_parked(self) -> None:
        """Wait until the broker describes the group as the model does.

        No answer shows when the broker has taken a request that it parks, and the next request comes on
        another connection: it must not overtake this one.
        """
        request = msg.DescribeGroupsRequest(self._group)
        *others, reply = self._model.handle(-1, request, self._now())
        await self._compare(others, self._now())
        expected = canonical(request, reply.response)
        until = self._now() + int(GUARD * self._pace * 1000)
        while True:
            await self._network.sleep(_PAUSE)
            asked = self._now()
            answer = canonical(request, await self._connections.ask(request, self._network.patience))
            self._measure(asked)
            if answer == expected:
                return
            if self._now() > until:
                raise DifferenceError(self._step, request, answer, expected)

    async def _find_new_member(self) -> list[str]:
        """Return the id of the member that the broker describes and that was not known."""
        for _ in range(50):
            described = await self._connections.ask(
                msg.DescribeGroupsRequest(self._group), self._network.patience
            )
            if isinstance(described, msg.DescribeGroupsResponse):
                members = (member.member_id for member in described.members)
                found = [member_id for member_id in members if member_id not in self._known_ids]
                if found:
                    return found
            await self._network.sleep(_PAUSE)
        return []

    async def _compare(self, replies: list[Reply], since: int) -> None:
        for reply in replies:
            parked = self._parked[reply.correlation_id]
            answer = canonical(parked.request, await self._answer_of(reply.correlation_id, reply))
            expected = canonical(parked.request, reply.response)
            self._measure(since)
            if answer != expected:
                raise DifferenceError(self._step, parked.request, answer, expected)
            del self._parked[reply.correlation_id]
            if parked.client is not None:
                _learn(parked.client, reply.correlation_id, reply.response)
        self._check_parked()

    async def _answer_of(self, number: int, reply: Reply | None = None) -> Response:
        parked = self._parked[number]
        try:
            return await asyncio.wait_for(asyncio.shield(parked.answer), self._network.patience)
        except (TimeoutError, ConnectionError) as error:
            expected = reply.response if reply else "an answer"
            raise DifferenceError(self._step, parked.request, repr(error), expected) from error

    def _check_parked(self) -> None:
        for parked in self._parked.values():
            if parked.answer.done():
                broker = parked.answer.exception() or parked.answer.result()
                raise DifferenceError(self._step, parked.request, broker, "parked")


class _NewId:
    """The model's source of member ids: the id that the broker has just given."""

    def __init__(self) -> None:
        self.calls = 0
        self.next_id = ""

    def __call__(self, prefix: str) -> str:
        self.calls += 1
        return self.next_id or f"{prefix}unknown"


def _learn(client: _Client, number: int, response: Response) -> None:
    client.parked.discard(number)
    match response:
        case msg.JoinGroupResponse(error=ErrorCode.NONE):
            client.take_id(response.member_id)
            client.generation = response.generation_id
            client.protocol_name = response.protocol_name
            client.members = tuple(sorted(member.member_id for member in response.members))
        case msg.JoinGroupResponse(error=ErrorCode.MEMBER_ID_REQUIRED):
            client.take_id(response.member_id)
        case (
            msg.JoinGroupResponse(error=ErrorCode.UNKNOWN_MEMBER_ID | ErrorCode.FENCED_INSTANCE_ID)
            | msg.HeartbeatResponse(error=ErrorCode.UNKNOWN_MEMBER_ID)
            | msg.SyncGroupResponse(error=ErrorCode.UNKNOWN_MEMBER_ID)
        ):
            client.former_id, client.member_id = client.member_id or client.former_id, ""
        case _:
            pass


def _generation(which: Generation, client: _Client) -> int:
    return {
        Generation.OWN: client.generation,
        Generation.NONE: -1,
        Generation.OLDER: client.generation - 1,
        Generation.NEWER: client.generation + 1,
    }[which]


def _all_partitions() -> tuple[TopicPartitionKey, ...]:
    return tuple((topic, number) for topic in TOPICS for number in range(PARTITIONS))
