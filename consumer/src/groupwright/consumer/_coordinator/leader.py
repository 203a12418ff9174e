"""The leader's work between JoinGroup and SyncGroup: decode, fetch metadata, assign, encode.

Decoding and assigning run on a thread of their own, so that heartbeats continue however long an assignor
takes. That thread also imports numpy, which a member that never leads does not need.
"""

from __future__ import annotations

import functools
import logging
import math
import threading
import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from groupwright import assignors as assigning
from groupwright.assignors import Assignor, AssignorError, CooperativeStickyAssignor, JoinedMember
from groupwright.consumer._coordinator.fork_safety import not_while_forking
from groupwright.consumer._network.connections import Network, RequestRefusedError
from groupwright.consumer._protocol.actions import GroupAssignment
from groupwright.consumer._protocol.model import DisconnectedError, MetadataResponse
from groupwright.core import Leadership

if TYPE_CHECKING:
    from groupwright.assignors import Assignment, DecodedMembers, Group, LoadCheck, Member, Topic

_Result = TypeVar("_Result")

_RETRY_INTERVAL = 0.1  # seconds between two attempts to fetch metadata
_WEIGH_SECONDS = 2.0  # for all that a source of weights asks of brokers; the group waits for it


class Leader:
    """Assigns partitions for a group that this member leads. All methods run on the network's loop."""

    def __init__(
        self,
        network: Network,
        assignors: Mapping[str, Assignor],
        log: logging.LoggerAdapter[logging.Logger],
        *,
        cooperative: bool = False,
        smoothing: float = 0.0,
    ) -> None:
        """Create a leader that has not assigned anything yet.

        Args:
            network: Fetches the metadata.
            assignors: The assignors that this member offers, by name.
            log: The log of the group.
            cooperative: Whether the group rebalances cooperatively (KIP-429).
            smoothing: Time constant in seconds over which weights are averaged; 0 for the latest ones.
        """
        self._network = network
        self._assignors = assignors
        self._log = log
        self._cooperative = cooperative
        self._previous: tuple[int, Assignment] | None = None
        """The generation and the assignment that this member made last."""
        self._unevaluated: tuple[int, Callable[[], Leadership | None]] | None = None
        """The generation of the last assignment, and a function that evaluates it; None once called."""
        self._smoothing = smoothing
        self._weighed: Mapping[str, Topic] = {}
        """The topics with the last weights, smoothed."""
        self._weighed_at = -math.inf
        """Monotonic seconds."""
        self._weighed_by_time = False
        """True if members sent processing times then, which decides the unit of the weights."""
        self._has_asked_members = False
        self._unfinished = -1
        """The generation of the last assignment by weights, if that withholds partitions."""
        self._checkable: tuple[int, Assignor, Group, Assignment] | None = None
        """The last assignment by weights of a cooperative group; None if it withholds partitions."""
        self._undecodable: Mapping[str, str] = {}
        """By member id, the reasons why the last subscriptions and user data could not be decoded."""

    async def perform_assignment(
        self,
        protocol: str,
        joined: tuple[JoinedMember, ...],
        is_wanted: Callable[[], bool],
        *,
        generation: int = -1,
        skip: bool = False,
    ) -> GroupAssignment | None:
        """Turn the members in JoinGroup's response into the assignments in SyncGroup's request.

        Topics that this client is not authorized to describe are left out, with a warning. Members whose
        subscriptions cannot be decoded are assigned nothing, and members whose user data cannot be decoded
        take part without it, each with a warning.

        Args:
            protocol: The assignor that the coordinator chose.
            joined: The members in JoinGroup's response.
            is_wanted: Whether the assignment is still wanted; asked before each attempt to fetch metadata.
            generation: The generation that the assignment is for.
            skip: Whether the group keeps its assignment, so that only the metadata is needed (KIP-814).

        Returns:
            The assignment, or None if it is no longer wanted.

        Raises:
            Exception: An exception of the assignor; `AssignorError` if its result is not an assignment of the
                group, or if this member does not have the assignor.
        """
        assignor = self._assignors.get(protocol)
        if assignor is None:
            known = ", ".join(map(repr, self._assignors))
            message = f"the coordinator chose {protocol!r}, which this member does not have (it has {known})"
            raise AssignorError(message)

        decoded, subscribed = await self._in_thread(lambda: _decode(joined, assignor))
        members, undecodable = decoded
        self._warn_of(decoded)
        topics = await self._fetch_topics(subscribed, is_wanted)
        if topics is None:
            return None
        if skip:
            return GroupAssignment({}, subscribed, topics, undecodable=undecodable)

        must_withhold = self._cooperative and not isinstance(assignor, CooperativeStickyAssignor)

        def assign_and_encode() -> tuple[Group, Assignment, dict[str, bytes], bool]:
            weighed = self._weigh(assignor, members, topics.topics, generation)
            group, assignment = assigning.assign_members(
                assignor, members, weighed, cooperative=must_withhold
            )
            withholds = assignor.weights is not None and bool(assigning.unassigned(group, assignment))
            encoded = assigning.encode_assignments(assignment, others=undecodable)
            return group, assignment, encoded, withholds

        started = time.monotonic()
        group, assignment, encoded, withholds = await self._in_thread(assign_and_encode)
        self._log.info(
            "assigned %d topics to %d members by %r in %.3f s",
            len(topics.topics),
            len(members),
            protocol,
            time.monotonic() - started,
        )
        self._unfinished = generation if withholds else -1
        can_check = assignor.weights is not None and self._cooperative and not withholds
        self._checkable = (generation, assignor, group, assignment) if can_check else None
        change = self._record(generation, group, assignment)
        return GroupAssignment(encoded, subscribed, topics, change, undecodable)

    def _warn_of(self, decoded: DecodedMembers) -> None:
        """Warn of the members that could not be decoded, unless the last rebalance had the same reasons."""
        reasons, known = decoded.undecodable, self._undecodable
        self._undecodable = reasons
        new = {id_: reason for id_, reason in reasons.items() if known.get(id_) != reason}
        if new:
            self._network.spawn(self._warn_with_addresses(new, {member.id for member in decoded.members}))

    async def _warn_with_addresses(self, reasons: Mapping[str, str], assigned: Collection[str]) -> None:
        """Log a warning for each member, with its client id and host if the coordinator returns them."""
        names: Mapping[str, str] = {}
        hosts: Mapping[str, str] = {}
        try:
            group = await self._network.describe_group()
        except (DisconnectedError, RequestRefusedError):
            pass
        else:
            names, hosts = group.client_ids, group.hosts
        for id_, reason in reasons.items():
            client = f"{id_!r}"
            if id_ in names:
                client += f" (client.id {names[id_]!r} at {hosts.get(id_) or 'an unknown host'})"
            if id_ in assigned:
                self._log.warning("member %s takes part without its user data: %s", client, reason)
            else:
                self._log.warning("member %s is assigned nothing: %s", client, reason)

    def _weigh(
        self,
        assignor: Assignor,
        members: Sequence[Member],
        topics: Mapping[str, Topic],
        generation: int,
    ) -> Mapping[str, Topic]:
        """Return the topics with the weights that the assignor's source finds; on the assigning thread.

        The weights of the last assignment are used again in two cases: that assignment has withheld
        partitions, which this one assigns (KIP-429), or no other weights can be found. Otherwise new weights
        are averaged with the last ones, unless their unit has changed: it is seconds only if members send
        processing times.
        """
        source = assignor.weights
        if source is None:
            return topics
        former = self._weighed
        fits = former.keys() == topics.keys() and all(
            former[name].partitions == topic.partitions for name, topic in topics.items()
        )
        if fits and generation == self._unfinished + 1:
            return former
        from groupwright.consumer._coordinator.group_measurements import LeaderMeasurements  # imports numpy

        started = time.monotonic()
        measured = LeaderMeasurements(self._network, members, topics, _WEIGH_SECONDS)
        try:
            found = source.weigh(topics, measured)
            weighed = assigning.with_weights(topics, found)
            known = sum(topic.weights is not None for topic in weighed.values())
            message = "%r knows the weights of %d topics of %d, after %.3f s"
            self._log.info(message, source, known, len(topics), time.monotonic() - started)
            if known:
                by_time = any(map(assigning.sends_processing_times, members))
                same_unit = by_time is self._weighed_by_time
                self._weighed_by_time = by_time
                age = started - self._weighed_at
                # Exponential smoothing at irregular intervals.
                share = 1 - math.exp(-age / self._smoothing) if self._smoothing and same_unit else 1.0
                self._weighed = assigning.smooth_weights(former, weighed, share)
                self._weighed_at = started
                return self._weighed
        except Exception:  # noqa: BLE001 - the group needs an assignment more than an even load
            fallback = "the last" if fits else "no"
            self._log.exception(
                "%r failed to weigh the partitions; assigning with %s weights", source, fallback
            )
        return former if fits else topics

    def _record(self, generation: int, group: Group, assignment: Assignment) -> str | None:
        """Remember the assignment for `evaluate` and the next generation; return the change of members."""
        last, self._previous = self._previous, (generation, assignment)
        previous = last[1] if last is not None and last[0] == generation - 1 else None

        def evaluate() -> Leadership | None:
            from groupwright.consumer._coordinator.assignment_stats import (  # imports numpy
                evaluate_assignment,
            )

            return evaluate_assignment(group, assignment, previous)

        self._unevaluated = generation, evaluate
        return change_of_members(previous, assignment)

    async def evaluate(self, generation: int) -> Leadership | None:
        """Evaluate the assignment of this generation: how many partitions it moves, and how balanced it is.

        This solves a minimum-cost flow, so it must not run before SyncGroup has been sent: the group waits
        for that.

        Returns:
            The quality, or None if this member did not make the assignment or has evaluated it already, if
            the group is too large, or if the evaluation failed.
        """
        unevaluated, self._unevaluated = self._unevaluated, None
        if unevaluated is None or unevaluated[0] != generation:
            return None
        try:
            return await self._in_thread(unevaluated[1])
        except Exception:  # noqa: BLE001 - the member needs its assignment more than the group's metrics
            self._log.exception("the quality of the assignment could not be evaluated; continuing without it")
            return None

    def has_loads_to_check(self, generation: int) -> bool:
        """Return whether this leader assigned the generation by weights, so that `check_load` applies."""
        return self._checkable is not None and self._checkable[0] == generation

    async def check_load(self, generation: int) -> LoadCheck | None:
        """Weigh the partitions again; return what a rebalance would change, or None if it is too late.

        Raises:
            Exception: An exception of the assignor.
        """
        if self._checkable is None or self._checkable[0] != generation:
            return None
        _, assignor, group, assignment = self._checkable

        def check() -> LoadCheck:
            topics = self._weigh(assignor, group.members, group.topics, generation)
            return assigning.check_load(assignor, assigning.Group(group.members, topics), assignment)

        return await self._in_thread(check)

    def must_ask_members(self) -> bool:
        """Return whether members should join again, to send the processing times that the source needs.

        True at most once, for members that have sent none: those of a new group have measured nothing when
        they join, and an idle application never does.
        """
        if self._checkable is None or self._has_asked_members:
            return False
        _, assignor, group, _ = self._checkable
        if assignor.weights is None or not assignor.weights.needs_processing_times:
            return False
        self._has_asked_members = True
        return not any(map(assigning.sends_processing_times, group.members))

    async def _fetch_topics(
        self, subscribed: frozenset[str], is_wanted: Callable[[], bool]
    ) -> MetadataResponse | None:
        """Fetch fresh metadata of all subscribed topics; None if it is no longer wanted."""
        while is_wanted():
            try:
                topics = await self._network.fetch_topics(subscribed)
            except RequestRefusedError:
                raise
            except DisconnectedError as error:
                self._log.warning("the topics' metadata could not be fetched, retrying: %s", error)
                await self._network.sleep(_RETRY_INTERVAL)
                continue
            if topics.unauthorized:
                self._log.warning(
                    "this member leads the group, and may not see the topics %s that members subscribe to: "
                    "their partitions stay unassigned. Allow its principal to DESCRIBE them",
                    ", ".join(map(repr, sorted(topics.unauthorized))),
                )
            return topics
        return None

    async def _in_thread(self, work: Callable[[], _Result]) -> _Result:
        future: Any = self._network.future()

        def run() -> None:
            try:
                result = work()
            except Exception as error:  # noqa: BLE001 - raised again on the loop
                self._network.call_soon(future.failure, error)
            except BaseException as error:  # noqa: BLE001 - sys.exit() in an assignor must not end the thread silently
                self._network.call_soon(future.failure, AssignorError(f"it raised {error!r}"))
            else:
                self._network.call_soon(future.success, result)

        threading.Thread(target=run, name="groupwright-assignor", daemon=True).start()
        result: _Result = await future
        return result


def _decode(joined: Sequence[JoinedMember], assignor: Assignor) -> tuple[DecodedMembers, frozenset[str]]:
    """Return the members, and all topics that they subscribe to."""
    _import_numpy()
    decoded = assigning.decode_members(joined, assignor)
    return decoded, assigning.subscribed_topics(decoded.members)


@functools.cache
def _import_numpy() -> None:
    """Import all modules that need numpy while no other thread forks."""
    with not_while_forking():
        from groupwright.consumer._coordinator import assignment_stats  # noqa: F401 - see above

        _ = assigning.decode_members, assigning.assign_members


def change_of_members(previous: Iterable[str] | None, members: Iterable[str]) -> str | None:
    """Describe which members joined and left since the previous generation; None if unknown or none."""
    if previous is None:
        return None
    old, new = frozenset(previous), frozenset(members)
    parts = [f"{_count(ids)} {verb}" for verb, ids in (("joined", new - old), ("left", old - new)) if ids]
    return " and ".join(parts) or None


def _count(ids: frozenset[str]) -> str:
    return "a member" if len(ids) == 1 else f"{len(ids)} members"
