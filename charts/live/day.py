"""A day of operations, on a real broker and a real Prometheus: which alerts of the chart fire, and when.

``python -m charts.live.day --minutes 10`` plays it. An event begins once the alerts of the one before it have
ended, and not before its time of day, so that the day lasts longer on a slow machine, and is otherwise the
same.
"""

import argparse
import re
import shutil
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple

import confluent_kafka
import yaml
from confluent_kafka import OFFSET_END, Consumer, Producer, TopicPartition
from rich.console import Console
from rich.table import Table

from charts.dashboards.limits import alerts
from charts.live.prometheus import INTERVAL_SECONDS, Prometheus
from charts.live.scene import BROKER, GROUPS, GroupPlan, Scene
from charts.tools.rendering import render
from groupwright import consumer
from groupwright.cli.exporter.state import Options
from groupwright.testing import LocalKafka
from groupwright.testing.groups import LoadedGroupError
from integration_tests.harness.patience import PATIENCE
from integration_tests.harness.waiting import holds_within

SPEED = 30
"""The rules' times are those of the chart, divided by this: 15 minutes last half a minute."""
SLOWER: dict[str, dict[str, Any]] = {"clusterLag": {"for": "20m"}, "clusterGroupStuck": {"for": "10m"}}
"""Times, also divided, that leave groups as long to catch up as this machine may need."""
UNSCALED: dict[str, dict[str, Any]] = {
    # They measure this machine, which is no faster than on other days.
    "slowRebalance": {"seconds": 300},
    "rebalanceStuck": {"window": "300s"},
    "exporterSlow": {"seconds": 30},
    "exporterFailing": {"seconds": 30},
    # How far back they look for what was there, whatever the length of the day.
    "instrumentationSilent": {"window": "6h"},
    "exporterAbsent": {"window": "6h", "for": "20s"},
}
_STUCK_SECONDS = 900.0
"""Divided, too: more than `max.poll.interval.ms` then, until which a member that hangs is not removed."""
_MEMBERS = {
    "session.timeout.ms": 15_000,
    "heartbeat.interval.ms": 300,
    "max.poll.interval.ms": 20_000,
}
_LEDGER = {"ledger": 3}
_BILLING = GROUPS["billing"]
PLANS = {
    "billing": replace(_BILLING, config={**_BILLING.config, "load.check.interval.ms": 10_000}),
    "mail": GROUPS["mail"],
    "audit": GroupPlan(consumer.Consumer, _LEDGER, {}, (0.05,)),
    "archive": GroupPlan(confluent_kafka.Consumer, _LEDGER, {}, (0.05,)),
}
"""Two busy groups, and two that read what is seldom written, of Groupwright's and of plain consumers."""

# --- The programme ----------------------------------------------------------------------------------


class Alert(NamedTuple):
    """An alert that fires: its name without "Groupwright", and its group, if it has one."""

    name: str
    group: str = ""

    def __str__(self) -> str:
        """Return both, as tables show them."""
        return f"{self.name} ({self.group})" if self.group else self.name


@dataclass(frozen=True, slots=True)
class Event:
    """An event of the day.

    Attributes:
        time: When it begins, at the earliest.
        name: What happens.
        act: Brings it about and ends it, and waits for alerts in between.
        alerts: The alerts that fire before the next event begins, by name, with their groups.
        until: When they have ended.
    """

    time: str
    name: str
    act: Callable[["Play"], None]
    alerts: dict[str, tuple[str, ...]] = field(default_factory=dict)
    until: str = ""

    @property
    def expected(self) -> frozenset[Alert]:
        """The alerts, each with one group."""
        return frozenset(Alert(name, group) for name, groups in self.alerts.items() for group in groups)


_BUSY, _SELDOM, _NO_GROUP = ("billing", "mail"), ("audit", "archive"), ("",)
_OURS = ("billing", "audit")
"""The groups of Groupwright's members: the others' do not tell that they find no coordinator."""


def _work(play: "Play") -> None:
    play.produce("ledger", 100)
    play.wait_until_consumed()
    play.wait_for_a_window()


def _deploy(play: "Play") -> None:
    play.scene.replace(*_BUSY)


def _storm(play: "Play") -> None:
    play.wait_for("RebalanceStorm", meanwhile=lambda: play.scene.flap(0, _BUSY))


def _hang(play: "Play") -> None:
    hanging = [play.scene.members(group)[0] for group in _BUSY]
    for member in hanging:
        member.pause_polling()
    play.wait_for("MaxPollNearlyExceeded", "MaxPollExceeded")
    for member in hanging:
        member.resume_polling()


def _process_without_committing(play: "Play") -> None:
    play.scene.commit("billing", enabled=False)
    play.wait_for("ClusterGroupStuck", "ClusterLag")
    play.scene.commit("billing", enabled=True)


def _leave_a_transaction_open(play: "Play") -> None:
    servers = {"bootstrap.servers": play.scene.kafka.bootstrap_servers}
    config = {**servers, "transactional.id": "invoicing", "transaction.timeout.ms": 900_000}
    invoicing = Consumer({**servers, "group.id": "invoicing"})
    producer = Producer(config)
    producer.init_transactions(PATIENCE)
    producer.begin_transaction()
    producer.produce("orders", b"1")
    producer.flush(PATIENCE)
    offsets = [TopicPartition("orders", 0, 1)]
    producer.send_offsets_to_transaction(offsets, invoicing.consumer_group_metadata(), PATIENCE)
    play.wait_for("ClusterGroupStuck", "OffsetsTopicHeld")
    Producer(config).init_transactions(PATIENCE)  # as the application does when it is started again
    invoicing.close()


def _delete_unread(play: "Play") -> None:
    for group in _SELDOM:
        for member in play.scene.members(group):
            play.scene.leave(group, member.name)
    play.produce("ledger", 100)
    play.wait_for("ClusterLag")
    for number in range(_LEDGER["ledger"]):
        play.scene.kafka.delete_records("ledger", OFFSET_END, number)
    play.wait_for("ClusterUnreadDeleted")
    for group in _SELDOM:
        play.scene.join(group, f"{group}-2")
    play.scene.settle()
    play.produce("ledger", 100)


def _create_topic_again(play: "Play") -> None:
    kafka = play.scene.kafka
    kafka.admin().delete_topics(["ledger"])["ledger"].result(PATIENCE)
    kafka.create_topic("ledger", _LEDGER["ledger"])
    play.scene.settle()
    # Their commits come later: librdkafka commits no offset that is below the last one, of the deleted topic.
    members = [member for group in _SELDOM for member in play.scene.members(group)]
    before = [len(member.consumed) for member in members]
    play.produce("ledger", 30)
    play.wait_until(
        lambda: [len(member.consumed) - 30 for member in members] == before, "the new topic is consumed"
    )


def _restart_exporter(play: "Play") -> None:
    play.scene.stop_exporter()
    play.scene.start_exporter()
    play.wait_for_refreshes()


def _lose_exporter(play: "Play") -> None:
    play.scene.stop_exporter()
    play.wait_for("ExporterAbsent")
    play.scene.start_exporter()
    play.wait_for_refreshes()


def _crash_broker(play: "Play") -> None:
    play.scene.kafka.kill()
    play.wait_for("ExporterFailing")
    play.scene.kafka.start()
    play.scene.settle()
    play.wait_for_refreshes()


DAY = (
    Event("06:00", "Four groups work", _work),
    Event("07:00", "A deployment of three members each replaces one after the other, in two groups", _deploy),
    Event(
        "08:00",
        "A fourth member comes and goes, again and again",
        _storm,
        {"RebalanceStorm": _BUSY},
        "15 minutes after its last start",
    ),
    Event(
        "10:00",
        "A member hangs in each of two groups, for longer than `max.poll.interval.ms`",
        _hang,
        {"MaxPollNearlyExceeded": _BUSY, "MaxPollExceeded": _BUSY, "PartitionsLost": _BUSY},
        "15 minutes after the members poll again",
    ),
    Event(
        "12:00",
        "A group processes messages and commits nothing",
        _process_without_committing,
        {"ClusterGroupStuck": ("billing",), "ClusterLag": ("billing",)},
        "it commits",
    ),
    Event(
        "14:00",
        "An application stops with its transaction open, which has messages in a topic that two groups read",
        _leave_a_transaction_open,
        {"ClusterGroupStuck": _BUSY, "OffsetsTopicHeld": _NO_GROUP},
        "it is started again, which aborts the transaction",
    ),
    Event(
        "16:00",
        "Two groups are stopped, and retention deletes what they have not read",
        _delete_unread,
        {"ClusterLag": _SELDOM, "ClusterUnreadDeleted": _SELDOM},
        "the first, when the messages are deleted; the second, when their members are back and commit",
    ),
    Event("18:00", "A topic is deleted and created again, while two groups consume it", _create_topic_again),
    Event("19:00", "The exporter restarts", _restart_exporter),
    Event("20:00", "The exporter is away", _lose_exporter, {"ExporterAbsent": _NO_GROUP}, "it is back"),
    Event(
        "22:00",
        "The broker crashes, and is away for longer than `session.timeout.ms`",
        _crash_broker,
        {"ExporterFailing": _NO_GROUP, "CoordinatorErrors": _OURS, "PartitionsLost": tuple(PLANS)},
        "15 minutes after it is back",
    ),
    Event("23:00", "Four groups work", _work),
)
"""The programme, in its order. Alerts that are not listed do not fire."""


def minutes_of(time_of_day: str) -> int:
    """Return the minutes from midnight to a time of day."""
    hours, minutes = time_of_day.split(":")
    return int(hours) * 60 + int(minutes)


def rules(speed: float = SPEED) -> dict[str, Any]:
    """Return the chart's own rules, whose times are divided by `speed`, as a PrometheusRule's ``spec`` is."""
    faster = {
        name: {
            **{key: _faster(key, value, speed) for key, value in {**rule, **SLOWER.get(name, {})}.items()},
            **UNSCALED.get(name, {}),
        }
        for name, rule in alerts()["rules"].items()
    }
    (rule,) = render(yaml.safe_dump({"alerts": {"rules": faster}}), template="prometheusrule.yaml")
    spec: dict[str, Any] = rule["spec"]
    return spec


_UNITS = {"s": 1, "m": 60, "h": 3600}


def _faster(key: str, value: Any, speed: float) -> Any:
    if key.lower().endswith("seconds"):
        return value / speed
    if key in {"for", "keepFiringFor", "window"} and (found := re.fullmatch(r"(\d+)([smh])", value)):
        return f"{round(int(found[1]) * _UNITS[found[2]] * 1000 / speed)}ms"
    return value


# --- The player -------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Result:
    """Outcome of an event.

    Attributes:
        event: The event.
        seconds: Its duration.
        fired: The alerts that fired in it.
        failure: What it waited for in vain; empty if nothing.
    """

    event: Event
    seconds: float
    fired: frozenset[Alert]
    failure: str = ""

    @property
    def differences(self) -> list[str]:
        """Differences from the programme."""
        missing = sorted(self.event.expected - self.fired)
        unexpected = sorted(self.fired - self.event.expected)
        return [
            *(f"{alert} did not fire" for alert in missing),
            *(f"{alert} fired" for alert in unexpected),
            *([self.failure] if self.failure else []),
        ]


class Play:
    """A day on a scene, which a Prometheus watches."""

    def __init__(self, scene: Scene, prometheus: Prometheus, speed: float) -> None:
        """Prepare; nothing happens yet."""
        self.scene = scene
        self._prometheus = prometheus
        self._speed = speed
        self._event = DAY[0]
        self._began = time.time()
        self._pause = threading.Event()

    def play(self, events: Sequence[Event], minutes: float = 0) -> Iterator[Result]:
        """Play events, and yield the result of each.

        Args:
            events: The events, in their order.
            minutes: The shortest duration of the day, from the first event's time to midnight.
        """
        opening, dawn = minutes_of(events[0].time), time.time()
        pace = minutes * 60 / (minutes_of("24:00") - opening)
        for event, following in zip(events, [*events[1:], None], strict=True):
            self._event, self._began, failure = event, time.time(), ""
            try:
                event.act(self)
                self.wait_for(*event.alerts)
                self.wait_until_quiet()
            except (TimeoutError, LoadedGroupError) as error:
                failure = str(error)
            ends = minutes_of(following.time if following else "24:00")
            self._pause.wait(max(0.0, dawn + (ends - opening) * pace - time.time()))
            yield Result(event, time.time() - self._began, frozenset(self._fired()), failure)

    # --- What acts wait for

    def wait_for(self, *names: str, meanwhile: Callable[[], None] = lambda: None) -> None:
        """Wait until alerts of the event have fired for all of its groups, and do something meanwhile.

        Raises:
            TimeoutError: They have not fired in time.
        """
        wanted = {each for each in self._event.expected if each.name in names}

        def fired() -> bool:
            meanwhile()
            return wanted <= self._fired()

        self.wait_until(fired, f"{', '.join(map(str, sorted(wanted)))} fire")

    def wait_until_quiet(self) -> None:
        """Wait until no alert fires, and none is about to, as far as the rules know what is now.

        Raises:
            TimeoutError: An alert goes on.
        """
        self.wait_for_refreshes()
        scraped = time.time()

        def is_quiet() -> bool:
            # Rules of one group may use those of another, which are evaluated later.
            evaluated = self._prometheus.evaluated() > scraped + 2 * INTERVAL_SECONDS
            return evaluated and not self._prometheus.query("ALERTS")

        self.wait_until(is_quiet, "all alerts end")

    def wait_for_a_window(self) -> None:
        """Wait until Prometheus has known all groups for as long as most rules look back.

        Raises:
            TimeoutError: It does not in time.
        """
        known = f"group:groupwright_members:count offset {_faster('window', '15m', self._speed)}"
        self.wait_until(
            lambda: len(self._prometheus.query(known)) == len(PLANS), "a quarter of an hour passes"
        )

    def wait_for_refreshes(self) -> None:
        """Wait until the exporter has refreshed its values since now, and Prometheus has them.

        Raises:
            TimeoutError: It does not in time.
        """
        refreshed = f"groupwright_exporter_last_refresh_timestamp_seconds > {time.time()}"
        self.wait_until(lambda: bool(self._prometheus.query(refreshed)), "the exporter refreshes its values")

    def wait_until_consumed(self) -> None:
        """Wait until two groups have consumed the ledger, as the exporter shows it.

        Raises:
            TimeoutError: They do not in time.
        """
        query = 'sum({}{{topic="ledger"}})'.format
        committed, end = (
            query("groupwright_cluster_committed_offsets"),
            query("groupwright_cluster_topic_end_offsets"),
        )
        consumed = f"{committed} == {len(_SELDOM)} * {end}"
        self.wait_for_refreshes()
        self.wait_until(lambda: bool(self._prometheus.query(consumed)), "the ledger is consumed")

    def wait_until(self, condition: Callable[[], bool], what: str) -> None:
        """Wait until a condition holds.

        Raises:
            TimeoutError: It does not in time.
        """
        if not holds_within(condition, PATIENCE, pause=0.2):
            raise TimeoutError(f"{what}: not within {PATIENCE:.0f} s")

    def produce(self, topic: str, messages: int) -> None:
        """Produce messages to a topic, which exists."""
        producer = Producer({"bootstrap.servers": self.scene.kafka.bootstrap_servers})
        for number in range(messages):
            producer.produce(topic, str(number), partition=number % self.scene.partitions(topic))
        producer.flush(PATIENCE)

    def _fired(self) -> set[Alert]:
        """Return the alerts that have fired since the event began."""
        return {
            Alert(each.labels["alertname"].removeprefix("Groupwright"), each.labels.get("group", ""))
            for each in self._prometheus.evaluations(time.time() - self._began)
        }


def play(
    program: str, folder: Path, events: Sequence[Event], minutes: float = 0, speed: float = SPEED
) -> Iterator[Result]:
    """Play events on a broker and a Prometheus of their own, and yield the result of each.

    Args:
        program: Prometheus' own.
        folder: An empty directory, for Prometheus.
        events: The events, in their order.
        minutes: The shortest duration of the day.
        speed: As in `rules`.
    """
    options = Options(stuck_seconds=_STUCK_SECONDS / speed)
    with (
        LocalKafka(config=BROKER) as kafka,
        Scene(kafka, PLANS, config=_MEMBERS, options=options, pipeline=False) as scene,
        Prometheus(program, folder, scene.targets, rules(speed)) as prometheus,
    ):
        yield from Play(scene, prometheus, speed).play(events, minutes)


def table(events: Collection[Event] = DAY) -> str:
    """Return the programme as a table in Markdown."""
    rows = []
    for event in events:
        names = [
            f"{name} ({', '.join(groups)})" if any(groups) else name for name, groups in event.alerts.items()
        ]
        rows.append(f"| {event.time} | {event.name} | {', '.join(names) or 'none'} | {event.until} |")
    return "\n".join(["| time | event | alerts that fire | until |", "|---|---|---|---|", *rows])


def main() -> int:
    """Play the day; return exit status 1 if the alerts differ from the programme's."""
    parser = argparse.ArgumentParser(prog="python -m charts.live.day", description=__doc__)
    parser.add_argument("--minutes", type=float, default=10.0, help="shortest duration (default: 10)")
    parser.add_argument("--table", action="store_true", help="print the programme in Markdown, and end")
    options = parser.parse_args()
    if options.table:
        sys.stdout.write(f"{table()}\n")
        return 0
    program = shutil.which("prometheus")
    if program is None:
        parser.error("prometheus is not installed (Debian's package prometheus)")
    console = Console(highlight=False)
    shown = Table("time", "event", "alerts that fired", "differences")
    has_differences = False
    with tempfile.TemporaryDirectory(prefix="groupwright-day-") as folder:
        for result in play(program, Path(folder), DAY, options.minutes):
            event, fired = result.event, ", ".join(map(str, sorted(result.fired)))
            console.print(f"{event.time} {event.name}: {fired or 'no alerts'}, {result.seconds:.0f} s")
            shown.add_row(event.time, event.name, fired, "\n".join(result.differences))
            has_differences = has_differences or bool(result.differences)
    console.print(shown)
    return 1 if has_differences else 0


if __name__ == "__main__":
    sys.exit(main())
