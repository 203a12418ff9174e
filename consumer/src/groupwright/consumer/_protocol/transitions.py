"""The states of one membership, and the table of its transitions.

Theory of operation
===================

Three small state machines run side by side:

- `State` is the member's part in the group protocol, with the names of Kafka's
  `AbstractCoordinator.MemberState`.
- `Step` is the work under way: a request, the assignor, or an event that the application must apply. There is
  at most one.
- `Lifecycle` is what the application wants: to be a member, to unsubscribe, or to close.

::

    inputs ──▶ machines and data ──▶ _advance ──▶ actions ──▶ driver, application
       ▲                                                              │
       └──────────────── reply(), taken(), applied() ◀────────────────┘

An input is a call of the application, a reply to a request, or a tick of the clock.
`docs/membership-states.md` has a diagram of each machine, which `tools/membership_states.py` draws.

How they are coupled:

1. By causes. A machine moves only by `MembershipState.move`, which looks a `Cause` up in `TRANSITIONS`. A
   cause with rows in several machines moves them together: SEND_JOIN_GROUP moves the state and the step. A
   machine without rows for the cause stays as it is. If one has rows, but none for its present value, `move`
   raises, and no machine moves.
2. By legal combinations. `STEPS_IN_STATE` lists the steps of each state; `MembershipState.check_invariants`
   has the other rules, such as that LEAVE belongs to a member that leaves.
3. By derivation. No machine reacts to another one. After every input `Membership._advance` reads all three,
   and the data beside them, and starts the step that is due. Only a response with a next step of its own
   starts that at once: JoinGroup's leads to ASSIGN or SYNC, the assignor's to SYNC, SyncGroup's and
   OffsetFetch's to APPLICATION.

What the table cannot say, since it is data beside the machines:

- Who the member is. `identity` is valid in the states with a generation. A member that joins again keeps it
  in PREPARING_REBALANCE, and one whose error awaits a poll in UNJOINED: the coordinator may still count it.
- What the application owns. `owned` changes when APPLICATION ends by `applied`, whatever the state is by
  then, and when the member abandons its group. Partitions that are owned without a valid identity are lost
  (`has_lost_partitions`); the loss is delivered before the member joins again.
- Whether an idle member joins. It does if it has a `rejoin_reason`, unless an error awaits a poll
  (`awaits_poll`), it is `fenced`, or a backoff (`retry_at`) is not over.
- Whether JoinGroup is sent. It waits for the commits in flight (`commits_first`), which may be retried for
  long. Until then the member is not `parked`: heartbeats go on, and the session can expire.
- Where the coordinator is. `CoordinatorLookup` knows, and looks it up in any state. A generation outlives its
  coordinator's connection.
- How long the session lasts. `Heartbeat` knows. The clock has no causes of its own: a timeout that has passed
  leads to GENERATION_LOST, as an error does.
- Which reply is meant. Each step has an attempt number. A reply to another step than the one under way
  (`Membership.awaits`) changes nothing.

Transitions that need an explanation:

- A rebalance that the coordinator or the application asks for does not change the state. A member stays
  STABLE, and sends heartbeats and commits, until the application has revoked its partitions and JoinGroup is
  sent.
- A generation that is lost (the session expired, or the coordinator does not know the member) leads to
  UNJOINED from anywhere.
- An error that the application must receive before the member joins again (JOINING_BLOCKED) leads to
  UNJOINED, unless the member is STABLE: it owns its partitions until its session expires. If FindCoordinator
  is refused during a round, the round continues, so UNJOINED has rows for the end of a round.
- A member that unsubscribes or closes keeps its `State`: it may commit while its generation lasts.

A loss, from the response to the callback. All but 4 run on the network thread:

0. `_network`: `Connection._receive` (`connection.py`) has `Pipeline.receive` find the request of the frame
   that came. That wakes who awaits it: `Network.heartbeat` (`connections.py`), which returns the error code
   alone.
1. `_coordinator/driver.py`: `Driver._exchange` awaits that, and gives the code to `Membership.reply`. What
   `reply` returns, `Driver._do` executes; it puts an event into the inbox (`inbox.py`).
2. `membership.py`: the table of replies, `_handle_reply`, names `_receive_heartbeat`. The error of a former
   identity ends no generation, nor does one while JoinGroup or SyncGroup is sent (`_handle_async_error`).
   What a code means stands in `error_policy.py`: UNKNOWN_MEMBER_ID is NEW_MEMBER, and ILLEGAL_GENERATION is
   NEW_GENERATION, which keeps the member id. For both `_apply` calls `_lose_generation`: the identity is
   invalid, so what is owned is lost (`has_lost_partitions`), and an event that the application has not taken
   is withdrawn.
3. Once no event is under way, `_start_next_step` would join again, but first `_prepare_join` delivers a
   `Revoke` with `lost`; for a member that unsubscribes or closes, `_leave` does. The step is APPLICATION, and
   JoinGroup or LeaveGroup waits for its end.
4. `_membership/event_server.py`: after the present native call, this `poll`, the next one or `close` serves
   the event (`_serve_events`). (A `Revoke` without `lost` is asked about once more, by `Ownership.has_lost`
   in `ownership.py`: the session may have expired meanwhile.) Then `_revoke` calls `revoke` of
   `assignment_applier.py`, and that calls `on_lost`, or `on_revoke` where there is none, and unassigns.
   Nothing is committed.
5. `EventServer._revoke` has passed the end of the event to the driver: `Membership.applied`. Nothing is owned
   any more, and `_advance` joins again, unless the member is fenced or leaves.

Other losses begin at `_lose_generation`, too: errors of JoinGroup, SyncGroup and OffsetCommit, a session that
expires without a response (`_check_timeouts`), no poll for `max.poll.interval.ms`. Topics that the member
may no longer describe are lost by themselves (`_prepare_join`).
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import TypeVar


class State(Enum):
    """A member's state, by the names of Kafka's `AbstractCoordinator.MemberState`."""

    UNJOINED = "unjoined"
    """In no generation."""
    PREPARING_REBALANCE = "preparing_rebalance"
    """JoinGroup waits for the commits in flight, or is sent. The coordinator responds once all members have
    joined. Until then it serves nothing else on that connection: neither heartbeats nor commits are sent."""
    COMPLETING_REBALANCE = "completing_rebalance"
    """In a generation, but without its assignment: the leader computes it, or SyncGroup waits for it."""
    STABLE = "stable"
    """In a generation, with an assignment."""


class Step(Enum):
    """The work under way; one at a time."""

    IDLE = "idle"
    """No work."""
    JOIN = "join"
    """JoinGroup."""
    ASSIGN = "assign"
    """The assignor computes the group's assignment, in the leader."""
    SYNC = "sync"
    """SyncGroup."""
    OFFSETS = "offsets"
    """OffsetFetch for newly assigned partitions; also the pause before it is retried."""
    APPLICATION = "application"
    """The application applies an event: callbacks run in `poll`."""
    COMMITS = "commits"
    """The last commits of a consumer that closes, before LeaveGroup."""
    LEAVE = "leave"
    """LeaveGroup; also the pause before it is retried."""


class Lifecycle(Enum):
    """The application's wish: to be a member, to leave, or to close."""

    ACTIVE = "active"
    """To be a member, if it has a subscription."""
    UNSUBSCRIBING = "unsubscribing"
    """To leave the group. The application may subscribe again, even before the member has left."""
    CLOSING = "closing"
    """To leave the group for good. The partitions are revoked first."""
    FLUSHED = "flushed"
    """As CLOSING, after the partitions were revoked: the last commits and LeaveGroup are sent."""
    CLOSED = "closed"
    """The member has left, or stays without the consumer until its session expires. Final."""


class Cause(Enum):
    """Causes of transitions; the values are the labels of the diagrams."""

    SEND_JOIN_GROUP = "JoinGroup is sent"
    GENERATION_JOINED = "JoinGroup succeeded"
    ELECTED_LEADER = "the member was elected leader"
    SEND_SYNC_GROUP = "SyncGroup is sent"
    ASSIGNMENT_RECEIVED = "SyncGroup succeeded"
    FETCH_OFFSETS = "OffsetFetch is sent"
    DELIVER_EVENT = "an event is delivered"
    SEND_OFFSET_COMMITS = "the last commits are sent"
    SEND_LEAVE_GROUP = "LeaveGroup is sent"
    STEP_ENDED = "the step ended"
    STEP_ABANDONED = "the step was abandoned"
    GENERATION_LOST = "the generation was lost or left"
    JOINING_BLOCKED = "an error awaits a poll"
    UNSUBSCRIBE = "unsubscribe()"
    CLOSE = "close()"
    LEFT = "the group was left"


Node = State | Step | Lifecycle
_NodeT = TypeVar("_NodeT", State, Step, Lifecycle)

TRANSITIONS: Mapping[Node, Mapping[Cause, Node]] = {
    State.UNJOINED: {
        Cause.SEND_JOIN_GROUP: State.PREPARING_REBALANCE,
        # After a look-up of the coordinator that was refused during the round.
        Cause.GENERATION_JOINED: State.COMPLETING_REBALANCE,
        Cause.ASSIGNMENT_RECEIVED: State.STABLE,
        Cause.GENERATION_LOST: State.UNJOINED,
        Cause.JOINING_BLOCKED: State.UNJOINED,
    },
    State.PREPARING_REBALANCE: {
        Cause.SEND_JOIN_GROUP: State.PREPARING_REBALANCE,
        Cause.GENERATION_JOINED: State.COMPLETING_REBALANCE,
        Cause.GENERATION_LOST: State.UNJOINED,
        Cause.JOINING_BLOCKED: State.UNJOINED,
    },
    State.COMPLETING_REBALANCE: {
        # SyncGroup failed with REBALANCE_IN_PROGRESS.
        Cause.SEND_JOIN_GROUP: State.PREPARING_REBALANCE,
        Cause.ASSIGNMENT_RECEIVED: State.STABLE,
        Cause.GENERATION_LOST: State.UNJOINED,
        Cause.JOINING_BLOCKED: State.UNJOINED,
    },
    State.STABLE: {
        Cause.SEND_JOIN_GROUP: State.PREPARING_REBALANCE,
        Cause.GENERATION_LOST: State.UNJOINED,
        Cause.JOINING_BLOCKED: State.STABLE,
    },
    Step.IDLE: {
        Cause.SEND_JOIN_GROUP: Step.JOIN,
        Cause.ELECTED_LEADER: Step.ASSIGN,
        Cause.SEND_SYNC_GROUP: Step.SYNC,
        Cause.FETCH_OFFSETS: Step.OFFSETS,
        Cause.DELIVER_EVENT: Step.APPLICATION,
        Cause.SEND_OFFSET_COMMITS: Step.COMMITS,
        Cause.SEND_LEAVE_GROUP: Step.LEAVE,
    },
    Step.JOIN: {
        Cause.STEP_ENDED: Step.IDLE,
        Cause.STEP_ABANDONED: Step.IDLE,
    },
    Step.ASSIGN: {
        Cause.SEND_SYNC_GROUP: Step.SYNC,
        Cause.STEP_ENDED: Step.IDLE,
        Cause.STEP_ABANDONED: Step.IDLE,
    },
    Step.SYNC: {
        Cause.STEP_ENDED: Step.IDLE,
        Cause.STEP_ABANDONED: Step.IDLE,
    },
    Step.OFFSETS: {
        Cause.FETCH_OFFSETS: Step.OFFSETS,
        Cause.DELIVER_EVENT: Step.APPLICATION,
        Cause.STEP_ENDED: Step.IDLE,
        Cause.STEP_ABANDONED: Step.IDLE,
    },
    # Never abandoned: the application may have taken the event, so its end is awaited, or the event is
    # withdrawn.
    Step.APPLICATION: {
        Cause.STEP_ENDED: Step.IDLE,
    },
    Step.COMMITS: {
        Cause.STEP_ENDED: Step.IDLE,
        Cause.STEP_ABANDONED: Step.IDLE,
    },
    # Never abandoned: the member has no identity any more that it could lose.
    Step.LEAVE: {
        Cause.SEND_LEAVE_GROUP: Step.LEAVE,
        Cause.STEP_ENDED: Step.IDLE,
    },
    Lifecycle.ACTIVE: {
        Cause.UNSUBSCRIBE: Lifecycle.UNSUBSCRIBING,
        Cause.CLOSE: Lifecycle.CLOSING,
    },
    Lifecycle.UNSUBSCRIBING: {
        Cause.UNSUBSCRIBE: Lifecycle.UNSUBSCRIBING,
        Cause.CLOSE: Lifecycle.CLOSING,
        Cause.LEFT: Lifecycle.ACTIVE,
    },
    Lifecycle.CLOSING: {
        Cause.UNSUBSCRIBE: Lifecycle.CLOSING,
        Cause.CLOSE: Lifecycle.CLOSING,
        Cause.SEND_OFFSET_COMMITS: Lifecycle.FLUSHED,
    },
    Lifecycle.FLUSHED: {
        Cause.UNSUBSCRIBE: Lifecycle.FLUSHED,
        Cause.CLOSE: Lifecycle.FLUSHED,
        Cause.LEFT: Lifecycle.CLOSED,
    },
    Lifecycle.CLOSED: {
        Cause.UNSUBSCRIBE: Lifecycle.CLOSED,
        Cause.CLOSE: Lifecycle.CLOSED,
    },
}
"""For each value of a machine: its legal causes, and the value that each leads to."""


def _rows(machine: type[_NodeT], cause: Cause) -> Mapping[_NodeT, _NodeT]:
    """Return the cause's transitions in one machine; empty if it does not move that machine."""
    return {
        source: target
        for source, row in TRANSITIONS.items()
        for target in (row.get(cause),)
        if isinstance(source, machine) and isinstance(target, machine)
    }


MOVES = {cause: (_rows(State, cause), _rows(Step, cause), _rows(Lifecycle, cause)) for cause in Cause}
"""`TRANSITIONS` by cause."""

PARKED = frozenset({Step.JOIN, Step.SYNC})
"""Steps whose request the coordinator holds back until other members have acted. Meanwhile the session does
not expire, and the connection serves nothing else."""

ROUND = PARKED | {Step.ASSIGN}
"""Steps of a round: from JoinGroup to SyncGroup's response."""

STEPS_IN_STATE: Mapping[State, frozenset[Step]] = {
    # A round may outlast its state: see the module's docstring on refused look-ups.
    State.UNJOINED: frozenset({*ROUND, Step.IDLE, Step.APPLICATION, Step.COMMITS, Step.LEAVE}),
    # IDLE between two attempts to join, APPLICATION while partitions are revoked between them.
    State.PREPARING_REBALANCE: frozenset({Step.IDLE, Step.JOIN, Step.APPLICATION, Step.COMMITS}),
    State.COMPLETING_REBALANCE: frozenset(
        {Step.IDLE, Step.ASSIGN, Step.SYNC, Step.APPLICATION, Step.COMMITS}
    ),
    State.STABLE: frozenset({Step.IDLE, Step.OFFSETS, Step.APPLICATION, Step.COMMITS}),
}
"""The steps that may be under way in each state."""


class IllegalTransitionError(Exception):
    """A cause occurred in a value that has no row for it: a defect of this package."""
