"""A simulated group member that behaves as Java's consumer or as librdkafka's.

The member is driven by events: responses, timers and its application's polls. The application polls, gets
some messages, processes them for a while, and polls again; without messages it stays in `poll`.

`model_settings.Behaviour` lists the differences between the two kinds. They follow Java's
`AbstractCoordinator` and `ConsumerCoordinator`, and `rdkafka_cgrp.c`. Both kinds heartbeat while the
application processes, and keep the member id after ILLEGAL_GENERATION but not after UNKNOWN_MEMBER_ID.

Left out: regular expressions, racks, changes of the subscription, transactions, authorization.
"""

import copy
from collections.abc import Callable, Sequence
from enum import Enum, auto
from functools import partial

from groupwright.assignors import (
    Assignor,
    CooperativeStickyAssignor,
    JoinedMember,
    PartitionsByTopic,
    Subscription,
    assign_members,
    decode_assignment,
    decode_members,
    encode_assignments,
    encode_subscription,
    subscribed_topics,
)
from groupwright.testing._simulation import messages as msg
from groupwright.testing._simulation.broker_messages import MetadataResponse
from groupwright.testing._simulation.cluster import AnyResponse, Cluster
from groupwright.testing._simulation.messages import CommittedOffset, ErrorCode, TopicPartition
from groupwright.testing._simulation.model_client import ModelClient
from groupwright.testing._simulation.model_fetcher import ModelFetcher, Position
from groupwright.testing._simulation.model_settings import MemberSettings
from groupwright.testing._simulation.observer import Observer
from groupwright.testing._simulation.scheduler import MS, SECOND, Event, Process

NO_GENERATION = -1
_JOIN_GRACE = 5 * SECOND
"""JoinGroup times out this long after `max.poll.interval.ms`."""
_CLOSE_TIMEOUT = 30 * SECOND
"""Longest time for which `close` waits for a commit or for LeaveGroup."""


class MemberState(Enum):
    """State of a member."""

    UNJOINED = auto()
    """Not in the group, or about to join again after an error."""
    PREPARING = auto()
    """Commits, and revokes, before it joins."""
    JOINING = auto()
    """Waits for JoinGroup's response."""
    SYNCING = auto()
    """Assigns if it leads, and waits for SyncGroup's response."""
    ASSIGNED = auto()
    """Has an assignment that the application has not taken yet."""
    STABLE = auto()
    """Has its partitions."""
    CLOSING = auto()
    """Commits, and leaves."""
    ENDED = auto()
    """Has closed or failed."""


Offsets = tuple[tuple[TopicPartition, CommittedOffset], ...]

_ENDING = {MemberState.CLOSING, MemberState.ENDED}
_RENEWS_SESSION = {ErrorCode.NONE, ErrorCode.REBALANCE_IN_PROGRESS}
_COORDINATOR_MOVED = {ErrorCode.NOT_COORDINATOR, ErrorCode.COORDINATOR_NOT_AVAILABLE}
_MEMBERSHIP_RESET = {ErrorCode.ILLEGAL_GENERATION, ErrorCode.UNKNOWN_MEMBER_ID}
_RETRIED = {*_COORDINATOR_MOVED, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS}


class ModelMember:
    """A member, from its start to the end of `close`. It stays silent when its process dies."""

    def __init__(
        self, process: Process, cluster: Cluster, settings: MemberSettings, observer: Observer
    ) -> None:
        """Start a member; its application polls from now on.

        Args:
            process: Its process, which owns its timers. The process's name is the member's.
            cluster: The cluster.
            settings: Its settings.
            observer: Receives its events.
        """
        self.name = process.name
        self.process = process
        self.settings = settings
        self.state = MemberState.UNJOINED
        self.member_id = ""
        self.generation = NO_GENERATION
        self.protocol = ""
        """The assignor that the coordinator chose."""
        self._assigned_generation = NO_GENERATION
        self._observer = observer
        self._assignors = {each.name: copy.deepcopy(each) for each in settings.assignors}
        self._behaviour = settings.behaviour
        self._client = ModelClient(
            cluster,
            process,
            settings.group_id,
            retry_backoff=settings.retry_backoff,
            request_timeout=settings.request_timeout,
            on_coordinator=self._serve,
        )
        self._fetcher = ModelFetcher(cluster, process, self._deliver)
        self._random = process.scheduler.stream(f"{process.name}/processing")
        self._is_polling = True
        self._last_poll = process.scheduler.now
        self._next_poll: Event | None = None
        self._at_poll: list[Callable[[], object]] = []
        """What waits for the application's next poll."""
        self._is_closing = False
        self._round = 0
        """Number of the attempt to join. Whatever belongs to an earlier one has no effect."""
        self._rejoin_needed = True
        self._is_backing_off = False
        self._earliest_join = process.scheduler.now
        self._heartbeat: Event | None = None
        self._heartbeat_in_flight = False
        self._session_end = 0
        self._is_watching_session = False
        self._is_fetching_offsets = False
        self._commit_timer: Event | None = None
        watches = self._behaviour.every_eager_member_watches_topics and not settings.is_cooperative
        self._own_topics = frozenset(settings.topics if watches else ())
        self._watched = self._own_topics
        """Topics whose change makes the member rejoin: all of the group's if it leads."""
        self._known_topics: dict[str, int] | None = None
        """Numbers of partitions of the watched topics, once they are known."""
        self._client.find_coordinator()
        process.call_in(settings.metadata_max_age, self._refresh_metadata)

    @property
    def owned(self) -> tuple[TopicPartition, ...]:
        """The partitions that the member owns, as it believes."""
        return tuple(self._fetcher.owned)

    # --- The application

    def process_for(self, duration: int) -> None:
        """Have the application process for `duration` microseconds from now on, without a poll."""
        if self.state is MemberState.ENDED:
            return
        limit = self.settings.max_poll_interval
        if self._next_poll is not None:
            self._next_poll.cancel()
        self._is_polling = False
        self._last_poll = self._now
        self._next_poll = self.process.call_in(duration, self._poll)
        if duration > limit:
            self.process.call_in(limit, partial(self._exceed_poll_interval, self._next_poll))

    def close(self) -> None:
        """Close the member when the application has processed its messages; `Observer.closed` follows."""
        self._is_closing = True
        if self._is_polling:
            self._close()

    def _poll(self) -> None:
        self._next_poll = None
        if self.state is MemberState.ENDED:
            return
        if self._now - self._last_poll > self.settings.max_poll_interval:
            self._leave_for_poll_interval()  # the process was stopped meanwhile
        self._is_polling = True
        self._last_poll = self._now
        if self._is_closing:
            self._close()
            return
        waiting, self._at_poll = self._at_poll, []
        for action in waiting:
            action()
        self._serve()
        self._deliver()

    def _when_polling(self, action: Callable[[], object]) -> None:
        """Do something now if the application polls, or at its next poll."""
        if self._is_polling:
            action()
        else:
            self._at_poll.append(action)

    def _deliver(self) -> None:
        """Return messages from `poll`, if there are any."""
        if not self._is_polling or self.state in _ENDING:
            return
        messages = self._fetcher.fetch(self.settings.max_poll_records)
        if not messages:
            return
        for message in messages:
            self._observer.delivered(self.name, *message)
        self._schedule_commit()
        low, high = self.settings.processing
        self.process_for(low + int(self._random.random() * (high - low)))

    def _exceed_poll_interval(self, poll: Event) -> None:
        if self._next_poll is poll:
            self._leave_for_poll_interval()

    def _leave_for_poll_interval(self) -> None:
        """Leave the group, as `max.poll.interval.ms` demands; static members only forget their id."""
        if self.state in {MemberState.UNJOINED, MemberState.JOINING, MemberState.ENDED}:
            return
        if self.settings.group_instance_id is None and self._client.is_ready:
            self._client.send(self._leave_request(), lambda _: None)
        self._reset(ErrorCode.UNKNOWN_MEMBER_ID)

    # --- Rebalances

    def _request_rejoin(self) -> None:
        self._rejoin_needed = True
        self._serve()

    def _serve(self) -> None:
        """Begin to join if that is needed and possible; called after whatever may make it possible."""
        if self.state not in {MemberState.UNJOINED, MemberState.STABLE} or not self._rejoin_needed:
            return
        is_lost = self.generation == NO_GENERATION and self._fetcher.owned
        if is_lost and self._is_polling and not self._behaviour.rebalances_in_poll:
            self._drop(self._observer.lost)
        revokes = self._fetcher.owned and (is_lost or not self.settings.is_cooperative)
        needs_poll = self._behaviour.rebalances_in_poll or revokes
        if not self._client.is_ready or self._is_backing_off or (needs_poll and not self._is_polling):
            return
        self._prepare()

    def _prepare(self) -> None:
        """Commit and revoke before JoinGroup (Java's `onJoinPrepare`)."""
        self._rejoin_needed = False
        self.state = MemberState.PREPARING
        self._round += 1
        if self.generation == NO_GENERATION:
            self._drop(self._observer.lost)
            self._join(self._round)
        elif not self.settings.is_cooperative:
            self._fetcher.is_paused = True
            self._commit(self._fetcher.to_commit(), partial(self._revoke_all, self._round))
        elif not self._behaviour.commits_at_cooperative_revocation:
            self._commit(self._fetcher.to_commit(), partial(self._join, self._round))
        else:
            self._join(self._round)

    def _revoke_all(self, number: int) -> None:
        if number == self._round:
            self._drop(self._observer.revoked)
            self._join(number)

    def _drop(self, report: Callable[[str, tuple[TopicPartition, ...], int], object]) -> None:
        """Own nothing from now on."""
        dropped = self.owned
        self._fetcher.unassign(dropped)
        self._fetcher.is_paused = False
        if dropped:
            report(self.name, dropped, self._assigned_generation)

    def _join(self, number: int) -> None:
        if number != self._round:
            return
        if not self._client.is_ready:
            self._retry()
            return
        if self._now < self._earliest_join:
            self.process.call_at(self._earliest_join, partial(self._join, number))
            return
        self.state = MemberState.JOINING
        self._earliest_join = self._now + self._behaviour.join_interval
        settings = self.settings
        request = msg.JoinGroupRequest(
            settings.group_id,
            self.member_id,
            settings.group_instance_id,
            settings.session_timeout // MS,
            settings.max_poll_interval // MS,
            protocols=tuple(
                msg.Protocol(name, self._subscription(assignor)) for name, assignor in self._assignors.items()
            ),
            client_id=self.name,
        )

        def answered(response: AnyResponse | None) -> None:
            handle = partial(self._on_join, number, response)
            if self._behaviour.rebalances_in_poll:
                self._when_polling(handle)
            else:
                handle()

        self._client.send(request, answered, settings.max_poll_interval + _JOIN_GRACE)

    def _subscription(self, assignor: Assignor) -> bytes:
        return encode_subscription(
            Subscription(
                self.settings.topics,
                assignor.user_data(frozenset(self.settings.topics)),
                PartitionsByTopic.of_ints(_by_topic(self.owned)),
                self.generation,
            )
        )

    def _on_join(self, number: int, response: AnyResponse | None) -> None:
        if number != self._round:
            return
        if not isinstance(response, msg.JoinGroupResponse):
            self._retry()
        elif response.error is ErrorCode.NONE:
            self.member_id, self.generation = response.member_id, response.generation_id
            self.protocol = response.protocol_name or ""
            self.state = MemberState.SYNCING
            self._renew_session()
            self._schedule_heartbeat()
            if response.leader == self.member_id:
                self._lead(number, response)
            else:
                self._watch(self._own_topics)
                self._sync(number, {})
        elif response.error is ErrorCode.MEMBER_ID_REQUIRED:
            self.member_id = response.member_id
            self._earliest_join = self._now
            self._join(number)
        else:
            self._on_error(response.error)

    def _on_error(self, error: ErrorCode) -> None:
        """Handle an error of JoinGroup or SyncGroup."""
        if error in _MEMBERSHIP_RESET:
            self._reset(error)
        elif error is ErrorCode.REBALANCE_IN_PROGRESS:
            self.state = MemberState.UNJOINED
            self._request_rejoin()
        elif error in _RETRIED:
            if error in _COORDINATOR_MOVED:
                self._client.forget_coordinator()
            self._retry()
        elif error is ErrorCode.FENCED_INSTANCE_ID or not self._behaviour.retries_refused_join:
            self._fail(error.name)
        else:
            self._retry()

    def _retry(self) -> None:
        """Join again after a while."""
        self.state = MemberState.UNJOINED
        self._rejoin_needed = self._is_backing_off = True

        def serve() -> None:
            self._is_backing_off = False
            self._serve()

        self.process.call_in(self.settings.retry_backoff, serve)

    def _reset(self, error: ErrorCode) -> None:
        """Join again without the generation, and after UNKNOWN_MEMBER_ID without the member id."""
        self.generation = NO_GENERATION
        if error is ErrorCode.UNKNOWN_MEMBER_ID:
            self.member_id = ""
        self._round += 1
        self._fetcher.is_paused = False
        self.state = MemberState.UNJOINED
        self._request_rejoin()

    def _lead(self, number: int, joined: msg.JoinGroupResponse) -> None:
        """Fetch the metadata of all topics, and assign their partitions."""
        listed = [
            JoinedMember(each.member_id, each.group_instance_id, each.metadata) for each in joined.members
        ]
        members = decode_members(listed)
        topics = subscribed_topics(members)
        assignor = self._assignors[self.protocol]

        def fetched(metadata: MetadataResponse | None) -> None:
            if number != self._round:
                return
            if metadata is None:
                self.process.call_in(self.settings.retry_backoff, fetch)
                return
            self._watched, self._known_topics = topics, dict(metadata.topics)
            if joined.skip_assignment:
                self._sync(number, {})
                return
            withholds = self.settings.is_cooperative and not isinstance(assignor, CooperativeStickyAssignor)
            _, assignment = assign_members(assignor, members, metadata.topics, cooperative=withholds)
            self._sync(number, encode_assignments(assignment))

        def fetch() -> None:
            if number == self._round:
                self._client.fetch_metadata(topics, fetched)

        fetch()

    def _sync(self, number: int, assignments: dict[str, bytes]) -> None:
        if not self._client.is_ready:
            self._retry()
            return
        request = msg.SyncGroupRequest(
            self.settings.group_id,
            self.member_id,
            self.generation,
            self.settings.group_instance_id,
            protocol_name=self.protocol,
            assignments=tuple(assignments.items()),
        )
        self._client.send(request, partial(self._on_sync, number))

    def _on_sync(self, number: int, response: AnyResponse | None) -> None:
        if number != self._round:
            return
        if not isinstance(response, msg.SyncGroupResponse):
            self._retry()
        elif response.error is ErrorCode.NONE:
            self.state = MemberState.ASSIGNED
            self._renew_session()
            self._when_polling(partial(self._apply, number, response.assignment))
        else:
            self._on_error(response.error)

    def _apply(self, number: int, encoded: bytes) -> None:
        """Revoke and assign, once the application polls (Java's `onJoinComplete`)."""
        if number != self._round:
            return
        assignment = decode_assignment(encoded).partitions if encoded else PartitionsByTopic.of_ints({})
        assigned = [(name, each) for name, listed in assignment.as_tuples().items() for each in listed]
        keeps = set(assigned)
        revoked = [each for each in self.owned if each not in keeps]
        added = [each for each in assigned if each not in self._fetcher.owned]

        def finish() -> None:
            if number != self._round:
                return
            self._observer.joined(self.name, self.generation)
            if revoked:
                self._fetcher.unassign(revoked)
                self._observer.revoked(self.name, revoked, self._assigned_generation)
            self._assigned_generation = self.generation
            self._assignors[self.protocol].on_assignment(assignment, self.generation)
            self._fetcher.assign(added)
            if added:
                self._observer.assigned(self.name, added, self.generation)
            self.state = MemberState.STABLE
            self._fetch_offsets()
            self._rejoin_needed = self._rejoin_needed or bool(revoked)
            self._serve()
            self._deliver()

        if revoked and self._behaviour.commits_at_cooperative_revocation:
            self._commit(self._fetcher.to_commit(revoked), finish)
        else:
            finish()

    # --- Heartbeats, the session and topics

    def _schedule_heartbeat(self) -> None:
        if self._heartbeat is not None:
            self._heartbeat.cancel()
        self._heartbeat = self.process.call_in(self.settings.heartbeat_interval, self._send_heartbeat)

    def _send_heartbeat(self) -> None:
        self._schedule_heartbeat()
        states = {MemberState.PREPARING, MemberState.ASSIGNED, MemberState.STABLE}
        if self._behaviour.heartbeats_while_syncing:
            states.add(MemberState.SYNCING)
        if self.state not in states or not self._client.is_ready or self._heartbeat_in_flight:
            return
        self._heartbeat_in_flight = True
        request = msg.HeartbeatRequest(
            self.settings.group_id, self.member_id, self.generation, self.settings.group_instance_id
        )
        self._client.send(request, partial(self._on_heartbeat, request))

    def _on_heartbeat(self, request: msg.HeartbeatRequest, response: AnyResponse | None) -> None:
        self._heartbeat_in_flight = False
        is_stale = (request.member_id, request.generation_id) != (self.member_id, self.generation)
        if not isinstance(response, msg.HeartbeatResponse) or is_stale:
            return
        if self.state is MemberState.JOINING or self.state in _ENDING:
            return
        if response.error in _RENEWS_SESSION:
            self._renew_session()
        if response.error is ErrorCode.REBALANCE_IN_PROGRESS:
            if self.state is MemberState.STABLE:
                self._request_rejoin()
        else:
            self._on_membership_error(response.error)

    def _on_membership_error(self, error: ErrorCode) -> None:
        """Handle an error of Heartbeat or OffsetCommit."""
        if error in _MEMBERSHIP_RESET:
            self._reset(error)
        elif error is ErrorCode.FENCED_INSTANCE_ID:
            self._fail(error.name)
        elif error in _COORDINATOR_MOVED:
            self._client.forget_coordinator()

    def _renew_session(self) -> None:
        self._session_end = self._now + self.settings.session_timeout
        if not self._is_watching_session:
            self._is_watching_session = True
            self.process.call_at(self._session_end, self._check_session)

    def _check_session(self) -> None:
        self._is_watching_session = False
        if self.state in _ENDING:
            return
        if self._now >= self._session_end and self.state is MemberState.STABLE:
            if self._behaviour.loses_expired_session:
                self._reset(ErrorCode.UNKNOWN_MEMBER_ID)
                return
            self._client.forget_coordinator()
            self._renew_session()
        else:
            self._is_watching_session = True
            self.process.call_at(max(self._session_end, self._now + SECOND), self._check_session)

    def _refresh_metadata(self) -> None:
        """Rejoin if topics have changed since the last assignment that this member made."""
        if self.state in _ENDING:
            return
        self.process.call_in(self.settings.metadata_max_age, self._refresh_metadata)
        watched, known = self._watched, self._known_topics

        def fetched(metadata: MetadataResponse | None) -> None:
            if metadata is None or watched is not self._watched or known is not self._known_topics:
                return
            self._known_topics = dict(metadata.topics)
            if known is not None and self._known_topics != known:
                self._request_rejoin()

        if watched:
            self._client.fetch_metadata(watched, fetched)

    def _watch(self, topics: frozenset[str]) -> None:
        known = self._known_topics
        self._watched = topics
        self._known_topics = (
            None if known is None else {each: known[each] for each in known if each in topics}
        )

    # --- Offsets

    def _fetch_offsets(self) -> None:
        """Fetch the committed offsets of new partitions, as often as it takes."""
        unknown = self._fetcher.unknown()
        if not unknown or self._is_fetching_offsets or self.state in _ENDING:
            return
        self._is_fetching_offsets = True
        if self._client.is_ready:
            request = msg.OffsetFetchRequest(
                self.settings.group_id, tuple(position.partition for position in unknown)
            )
            self._client.send(request, partial(self._on_offsets, unknown))
        else:
            self._on_offsets(unknown, None)

    def _on_offsets(self, asked: Sequence[Position], response: AnyResponse | None) -> None:
        if isinstance(response, msg.OffsetFetchResponse) and response.error is ErrorCode.NONE:
            self._is_fetching_offsets = False
            self._fetcher.start(asked, [committed.offset for _, committed in response.partitions])
            self._fetch_offsets()
            self._deliver()
            return
        if isinstance(response, msg.OffsetFetchResponse):
            self._on_membership_error(response.error)

        def again() -> None:
            self._is_fetching_offsets = False
            self._fetch_offsets()

        self.process.call_in(self.settings.retry_backoff, again)

    def _auto_commit(self) -> None:
        self._commit_timer = None
        if self._behaviour.rebalances_in_poll:
            self._when_polling(self._commit_positions)
        else:
            self._commit_positions()

    def _commit_positions(self) -> None:
        offsets = self._fetcher.to_commit()
        if self.state is MemberState.STABLE and self._client.is_ready and offsets:
            request = self._commit_request(offsets)
            self._client.send(request, partial(self._on_commit, request))
        elif offsets:
            self._schedule_commit()

    def _schedule_commit(self) -> None:
        interval = self.settings.auto_commit_interval
        if interval is not None and self._commit_timer is None:
            self._commit_timer = self.process.call_in(interval, self._auto_commit)

    def _commit(self, offsets: Offsets, then: Callable[[], object]) -> None:
        """Commit before a revocation, and again while the coordinator cannot be reached; then go on."""
        if not offsets or self.settings.auto_commit_interval is None:
            then()
            return
        number = self._round
        request = self._commit_request(offsets)
        closes = self.state is MemberState.CLOSING
        deadline = self._now + (_CLOSE_TIMEOUT if closes else self.settings.max_poll_interval)

        def send() -> None:
            if number == self._round and self._client.is_ready:
                self._client.send(request, answered)
            elif number == self._round:
                again()

        def answered(response: AnyResponse | None) -> None:
            error = self._on_commit(request, response)
            if number == self._round:
                (again if error in _RETRIED else then)()

        def again() -> None:
            if self._now < deadline:
                self.process.call_in(self.settings.retry_backoff, send)
            else:
                then()

        send()

    def _commit_request(self, offsets: Offsets) -> msg.OffsetCommitRequest:
        settings = self.settings
        return msg.OffsetCommitRequest(
            settings.group_id, offsets, self.member_id, self.generation, settings.group_instance_id
        )

    def _on_commit(self, request: msg.OffsetCommitRequest, response: AnyResponse | None) -> ErrorCode:
        """Handle a commit's response; return its error."""
        if not isinstance(response, msg.OffsetCommitResponse):
            return ErrorCode.COORDINATOR_NOT_AVAILABLE
        error = response.partitions[0][1]
        if error is ErrorCode.NONE:
            for partition, committed in request.offsets:
                self._fetcher.on_committed(partition, committed.offset)
                self._observer.committed(self.name, partition, committed.offset)
        elif error is ErrorCode.REBALANCE_IN_PROGRESS:
            if self.state is MemberState.STABLE:
                self._request_rejoin()
        elif request.generation_id == self.generation and self.state not in _ENDING:
            self._on_membership_error(error)
        return error

    # --- The end

    def _close(self) -> None:
        if self.state in _ENDING:
            return
        is_member = self.state in {MemberState.STABLE, MemberState.PREPARING}
        self._round += 1
        self._at_poll.clear()
        self.state = MemberState.CLOSING
        if is_member and self.generation != NO_GENERATION:
            self._fetcher.is_paused = True
            self._commit(self._fetcher.to_commit(), self._revoke_and_leave)
        else:
            self._drop(self._observer.lost)
            self._leave()

    def _revoke_and_leave(self) -> None:
        self._drop(self._observer.revoked)
        self._leave()

    def _leave(self) -> None:
        """Leave the group, unless the member is static (KIP-345)."""
        if self.settings.group_instance_id is None and self.member_id and self._client.is_ready:
            self._client.send(self._leave_request(), lambda _: self._end(), _CLOSE_TIMEOUT)
        else:
            self._end()

    def _leave_request(self) -> msg.LeaveGroupRequest:
        return msg.LeaveGroupRequest(self.settings.group_id, (msg.LeavingMember(self.member_id),))

    def _fail(self, reason: str) -> None:
        self._drop(self._observer.lost)
        self._end()
        self._observer.failed(self.name, reason)

    def _end(self) -> None:
        if self.state is MemberState.ENDED:
            return
        closes = self.state is MemberState.CLOSING
        self.state = MemberState.ENDED
        self._round += 1
        for timer in (self._heartbeat, self._commit_timer, self._next_poll):
            if timer is not None:
                timer.cancel()
        self._client.close()
        if closes:
            self._observer.closed(self.name)

    @property
    def _now(self) -> int:
        return self.process.scheduler.now


def _by_topic(partitions: Sequence[TopicPartition]) -> dict[str, list[int]]:
    found: dict[str, list[int]] = {}
    for topic, partition in partitions:
        found.setdefault(topic, []).append(partition)
    return found
