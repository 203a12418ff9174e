"""A simulated member's part as the leader: it assigns partitions, and watches the group's topics."""

from collections.abc import Callable

from groupwright.assignors import (
    Assignor,
    CooperativeStickyAssignor,
    JoinedMember,
    RebalanceProtocol,
    assign_members,
    decode_members,
    encode_assignments,
    subscribed_topics,
    withhold_claimed,
)
from groupwright.testing._simulation import messages as msg
from groupwright.testing._simulation.broker_messages import MetadataResponse
from groupwright.testing._simulation.model_client import ModelClient
from groupwright.testing._simulation.model_settings import MemberSettings
from groupwright.testing._simulation.scheduler import Process


class ModelLeader:
    """Assigns partitions when the member leads, and refreshes the metadata of the topics that it watches."""

    def __init__(
        self,
        process: Process,
        client: ModelClient,
        settings: MemberSettings,
        *,
        on_change: Callable[[], object],
    ) -> None:
        """Create the leader of a member that does not lead.

        Args:
            process: The member's process.
            client: The member's connections.
            settings: The member's settings.
            on_change: Called when the watched topics have changed.
        """
        self._process = process
        self._client = client
        self._settings = settings
        self._on_change = on_change
        watches = settings.behaviour.every_eager_member_watches_topics and not settings.is_cooperative
        self._own_topics = frozenset(settings.topics if watches else ())
        self._watched = self._own_topics
        """Topics whose change makes the member rejoin: all of the group's if it leads."""
        self._known: dict[str, int] | None = None
        """Numbers of partitions of the watched topics, once they are known."""
        self._is_stopped = False
        process.call_in(settings.metadata_max_age, self._refresh)

    def perform_assignment(
        self,
        assignor: Assignor,
        joined: msg.JoinGroupResponse,
        is_wanted: Callable[[], bool],
        done: Callable[[dict[str, bytes]], object],
    ) -> None:
        """Fetch the metadata of the group's topics, and assign their partitions.

        Args:
            assignor: The assignor that the coordinator chose.
            joined: JoinGroup's response.
            is_wanted: Whether the assignment is still wanted.
            done: Receives the assignments by member id; none if the coordinator wants none (KIP-814).
        """
        members, undecodable = decode_members(
            [JoinedMember(each.member_id, each.group_instance_id, each.metadata) for each in joined.members],
            assignor,
        )
        topics = subscribed_topics(members)

        def fetched(metadata: MetadataResponse | None) -> None:
            if not is_wanted():
                return
            if metadata is None:
                self._process.call_in(self._settings.retry_backoff, fetch)
                return
            self._watched, self._known = topics, dict(metadata.topics)
            if joined.skip_assignment:
                done({})
                return
            is_cooperative = self._settings.is_cooperative
            withholds = is_cooperative and RebalanceProtocol.COOPERATIVE not in assignor.protocols
            # The assignment of Kafka's assignor is not checked: it weighs claims by their generations.
            checks = is_cooperative and not withholds and not isinstance(assignor, CooperativeStickyAssignor)
            group, assignment = assign_members(assignor, members, metadata.topics, cooperative=checks)
            shares = withhold_claimed(group, assignment) if withholds else assignment
            done(encode_assignments(shares, others=undecodable))

        def fetch() -> None:
            if is_wanted():
                self._client.fetch_metadata(topics, fetched)

        fetch()

    def follow(self) -> None:
        """Watch only what a member watches that does not lead."""
        known, self._watched = self._known, self._own_topics
        if known is not None:
            self._known = {topic: count for topic, count in known.items() if topic in self._own_topics}

    def stop(self) -> None:
        """Watch no topics any more."""
        self._is_stopped = True

    def _refresh(self) -> None:
        if self._is_stopped:
            return
        self._process.call_in(self._settings.metadata_max_age, self._refresh)
        watched, known = self._watched, self._known

        def fetched(metadata: MetadataResponse | None) -> None:
            is_current = watched is self._watched and known is self._known and not self._is_stopped
            if metadata is None or not is_current:
                return
            self._known = dict(metadata.topics)
            if known is not None and self._known != known:
                self._on_change()

        if watched:
            self._client.fetch_metadata(watched, fetched)
