"""Members of other clients in a simulated group: models of Java's consumer and of librdkafka's."""

from collections.abc import Sequence
from typing import Any

from groupwright.assignors import by_name
from groupwright.core import TopicPartitionKey as Key
from groupwright.testing._simulation.cluster import Cluster
from groupwright.testing._simulation.model_member import ModelMember
from groupwright.testing._simulation.model_settings import Behaviour, MemberSettings
from groupwright.testing._simulation.scheduler import MS, SECOND, Process, Scheduler
from integration_tests.simulation.scenario import GROUP, Client, Commits, MemberPlan, Scenario

_BEHAVIOURS = {Client.JAVA: Behaviour.JAVA, Client.LIBRDKAFKA: Behaviour.LIBRDKAFKA}


class ForeignMember:
    """A member with the interface of `RealMember`, as far as the player needs it."""

    consumer = None
    group = GROUP

    def __init__(
        self, plan: MemberPlan, scenario: Scenario, scheduler: Scheduler, cluster: Cluster, observer: Any
    ) -> None:
        """Create the process; `start` starts it."""
        self.plan = plan
        self.name = plan.name
        self.process = Process(plan.name, scheduler)
        self.ended = self.closing = self.commits_late = False
        self._scenario = scenario
        self._cluster = cluster
        self._observer = observer
        self._member: ModelMember | None = None

    @property
    def topics(self) -> list[str]:
        """Its subscription."""
        return list(self.plan.topics)

    @property
    def session_until(self) -> None:
        """Not known: Java's consumer goes on after its session."""

    def start(self) -> None:
        """Start the member."""
        scenario, plan = self._scenario, self.plan
        settings = MemberSettings(
            topics=plan.topics,
            assignors=tuple(map(by_name, plan.strategy)),
            group_instance_id=plan.name if plan.static else None,
            behaviour=_BEHAVIOURS[plan.client],
            session_timeout=scenario.session_timeout,
            heartbeat_interval=scenario.heartbeat_interval,
            max_poll_interval=scenario.max_poll_interval,
            auto_commit_interval=scenario.auto_commit_interval,
            processing=(0, plan.processing + MS),
            metadata_max_age=10 * SECOND,
        )
        self._member = ModelMember(self.process, self._cluster, settings, self)

    def kill(self) -> None:
        """Kill the process; its connections are reset."""
        self.ended = True
        self.process.kill()
        self._cluster.cut(self.process)

    def close(self) -> None:
        """Close the consumer."""
        self.closing = True
        if self._member is not None:
            self._member.close()

    def resume_all(self) -> None:
        """Do nothing: it pauses nothing."""

    def be_busy(self, duration: int) -> None:
        """Process for so long."""
        if self._member is not None:
            self._member.process_for(duration)

    # --- The model's observer

    def joined(self, member: str, generation: int) -> None:
        """See the model's `Observer`."""

    def assigned(self, _member: str, partitions: Sequence[Key], _generation: int) -> None:
        self._observer.assigned(self, list(partitions))

    def revoked(self, _member: str, partitions: Sequence[Key], _generation: int) -> None:
        self._observer.revoked(self, list(partitions), lost=False)

    def lost(self, _member: str, partitions: Sequence[Key], _generation: int) -> None:
        self._observer.revoked(self, list(partitions), lost=True)

    def delivered(self, _member: str, topic_id: int, topic: str, partition: int, offset: int) -> None:
        self._observer.delivered(self, topic_id, (topic, partition), offset)

    def committed(self, member: str, partition: Key, offset: int) -> None:
        """See the model's `Observer`."""

    def closed(self, _member: str) -> None:
        if not self.ended:
            self.ended = True
            self._observer.closed(self, None)

    def failed(self, _member: str, reason: str) -> None:
        self.ended = True
        self._observer.said(self, f"has failed: {reason}")
        self._observer.failed(self)


def commits_of(plan: MemberPlan) -> Commits | None:
    """Return how a member commits, if it is one of ours."""
    return plan.commits if plan.client is Client.GROUPWRIGHT else None
