"""One run of the demo, from Kafka's start to the summary."""

import tempfile
import uuid
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from groupwright.cli.demo import member
from groupwright.cli.demo.cluster import Cluster, local_kafka
from groupwright.cli.demo.errors import DemoError
from groupwright.cli.demo.events import Events
from groupwright.cli.demo.feed import Feed
from groupwright.cli.demo.group import Group
from groupwright.cli.demo.interrupts import InterruptedDemo, Interrupts
from groupwright.cli.demo.script import acts
from groupwright.cli.demo.stage import Stage
from groupwright.cli.demo.summary import Summary
from groupwright.cli.demo.view import View

PARTITIONS = 12


@dataclass(frozen=True, slots=True)
class Options:
    """What the user chooses."""

    assignor: str
    bootstrap_servers: str | None
    """None for a local broker."""
    messages_per_second: int
    keep: bool
    """Whether to go on after the story until the user wants an end."""
    pause: float
    """Seconds after each act."""


def run(options: Options, view: View, interrupts: Interrupts) -> Summary:
    """Run the demo; nothing of it is left afterwards, however it ends.

    Raises:
        GroupwrightError: It cannot start, or cannot go on.
        InterruptedDemo: The user wants an end.
    """
    name = f"groupwright-demo-{uuid.uuid4().hex[:8]}"
    with ExitStack() as cleanup:
        try:
            cluster = _cluster(options, view, interrupts, cleanup)
            cluster.create_topic(name, PARTITIONS)
            if options.bootstrap_servers is not None:
                cleanup.callback(_delete, cluster, name, view)
            view.tell(f"Kafka is at {cluster.bootstrap_servers}, and the topic is {name}")
            stage = _stage(options, name, cluster, view, interrupts, cleanup)
            stage.play(options.pause)
            if options.keep:
                stage.play_on()
            return stage.finish()
        except InterruptedDemo:
            view.prepare("stopping: the members leave, then Kafka stops (again to kill them)")
            raise


def _cluster(options: Options, view: View, interrupts: Interrupts, cleanup: ExitStack) -> Cluster:
    servers = options.bootstrap_servers
    with interrupts.at_once():
        if servers is None:
            view.prepare("starting Kafka")
            servers = cleanup.enter_context(
                local_kafka(lambda file: view.prepare("downloading Kafka, the first time only", file))
            )
        else:
            view.prepare(f"connecting to Kafka at {servers}")
        cluster = Cluster(servers)
        cluster.require()
    return cluster


def _stage(
    options: Options, name: str, cluster: Cluster, view: View, interrupts: Interrupts, cleanup: ExitStack
) -> Stage:
    events = Events()
    servers = cluster.bootstrap_servers
    logs = cleanup.enter_context(tempfile.TemporaryDirectory(prefix="groupwright-demo-"))
    group = Group(
        lambda member_name: member.command(
            name=member_name, bootstrap_servers=servers, topic=name, group=name, assignor=options.assignor
        ),
        logs=Path(logs),
        events=events,
        hurry=lambda: interrupts.pending,
    )
    feed = Feed(servers, name, partitions=PARTITIONS, per_second=options.messages_per_second, events=events)
    return Stage(
        title=f"Groupwright demo: {options.assignor}, {PARTITIONS} partitions, {options.messages_per_second:,} messages/s",
        kafka=servers,
        topic=name,
        group_id=name,
        partitions=PARTITIONS,
        acts=acts(member.SESSION_SECONDS),
        cluster=cluster,
        group=cleanup.enter_context(group),
        feed=cleanup.enter_context(feed),
        events=events,
        view=view,
        interrupts=interrupts,
    )


def _delete(cluster: Cluster, name: str, view: View) -> None:
    view.prepare(f"deleting the topic {name}")
    cluster.delete_group(name)
    try:
        cluster.delete_topic(name)
    except DemoError as error:
        view.warn(str(error))
