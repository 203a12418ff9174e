"""A simulated group member that behaves as Java's consumer or as librdkafka's.

The member is driven by events: responses, timers and its application's polls. The application polls, gets
some messages, processes them for a while, and polls again; without messages it stays in `poll`.

`model_settings.Behaviour` lists the differences between the two kinds. They follow Java's
`AbstractCoordinator` and `ConsumerCoordinator`, and `rdkafka_cgrp.c`. Both kinds heartbeat while the
application processes, and keep the member id after ILLEGAL_GENERATION but not after UNKNOWN_MEMBER_ID.

Left out: regular expressions, racks, changes of the subscription, transactions, authorization.
"""

import copy
from collections.abc import Callable
from enum import Enum, auto
from functools import partial

from groupwright.assignors import (
    Assignor,
    PartitionsByTopic,
    Subscription,
    decode_assignment,
    encode_subscription,
)
from groupwright.core import ErrorCode, TopicPartitionKey, by_topic
from groupwright.testing._simulation import messages as msg
from groupwright.testing._simulation.cluster import AnyResponse, Cluster
from groupwright.testing._simulation.model_application import ModelApplication
from groupwright.testing._simulation.model_client import ModelClient
from groupwright.testing._simulation.model_fetcher import ModelFetcher
from groupwright.testing._simulation.model_leader import ModelLeader
from groupwright.testing._simulation.model_offsets import COORDINATOR_MOVED, RETRIED, ModelOffsets, Offsets
from groupwright.testing._simulation.model_session import ModelSession
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


_ENDING = {MemberState.CLOSING, MemberState.ENDED}
_MEMBERSHIP_RESET = {ErrorCode.ILLEGAL_GENERATION, ErrorCode.UNKNOWN_MEMBER_ID}


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
        self._offsets = ModelOffsets(
            process,
            self._client,
            self._fetcher,
            settings,
            observer,
            identity=lambda: (self.member_id, self.generation),
            on_error=self._on_offsets_error,
            on_fetched=self._deliver,
        )
        self._session = ModelSession(
            process,
            self._client,
            settings,
            identity=lambda: (self.member_id, self.generation),
            is_due=self._is_heartbeat_due,
            on_response=self._on_heartbeat,
            on_expired=self._on_session_expired,
        )
        self._leader = ModelLeader(process, self._client, settings, on_change=self._request_rejoin)
        self._application = ModelApplication(
            process, settings, on_poll=self._poll, on_poll_timeout=self._leave_for_poll_interval
        )
        self._is_closing = False
        self._round = 0
        """Number of the attempt to join. Whatever belongs to an earlier one has no effect."""
        self._rejoin_needed = True
        self._is_backing_off = False
        self._earliest_join = process.scheduler.now
        self._commit_timer: Event | None = None
        self._client.find_coordinator()

    @property
    def owned(self) -> tuple[TopicPartitionKey, ...]:
        """The partitions that the member owns, as it believes."""
        return tuple(self._fetcher.owned)

    # --- The application

    def process_for(self, duration: int) -> None:
        """Have the application process for `duration` microseconds from now on, without a poll."""
        if self.state is not MemberState.ENDED:
            self._application.process_for(duration)

    def close(self) -> None:
        """Close the member when the application has processed its messages; `Observer.closed` follows."""
        self._is_closing = True
        if self._application.is_polling:
            self._close()

    def _poll(self) -> None:
        if self._is_closing:
            self._close()
            return
        self._application.run_waiting()
        self._serve()
        self._deliver()

    def _deliver(self) -> None:
        """Return messages from `poll`, if there are any."""
        if not self._application.is_polling or self.state in _ENDING:
            return
        messages = self._fetcher.fetch(self.settings.max_poll_records)
        if not messages:
            return
        for message in messages:
            self._observer.delivered(self.name, *message)
        self._schedule_commit()
        self._application.process_batch()

    def _leave_for_poll_interval(self) -> None:
        """Leave the group, as `max.poll.interval.ms` demands; static members only forget their id."""
        if self.state in {MemberState.UNJOINED, MemberState.JOINING, *_ENDING}:
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
        if is_lost and self._application.is_polling and not self._behaviour.rebalances_in_poll:
            self._drop(self._observer.lost)
        revokes = self._fetcher.owned and (is_lost or not self.settings.is_cooperative)
        needs_poll = self._behaviour.rebalances_in_poll or revokes
        if (
            not self._client.is_ready
            or self._is_backing_off
            or (needs_poll and not self._application.is_polling)
        ):
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
            self._commit(partial(self._revoke_all, self._round))
        elif not self._behaviour.commits_at_cooperative_revocation:
            self._commit(partial(self._join, self._round))
        else:
            self._join(self._round)

    def _commit(self, then: Callable[[], object], offsets: Offsets | None = None) -> None:
        """Commit these or all positions before a revocation, and go on unless the membership changes."""
        number = self._round
        closes = self.state is MemberState.CLOSING
        self._offsets.commit_until(
            self._fetcher.to_commit() if offsets is None else offsets,
            self._now + (_CLOSE_TIMEOUT if closes else self.settings.max_poll_interval),
            lambda: number == self._round,
            then,
        )

    def _revoke_all(self, number: int) -> None:
        self._drop(self._observer.revoked)
        self._join(number)

    def _drop(self, report: Callable[[str, tuple[TopicPartitionKey, ...], int], object]) -> None:
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
                self._application.when_polling(handle)
            else:
                handle()

        self._client.send(request, answered, settings.max_poll_interval + _JOIN_GRACE)

    def _subscription(self, assignor: Assignor) -> bytes:
        return encode_subscription(
            Subscription(
                self.settings.topics,
                assignor.user_data(frozenset(self.settings.topics)),
                PartitionsByTopic.of_ints(by_topic(self.owned)),
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
            self._session.begin()
            if response.leader == self.member_id:
                self._leader.perform_assignment(
                    self._assignors[self.protocol],
                    response,
                    lambda: number == self._round,
                    partial(self._sync, number),
                )
            else:
                self._leader.follow()
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
        elif error in RETRIED:
            if error in COORDINATOR_MOVED:
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
            self._session.renew()
            self._application.when_polling(partial(self._apply, number, response.assignment))
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

        self._observer.joined(self.name, self.generation)
        commits = self._behaviour.commits_at_cooperative_revocation
        offsets = self._fetcher.to_commit(revoked) if commits else ()
        self._fetcher.unassign(revoked)
        if revoked:
            self._observer.revoked(self.name, revoked, self._assigned_generation)

        def assign() -> None:
            if number != self._round:
                return
            self._assigned_generation = self.generation
            self._assignors[self.protocol].on_assignment(assignment, self.generation)
            self._fetcher.assign(added)
            if added:
                self._observer.assigned(self.name, added, self.generation)
            self.state = MemberState.STABLE
            self._offsets.fetch()
            self._rejoin_needed = self._rejoin_needed or bool(revoked)
            self._serve()
            self._deliver()

        self._commit(partial(self._application.when_polling, assign), offsets)

    # --- Heartbeats and the session

    def _is_heartbeat_due(self) -> bool:
        syncs = self.state is MemberState.SYNCING and self._behaviour.heartbeats_while_syncing
        return syncs or self.state in {MemberState.PREPARING, MemberState.ASSIGNED, MemberState.STABLE}

    def _on_heartbeat(self, error: ErrorCode) -> None:
        if self.state is MemberState.JOINING or self.state in _ENDING:
            return
        if error is not ErrorCode.REBALANCE_IN_PROGRESS:
            self._on_membership_error(error)
        elif self.state is MemberState.STABLE:
            self._request_rejoin()

    def _on_membership_error(self, error: ErrorCode) -> None:
        """Handle an error of Heartbeat or OffsetCommit."""
        if error in _MEMBERSHIP_RESET:
            self._reset(error)
        elif error is ErrorCode.FENCED_INSTANCE_ID:
            self._fail(error.name)
        elif error in COORDINATOR_MOVED:
            self._client.forget_coordinator()

    def _on_session_expired(self) -> None:
        if self.state is not MemberState.STABLE:
            return
        if self._behaviour.loses_expired_session:
            self._reset(ErrorCode.UNKNOWN_MEMBER_ID)
        else:
            self._client.forget_coordinator()
            self._session.renew()

    # --- Offsets

    def _schedule_commit(self) -> None:
        interval = self.settings.auto_commit_interval
        if interval is not None and self._commit_timer is None:
            self._commit_timer = self.process.call_in(interval, self._auto_commit)

    def _auto_commit(self) -> None:
        self._commit_timer = None
        if self._behaviour.rebalances_in_poll:
            self._application.when_polling(self._commit_positions)
        else:
            self._commit_positions()

    def _commit_positions(self) -> None:
        offsets = self._fetcher.to_commit()
        if offsets and self.state is MemberState.STABLE:
            self._offsets.commit(offsets, self._after_commit)
        elif offsets:
            self._schedule_commit()

    def _after_commit(self, error: ErrorCode) -> None:
        if error in RETRIED:
            self._schedule_commit()

    def _on_offsets_error(self, error: ErrorCode, generation: int) -> None:
        if error is ErrorCode.REBALANCE_IN_PROGRESS:
            if self.state is MemberState.STABLE:
                self._request_rejoin()
        elif error in COORDINATOR_MOVED:
            self._client.forget_coordinator()
        elif generation == self.generation and self.state not in _ENDING:
            self._on_membership_error(error)

    # --- The end

    def _close(self) -> None:
        if self.state in _ENDING:
            return
        is_member = self.state in {MemberState.STABLE, MemberState.PREPARING, MemberState.ASSIGNED}
        self._round += 1
        self._stop_timers()
        self.state = MemberState.CLOSING
        if is_member and self.generation != NO_GENERATION:
            self._fetcher.is_paused = True
            self._commit(self._revoke_and_leave)
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
        self._stop_timers()
        self._client.close()
        if closes:
            self._observer.closed(self.name)

    def _stop_timers(self) -> None:
        if self._commit_timer is not None:
            self._commit_timer.cancel()
        for part in (self._application, self._leader, self._offsets, self._session):
            part.stop()

    @property
    def _now(self) -> int:
        return self.process.scheduler.now
