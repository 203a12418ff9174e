"""The coordinator of classic groups, as a pure function of its requests and the time.

Every request is an input with a correlation id and the time. An input returns the responses that are sent
now. JoinGroup and SyncGroup may be parked, as in Kafka's purgatory: a later request or a timer causes their
responses. The caller calls `Coordinator.advance` at the time of `Coordinator.next_timer`. Times are integers
in milliseconds on any clock.

A rebalance goes through these steps:

1. A member joins or leaves, a session ends, or a member changes its protocols: PreparingRebalance. The join
   phase ends when all members and all pending ids have joined, or at the longest rebalance timeout of all
   members; dynamic members that have not joined are then removed. A group that was Empty waits for
   `group.initial.rebalance.delay.ms` instead.
2. The next generation begins: CompletingRebalance. All members are answered, and the leader gets the members.
3. The leader sends the assignments: Stable. The group is written to the log, and all parked SyncGroups are
   answered. Members that do not send SyncGroup within the rebalance timeout are removed.

The log has the last generation that became Stable or Empty. So a coordinator that loads it knows neither
pending ids, nor members and generations of a rebalance under way, nor parked requests; it does know static
members, and it starts the sessions of all members again.

Left out: writes that fail or take time, the loading of the log, transactions, authorization, quotas, whether
the topics of a commit exist, and groups of KIP-848.

Sources: KIP-62, KIP-134, KIP-211, KIP-345, KIP-394, KIP-496, KIP-559, KIP-814; Kafka's GroupMetadataManager
and OffsetMetadataManager (4.3), and GroupCoordinator in Scala (3.9).
"""

from collections.abc import Callable, Mapping
from enum import Enum, auto

from groupwright.core import ErrorCode, TopicPartitionKey
from groupwright.testing._simulation import messages as msg
from groupwright.testing._simulation.classic_group import CONSUMER, ClassicGroup, Member, State
from groupwright.testing._simulation.committed_offsets import CommittedOffsets
from groupwright.testing._simulation.messages import Reply, Request, Response
from groupwright.testing._simulation.records import (
    GroupMetadataKey,
    GroupMetadataRecord,
    Log,
    OffsetCommitKey,
    OffsetCommitRecord,
)
from groupwright.testing._simulation.settings import NEW_MEMBER_JOIN_TIMEOUT_MS, GroupSettings, KafkaVersion
from groupwright.testing._simulation.timers import Timers

_KNOWN_MEMBER_ID_VERSION = 4
"""Version of JoinGroup from which a dynamic member joins with the id that it was given (KIP-394)."""
_SKIP_ASSIGNMENT_VERSION = 9
"""Version of JoinGroup from which a returning static leader can be asked to skip the assignment (KIP-814)."""
_PROTOCOL_CHECK_VERSION = 5
"""Version of SyncGroup from which it names the protocol (KIP-559)."""
_MISSING_GROUP_VERSION = 9
"""Version of OffsetCommit from which a missing group has an error code of its own (KIP-848)."""

_COMMIT_RENEWS_SESSION = {State.STABLE, State.PREPARING_REBALANCE}
"""States in which a commit renews its member's session; in CompletingRebalance it is rejected."""


class _Timer(Enum):
    """Kinds of timers."""

    SESSION = auto()
    """Of a member or a pending id: its session timeout."""
    JOIN = auto()
    """Of a group: the end of the initial delay, or of the join phase."""
    SYNC = auto()
    """Of a group: the time by which all members must have sent SyncGroup."""
    OFFSETS = auto()
    """Of the coordinator: the next search for expired offsets."""


_TimerName = tuple[_Timer, str, str]
"""(kind, group id, member id)."""


class Coordinator:
    """The coordinator of one partition of `__consumer_offsets`, from its election to its resignation."""

    def __init__(
        self,
        new_member_id: Callable[[str], str],
        settings: GroupSettings | None = None,
        version: KafkaVersion = KafkaVersion.KAFKA_4_3,
        *,
        log: Mapping[GroupMetadataKey | OffsetCommitKey, GroupMetadataRecord | OffsetCommitRecord]
        | None = None,
        now: int = 0,
    ) -> None:
        """Become the coordinator, and load the log.

        Args:
            new_member_id: Returns a new member id that begins with the string that it is given. Kafka appends
                a random UUID.
            settings: The broker's settings.
            version: The version of Kafka.
            log: The log that an earlier coordinator has written.
            now: Time of the election.
        """
        self._new_member_id = new_member_id
        self._settings = settings or GroupSettings()
        self._version = version
        self._groups: dict[str, ClassicGroup] = {}
        self._timers: Timers[_TimerName] = Timers()
        self._log: Log = dict(log or {})
        self._offsets = CommittedOffsets(self._log)
        self._replies: list[Reply] = []
        self._resigned = False
        self._start_offsets_timer(now)
        self._load(now)

    @property
    def log(self) -> Log:
        """A copy of the log, for the next coordinator."""
        return dict(self._log)

    def group(self, group_id: str) -> ClassicGroup | None:
        """Return a group to look at, or None if it does not exist."""
        return self._groups.get(group_id)

    def committed(self, group_id: str, partition: TopicPartitionKey) -> int:
        """Return a committed offset, or -1."""
        return self._offsets.fetch(group_id, partition).offset

    # --- Inputs

    def delete_topic(self, topic: str) -> None:
        """Delete the offsets of a topic that was deleted."""
        self._offsets.delete_topic(topic)

    def handle(self, correlation_id: int, request: Request, now: int) -> list[Reply]:
        """Receive a request; expired timers are handled first.

        Args:
            correlation_id: A number that no other parked request has.
            request: The request.
            now: Time at which it arrives.

        Returns:
            The responses that are sent now, to this and to parked requests. A parked request is never
            answered if its member sends it again or if its member leaves while its SyncGroup is parked.
        """
        self._handle_expired_timers(now)
        if self._resigned:
            self._reply(correlation_id, failed(request, ErrorCode.NOT_COORDINATOR))
        else:
            self._dispatch(correlation_id, request, now)
            self._handle_expired_timers(now)  # a delay of 0 ms ends at once
        return self._take_replies()

    def advance(self, now: int) -> list[Reply]:
        """Handle all expired timers; return the responses that this causes."""
        self._handle_expired_timers(now)
        return self._take_replies()

    def next_timer(self) -> int | None:
        """Return the time at which `advance` must be called at the latest; None if there is none."""
        return None if self._resigned else self._timers.next_deadline()

    def resign(self, now: int) -> list[Reply]:
        """Stop being the coordinator, because the partition's leader has moved to another broker.

        Parked requests and all later ones are answered with NOT_COORDINATOR. A broker that restarts answers
        nothing: its connections are closed.
        """
        self._handle_expired_timers(now)
        for group in self._groups.values():
            for member in group.members.values():
                self._answer_join(
                    member, msg.JoinGroupResponse(ErrorCode.NOT_COORDINATOR, member_id=member.member_id)
                )
                self._answer_sync(member, msg.SyncGroupResponse(ErrorCode.NOT_COORDINATOR))
            group.transition_to(State.DEAD, now)
        self._resigned = True
        return self._take_replies()

    # --- Requests

    def _dispatch(self, correlation_id: int, request: Request, now: int) -> None:
        match request:
            case msg.JoinGroupRequest():
                self._join(correlation_id, request, now)
            case msg.SyncGroupRequest():
                self._sync(correlation_id, request, now)
            case msg.HeartbeatRequest():
                self._reply(correlation_id, msg.HeartbeatResponse(self._heartbeat(request, now)))
            case msg.LeaveGroupRequest():
                self._leave(correlation_id, request, now)
            case msg.OffsetCommitRequest():
                self._reply(correlation_id, self._commit(request, now))
            case msg.OffsetFetchRequest():
                self._reply(correlation_id, self._fetch(request))
            case msg.OffsetDeleteRequest():
                self._reply(correlation_id, self._delete_offsets(request, now))
            case msg.DescribeGroupsRequest():
                self._reply(correlation_id, self._describe(request))
            case msg.DeleteGroupsRequest():
                self._reply(correlation_id, msg.DeleteGroupsResponse(self._delete(request, now)))

    # --- JoinGroup

    def _join(self, correlation_id: int, request: msg.JoinGroupRequest, now: int) -> None:
        error = self._check_join(request)
        if error is not ErrorCode.NONE:
            self._reject_join(correlation_id, error, request.member_id)
            return
        group = self._group_to_join(request.group_id, now)
        if not group.accepts(request.member_id, self._settings.max_size):
            group.remove(request.member_id)
            self._reject_join(correlation_id, ErrorCode.GROUP_MAX_SIZE_REACHED, "")
            if self._version.rejected_join_may_complete_phase:
                self._complete_join_phase_if_all_joined(group, now)
        elif not group.supports(request.protocol_type, request.protocols):
            self._reject_join(correlation_id, ErrorCode.INCONSISTENT_GROUP_PROTOCOL, request.member_id)
        elif not request.member_id:
            self._join_as_new_member(correlation_id, request, group, now)
        elif request.member_id in group.pending_joins:
            self._join_as_pending_member(correlation_id, request, group, now)
        else:
            self._join_again(correlation_id, request, group, now)

    def _check_join(self, request: msg.JoinGroupRequest) -> ErrorCode:
        """Check what needs no group, and that a member with an id has one."""
        settings = self._settings
        if not request.group_id:
            return ErrorCode.INVALID_GROUP_ID
        if not (
            settings.min_session_timeout_ms <= request.session_timeout_ms <= settings.max_session_timeout_ms
        ):
            return ErrorCode.INVALID_SESSION_TIMEOUT
        if request.group_id not in self._groups and request.member_id:
            return ErrorCode.UNKNOWN_MEMBER_ID
        return ErrorCode.NONE

    def _group_to_join(self, group_id: str, now: int) -> ClassicGroup:
        group = self._groups.get(group_id)
        if group is None:
            group = self._groups[group_id] = ClassicGroup(group_id, self._version, now)
            if self._version.writes_new_groups:
                self._write(group)
        return group

    def _join_as_new_member(
        self, correlation_id: int, request: msg.JoinGroupRequest, group: ClassicGroup, now: int
    ) -> None:
        if request.group_instance_id is not None:
            new_id = self._new_member_id(f"{request.group_instance_id}-")
            if request.group_instance_id in group.static_members:
                self._replace_static_member(correlation_id, request, group, new_id, now)
            else:
                self._add_member(correlation_id, request, group, new_id, now)
            return
        new_id = self._new_member_id(f"{request.client_id}-")
        if request.version >= _KNOWN_MEMBER_ID_VERSION:
            group.pending_joins.add(new_id)
            self._start_session(group, new_id, request.session_timeout_ms, now)
            self._reject_join(correlation_id, ErrorCode.MEMBER_ID_REQUIRED, new_id)
        else:
            self._add_member(correlation_id, request, group, new_id, now)

    def _join_as_pending_member(
        self, correlation_id: int, request: msg.JoinGroupRequest, group: ClassicGroup, now: int
    ) -> None:
        if request.group_instance_id is None:
            self._add_member(correlation_id, request, group, request.member_id, now)
        else:
            # Kafka never gives a static member an id in advance, so it reports an error of its own.
            self._reject_join(correlation_id, ErrorCode.UNKNOWN_SERVER_ERROR, "")

    def _add_member(
        self,
        correlation_id: int,
        request: msg.JoinGroupRequest,
        group: ClassicGroup,
        member_id: str,
        now: int,
    ) -> None:
        every = self._version.delays_every_initial_rebalance
        if group.in_initial_delay and (every or group.generation_id == 0):
            group.new_member_added = True
        group.add(
            Member(
                member_id,
                request.group_instance_id,
                request.client_id,
                request.rebalance_timeout_ms,
                request.session_timeout_ms,
                request.protocol_type,
                request.protocols,
                join=correlation_id,
                is_new=True,
            )
        )
        # The session timeout does not apply to a member that does not know its id yet.
        self._start_session(group, member_id, NEW_MEMBER_JOIN_TIMEOUT_MS, now)
        self._rebalance_or_complete_join_phase(group, now)

    def _join_again(
        self, correlation_id: int, request: msg.JoinGroupRequest, group: ClassicGroup, now: int
    ) -> None:
        error = group.check_member(request.member_id, request.group_instance_id)
        if error is ErrorCode.NONE and group.state is State.EMPTY:
            error = ErrorCode.UNKNOWN_MEMBER_ID
        if error is not ErrorCode.NONE:
            self._reject_join(correlation_id, error, request.member_id)
            return
        member = group.members[request.member_id]
        is_leader = group.leader == member.member_id
        unchanged = member.protocols == request.protocols
        if group.state is State.COMPLETING_REBALANCE and unchanged:
            # The member may have missed the response of this generation.
            self._reply(correlation_id, self._joined(group, member.member_id, with_members=is_leader))
        elif group.state is State.STABLE and unchanged and not is_leader:
            self._reply(correlation_id, self._joined(group, member.member_id, with_members=False))
        else:
            # A leader joins again for reasons that its metadata does not show, such as new partitions.
            _update_member(member, request, correlation_id)
            self._rebalance_or_complete_join_phase(group, now)

    def _replace_static_member(
        self, correlation_id: int, request: msg.JoinGroupRequest, group: ClassicGroup, new_id: str, now: int
    ) -> None:
        """Let a static member return with a new member id, and fence the old id (KIP-345)."""
        instance_id = request.group_instance_id or ""
        old_leader = group.leader
        old, member = group.replace_static(instance_id, new_id)
        self._answer_join(old, msg.JoinGroupResponse(ErrorCode.FENCED_INSTANCE_ID, member_id=old.member_id))
        self._answer_sync(old, msg.SyncGroupResponse(ErrorCode.FENCED_INSTANCE_ID))
        # The session timeout of this first session is that of the old member.
        self._start_session(group, new_id, member.session_timeout_ms, now)
        _update_member(member, request, correlation_id)
        if group.state is State.COMPLETING_REBALANCE:
            # The leader may be assigning partitions to the old id.
            self._prepare_rebalance(group, now)
        elif group.state is State.STABLE and group.select_protocol() != group.protocol_name:
            self._prepare_rebalance(group, now)
        elif group.state is State.STABLE:
            self._write(group)
            can_skip = request.version >= _SKIP_ASSIGNMENT_VERSION
            skip = can_skip and group.leader == new_id
            response = self._joined(group, new_id, with_members=skip, skip_assignment=skip)
            if not can_skip:
                # Named as the leader, the member would assign partitions anew.
                response = self._joined(group, new_id, with_members=False, leader=old_leader)
            self._answer_join(member, response)
        else:
            self._complete_join_phase_if_all_joined(group, now)

    def _reject_join(self, correlation_id: int, error: ErrorCode, member_id: str) -> None:
        self._reply(correlation_id, msg.JoinGroupResponse(error, member_id=member_id))

    def _joined(
        self,
        group: ClassicGroup,
        member_id: str,
        *,
        with_members: bool,
        skip_assignment: bool = False,
        leader: str | None = None,
    ) -> msg.JoinGroupResponse:
        return msg.JoinGroupResponse(
            generation_id=group.generation_id,
            protocol_type=group.protocol_type,
            protocol_name=group.protocol_name,
            leader=leader or group.leader or "",
            skip_assignment=skip_assignment,
            member_id=member_id,
            members=group.joined_members() if with_members else (),
        )

    # --- The join phase

    def _rebalance_or_complete_join_phase(self, group: ClassicGroup, now: int) -> None:
        if group.can_rebalance:
            self._prepare_rebalance(group, now)
        else:
            self._complete_join_phase_if_all_joined(group, now)

    def _prepare_rebalance(self, group: ClassicGroup, now: int) -> None:
        if group.state is State.COMPLETING_REBALANCE:
            for member in group.ordered():
                member.assignment = b""
                self._answer_sync(member, msg.SyncGroupResponse(ErrorCode.REBALANCE_IN_PROGRESS), group, now)
        group.pending_syncs.clear()
        self._timers.cancel((_Timer.SYNC, group.group_id, ""))
        if group.state is State.EMPTY:
            delay = self._settings.initial_rebalance_delay_ms
            group.initial_delay_ms = delay
            group.remaining_delay_ms = max(group.rebalance_timeout_ms - delay, 0)
            self._timers.start((_Timer.JOIN, group.group_id, ""), now + delay)
            group.transition_to(State.PREPARING_REBALANCE, now)
        else:
            group.transition_to(State.PREPARING_REBALANCE, now)
            self._timers.start((_Timer.JOIN, group.group_id, ""), now + group.rebalance_timeout_ms)
            self._complete_join_phase_if_all_joined(group, now)

    def _complete_join_phase_if_all_joined(self, group: ClassicGroup, now: int) -> None:
        if group.state is State.PREPARING_REBALANCE and not group.in_initial_delay and group.all_have_joined:
            self._complete_join_phase(group, now)

    def _complete_join_phase(self, group: ClassicGroup, now: int) -> None:
        """Remove dynamic members that have not joined, and begin the next generation.

        Static members stay, and keep their subscriptions. While only such members are left, the join phase
        goes on until their sessions end.
        """
        self._timers.cancel((_Timer.JOIN, group.group_id, ""))
        for member in list(group.members.values()):
            if member.join is None and member.group_instance_id is None:
                self._remove(group, member.member_id)
        if not group.elect_joined_leader() and group.members:
            self._timers.start((_Timer.JOIN, group.group_id, ""), now + group.rebalance_timeout_ms)
            return
        group.begin_generation(now)
        if not group.members:
            self._write(group)
            return
        for member in group.ordered():
            is_leader = group.leader == member.member_id
            self._answer_join(member, self._joined(group, member.member_id, with_members=is_leader))
            self._renew_session(group, member, now)
            member.is_new = False
            group.pending_syncs.add(member.member_id)
        self._timers.start((_Timer.SYNC, group.group_id, ""), now + group.rebalance_timeout_ms)

    def _end_initial_delay(self, group: ClassicGroup, now: int) -> None:
        """Extend the delay if new members have come, at most to the longest rebalance timeout."""
        if not group.new_member_added or group.remaining_delay_ms == 0:
            self._complete_join_phase(group, now)
            return
        group.new_member_added = False
        previous, remaining = group.initial_delay_ms, group.remaining_delay_ms
        group.initial_delay_ms = min(self._settings.initial_rebalance_delay_ms, remaining)
        group.remaining_delay_ms = max(remaining - previous, 0)
        self._timers.start((_Timer.JOIN, group.group_id, ""), now + group.initial_delay_ms)

    # --- SyncGroup

    def _sync(self, correlation_id: int, request: msg.SyncGroupRequest, now: int) -> None:
        group = self._groups.get(request.group_id)
        error = self._check_sync(request, group)
        if error is not ErrorCode.NONE or group is None:
            self._reply(correlation_id, msg.SyncGroupResponse(error))
            return
        member = group.members[request.member_id]
        group.pending_syncs.discard(member.member_id)
        if not group.pending_syncs:
            self._timers.cancel((_Timer.SYNC, group.group_id, ""))
        if group.state is State.STABLE:
            self._reply(correlation_id, self._assigned(group, member))
            if self._version.stable_sync_renews_session:
                self._renew_session(group, member, now)
            return
        member.sync = correlation_id
        if group.leader == member.member_id:
            assignments = dict(request.assignments)
            for other in group.members.values():
                other.assignment = assignments.get(other.member_id, b"")
            self._write(group)
            for other in group.ordered():
                self._answer_sync(other, self._assigned(group, other), group, now)
            group.transition_to(State.STABLE, now)

    def _check_sync(self, request: msg.SyncGroupRequest, group: ClassicGroup | None) -> ErrorCode:
        names = (request.protocol_type, request.protocol_name)
        error = ErrorCode.NONE
        if request.version >= _PROTOCOL_CHECK_VERSION and None in names:
            error = ErrorCode.INCONSISTENT_GROUP_PROTOCOL
        elif not request.group_id:
            error = ErrorCode.INVALID_GROUP_ID
        elif group is None:
            error = ErrorCode.UNKNOWN_MEMBER_ID
        if error is not ErrorCode.NONE or group is None:
            return error
        error = group.check_generation(request.member_id, request.group_instance_id, request.generation_id)
        if error is not ErrorCode.NONE:
            return error
        chosen = (group.protocol_type, group.protocol_name)
        ignored = {None} if self._version.any_protocol_matches_none else set()
        if any(
            name not in {None, expected} and expected not in ignored
            for name, expected in zip(names, chosen, strict=True)
        ):
            return ErrorCode.INCONSISTENT_GROUP_PROTOCOL
        preparing = group.state is State.PREPARING_REBALANCE
        return ErrorCode.REBALANCE_IN_PROGRESS if preparing else ErrorCode.NONE

    def _assigned(self, group: ClassicGroup, member: Member) -> msg.SyncGroupResponse:
        return msg.SyncGroupResponse(
            protocol_type=group.protocol_type,
            protocol_name=group.protocol_name,
            assignment=member.assignment,
        )

    # --- Heartbeat, LeaveGroup

    def _heartbeat(self, request: msg.HeartbeatRequest, now: int) -> ErrorCode:
        if not request.group_id:
            return ErrorCode.INVALID_GROUP_ID
        group = self._groups.get(request.group_id)
        if group is None:
            return ErrorCode.UNKNOWN_MEMBER_ID
        error = group.check_generation(request.member_id, request.group_instance_id, request.generation_id)
        if error is not ErrorCode.NONE:
            return error
        self._renew_session(group, group.members[request.member_id], now)
        if group.state is State.PREPARING_REBALANCE:
            return ErrorCode.REBALANCE_IN_PROGRESS
        return ErrorCode.NONE

    def _leave(self, correlation_id: int, request: msg.LeaveGroupRequest, now: int) -> None:
        if not request.group_id:
            self._reply(correlation_id, msg.LeaveGroupResponse(ErrorCode.INVALID_GROUP_ID))
            return
        group = self._groups.get(request.group_id)
        errors = [
            (leaving, self._remove_leaving(group, leaving, now) if group else ErrorCode.UNKNOWN_MEMBER_ID)
            for leaving in request.members
        ]
        self._reply(correlation_id, msg.LeaveGroupResponse(members=tuple(errors)))
        left = any(error is ErrorCode.NONE for _, error in errors)
        if group is not None and left and self._version.rebalances_once_a_leave_request:
            self._rebalance_without_removed(group, now)

    def _remove_leaving(self, group: ClassicGroup, leaving: msg.LeavingMember, now: int) -> ErrorCode:
        member_id = leaving.member_id
        if member_id in group.pending_joins:
            self._remove(group, member_id)
            if not self._version.rebalances_once_a_leave_request:
                self._complete_join_phase_if_all_joined(group, now)
            return ErrorCode.NONE
        if not member_id:
            instance_id = leaving.group_instance_id
            if instance_id not in group.static_members or instance_id is None:
                return ErrorCode.UNKNOWN_MEMBER_ID
            member_id = group.static_members[instance_id]
        else:
            error = group.check_member(member_id, leaving.group_instance_id)
            if error is not ErrorCode.NONE:
                return error
        self._answer_join(group.members[member_id], msg.JoinGroupResponse(ErrorCode.UNKNOWN_MEMBER_ID))
        self._remove(group, member_id)
        if not self._version.rebalances_once_a_leave_request:
            self._rebalance_without_removed(group, now)
        return ErrorCode.NONE

    def _rebalance_without_removed(self, group: ClassicGroup, now: int) -> None:
        if group.state in {State.STABLE, State.COMPLETING_REBALANCE}:
            self._prepare_rebalance(group, now)
        else:
            self._complete_join_phase_if_all_joined(group, now)

    def _remove(self, group: ClassicGroup, member_id: str) -> None:
        group.remove(member_id)
        self._timers.cancel((_Timer.SESSION, group.group_id, member_id))

    # --- Offsets

    def _commit(self, request: msg.OffsetCommitRequest, now: int) -> msg.OffsetCommitResponse:
        group = self._groups.get(request.group_id)
        if group is None and request.generation_id < 0:
            # An administrator, or a consumer that assigns itself partitions.
            group = self._groups[request.group_id] = ClassicGroup(request.group_id, self._version, now)
        error = self._check_commit(request, group)
        if group is None or error is not ErrorCode.NONE:
            return msg.OffsetCommitResponse(tuple((partition, error) for partition, _ in request.offsets))
        if group.state in _COMMIT_RENEWS_SESSION:
            self._renew_session(group, group.members[request.member_id], now)
        results = []
        for partition, offset in request.offsets:
            fits = len(offset.metadata) <= self._settings.offset_metadata_max_bytes
            if fits:
                self._offsets.commit(request.group_id, partition, offset, now)
            results.append((partition, ErrorCode.NONE if fits else ErrorCode.OFFSET_METADATA_TOO_LARGE))
        return msg.OffsetCommitResponse(tuple(results))

    def _check_commit(self, request: msg.OffsetCommitRequest, group: ClassicGroup | None) -> ErrorCode:
        """Check a commit: it carries the present generation, or none while the group is Empty."""
        if group is None:
            if self._version.commit_reports_missing_group and request.version >= _MISSING_GROUP_VERSION:
                return ErrorCode.GROUP_ID_NOT_FOUND
            return ErrorCode.ILLEGAL_GENERATION
        if request.generation_id < 0 and group.state is State.EMPTY:
            return ErrorCode.NONE
        error = group.check_generation(request.member_id, request.group_instance_id, request.generation_id)
        if error is ErrorCode.NONE and group.state is State.COMPLETING_REBALANCE:
            # The member has the generation from JoinGroup's response, but no assignment for it yet.
            return ErrorCode.REBALANCE_IN_PROGRESS
        return error

    def _fetch(self, request: msg.OffsetFetchRequest) -> msg.OffsetFetchResponse:
        return msg.OffsetFetchResponse(
            partitions=tuple(
                (partition, self._offsets.fetch(request.group_id, partition))
                for partition in request.partitions
            )
        )

    def _delete_offsets(self, request: msg.OffsetDeleteRequest, now: int) -> msg.OffsetDeleteResponse:
        group = self._groups.get(request.group_id)
        if group is None:
            return msg.OffsetDeleteResponse(ErrorCode.GROUP_ID_NOT_FOUND)
        if group.state is not State.EMPTY and group.protocol_type != CONSUMER:
            return msg.OffsetDeleteResponse(ErrorCode.NON_EMPTY_GROUP)
        results = []
        for partition in request.partitions:
            subscribed = group.is_subscribed_to(partition[0])
            if not subscribed:
                self._offsets.delete(request.group_id, partition)
            results.append((partition, ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC if subscribed else ErrorCode.NONE))
        if self._version.offset_delete_can_delete_group:
            self._delete_group_without_offsets(group, now)
        return msg.OffsetDeleteResponse(partitions=tuple(results))

    def _expire_offsets(self, now: int) -> None:
        """Delete expired offsets, and Empty groups without offsets."""
        for group in list(self._groups.values()):
            self._offsets.delete_expired(group, self._settings.offsets_retention_ms, now)
            self._delete_group_without_offsets(group, now)
        self._start_offsets_timer(now)

    def _delete_group_without_offsets(self, group: ClassicGroup, now: int) -> None:
        if group.state is State.EMPTY and not self._offsets.has_any(group.group_id):
            self._delete_group(group, now)

    def _start_offsets_timer(self, now: int) -> None:
        interval = self._settings.offsets_retention_check_interval_ms
        self._timers.start((_Timer.OFFSETS, "", ""), now + interval)

    # --- Groups

    def _describe(self, request: msg.DescribeGroupsRequest) -> msg.DescribeGroupsResponse:
        group = self._groups.get(request.group_id)
        if group is None:
            return msg.DescribeGroupsResponse(State.DEAD.value)
        protocol = group.protocol_name if group.state is State.STABLE else None
        return msg.DescribeGroupsResponse(
            group.state.value, group.protocol_type or "", protocol or "", group.described_members()
        )

    def _delete(self, request: msg.DeleteGroupsRequest, now: int) -> ErrorCode:
        group = self._groups.get(request.group_id)
        if group is None:
            return ErrorCode.GROUP_ID_NOT_FOUND
        if group.state is not State.EMPTY:
            return ErrorCode.NON_EMPTY_GROUP
        self._offsets.delete_all(group.group_id)
        self._delete_group(group, now)
        return ErrorCode.NONE

    def _delete_group(self, group: ClassicGroup, now: int) -> None:
        group.transition_to(State.DEAD, now)
        del self._groups[group.group_id]
        self._log.pop(GroupMetadataKey(group.group_id), None)

    # --- Timers

    def _handle_expired_timers(self, now: int) -> None:
        while (ended := self._timers.pop(now)) is not None:
            (kind, group_id, member_id), deadline = ended
            if kind is _Timer.OFFSETS:
                self._expire_offsets(deadline)
            elif (group := self._groups.get(group_id)) is None:
                continue  # the group was deleted
            elif kind is _Timer.SESSION:
                self._expire_session(group, member_id, deadline)
            elif kind is _Timer.SYNC:
                self._remove_members_without_sync(group, deadline)
            elif group.in_initial_delay:
                self._end_initial_delay(group, deadline)
            else:
                self._complete_join_phase(group, deadline)

    def _expire_session(self, group: ClassicGroup, member_id: str, now: int) -> None:
        member = group.members.get(member_id)
        if member_id not in group.pending_joins and (member is None or member.session_is_suspended):
            return
        if member is not None:
            self._answer_join(member, msg.JoinGroupResponse(ErrorCode.UNKNOWN_MEMBER_ID))
        group.remove(member_id)
        if member is not None and group.state is not State.PREPARING_REBALANCE:
            self._prepare_rebalance(group, now)
        elif group.in_initial_delay and self._version.expiry_ends_initial_delay and group.all_have_joined:
            self._complete_join_phase(group, now)
        else:
            self._complete_join_phase_if_all_joined(group, now)

    def _remove_members_without_sync(self, group: ClassicGroup, now: int) -> None:
        """Remove the members that have not sent SyncGroup in time, and rebalance."""
        present = [member.member_id for member in group.ordered() if member.member_id in group.pending_syncs]
        replaced = sorted(group.pending_syncs.difference(present))  # static members' former ids
        for member_id in present + replaced:
            self._remove(group, member_id)
        self._prepare_rebalance(group, now)

    def _start_session(self, group: ClassicGroup, member_id: str, timeout_ms: int, now: int) -> None:
        self._timers.start((_Timer.SESSION, group.group_id, member_id), now + timeout_ms)

    def _renew_session(self, group: ClassicGroup, member: Member, now: int) -> None:
        self._start_session(group, member.member_id, member.session_timeout_ms, now)

    # --- The log

    def _write(self, group: ClassicGroup) -> None:
        self._log[GroupMetadataKey(group.group_id)] = group.as_record()

    def _load(self, now: int) -> None:
        for key, record in self._log.items():
            if isinstance(key, OffsetCommitKey) and isinstance(record, OffsetCommitRecord):
                self._offsets.load(key, record)
                # Commits from outside a group need no group's record.
                self._groups.setdefault(key.group_id, ClassicGroup(key.group_id, self._version, now))
            elif isinstance(key, GroupMetadataKey) and isinstance(record, GroupMetadataRecord):
                group = ClassicGroup.from_record(key.group_id, self._version, record)
                self._groups[key.group_id] = group
                for member in group.ordered():
                    self._renew_session(group, member, now)
        for group in list(self._groups.values()):
            if len(group.members) > self._settings.max_size:
                self._prepare_rebalance(group, now)  # the setting was lowered

    # --- Replies

    def _reply(self, correlation_id: int, response: Response) -> None:
        self._replies.append(Reply(correlation_id, response))

    def _take_replies(self) -> list[Reply]:
        replies, self._replies = self._replies, []
        return replies

    def _answer_join(self, member: Member, response: msg.JoinGroupResponse) -> None:
        """Answer the member's parked JoinGroup, if there is one."""
        if member.join is not None:
            self._reply(member.join, response)
            member.join = None

    def _answer_sync(
        self, member: Member, response: msg.SyncGroupResponse, group: ClassicGroup | None = None, now: int = 0
    ) -> None:
        """Answer the member's parked SyncGroup, if there is one; with a group, its session starts again."""
        if member.sync is not None:
            self._reply(member.sync, response)
            member.sync = None
            if group is not None:
                self._renew_session(group, member, now)


def _update_member(member: Member, request: msg.JoinGroupRequest, correlation_id: int) -> None:
    """Take over a JoinGroup's protocols and timeouts, and park it in place of an earlier one."""
    member.protocols = request.protocols
    member.rebalance_timeout_ms = request.rebalance_timeout_ms
    member.session_timeout_ms = request.session_timeout_ms
    member.join = correlation_id


def failed(request: Request, error: ErrorCode) -> Response:
    """Return the response that has this error for the whole request."""
    if isinstance(request, msg.JoinGroupRequest):
        return msg.JoinGroupResponse(error, member_id=request.member_id)
    if isinstance(request, msg.OffsetCommitRequest):
        return msg.OffsetCommitResponse(tuple((partition, error) for partition, _ in request.offsets))
    if isinstance(request, msg.DescribeGroupsRequest):
        return msg.DescribeGroupsResponse(error=error)
    return _FAILED[type(request)](error)


_FAILED: dict[type, Callable[[ErrorCode], Response]] = {
    msg.SyncGroupRequest: msg.SyncGroupResponse,
    msg.HeartbeatRequest: msg.HeartbeatResponse,
    msg.LeaveGroupRequest: msg.LeaveGroupResponse,
    msg.OffsetFetchRequest: msg.OffsetFetchResponse,
    msg.OffsetDeleteRequest: msg.OffsetDeleteResponse,
    msg.DeleteGroupsRequest: msg.DeleteGroupsResponse,
}
