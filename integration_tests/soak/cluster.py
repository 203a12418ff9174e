"""Faults of three brokers, for groups of Groupwright's and of confluent-kafka's members at the same time.

The groups have the same topic, the same brokers and the same coordinator.
"""

import argparse
import contextlib
import itertools
import random
import statistics
import sys
import threading
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any

import confluent_kafka
from confluent_kafka import KafkaException, TopicPartition
from rich.console import Console
from rich.table import Table

from groupwright.consumer import Consumer
from groupwright.core import TopicPartitionKey
from groupwright.core.offsets_topic import partition_for
from groupwright.testing import Listener, Security
from groupwright.testing._kafka.proxy import LinkFaults
from groupwright.testing.errors import LoadedGroupError
from groupwright.testing.groups import (
    ANY_END,
    Event,
    Load,
    LoadedGroup,
    Member,
    Produced,
    Rebalanced,
    now,
)
from integration_tests.harness.local_cluster import LocalCluster
from integration_tests.harness.waiting import holds_within
from integration_tests.soak import run_directory
from integration_tests.soak.waits import longest_between, waits

OURS, ORIGINAL = "Groupwright", "confluent-kafka"
CLIENTS: dict[str, Callable[[dict[str, Any]], Any]] = {OURS: Consumer, ORIGINAL: confluent_kafka.Consumer}
MOST_TIMES_LONGER = 1.2
"""The limit of our longest wait, as a multiple of the original's after the same faults."""
_NOISE_SECONDS = 0.5
"""The polls' and the reports' intervals, and the scheduler's: shorter differences mean nothing."""

_TOPIC = "orders"
_PARTITIONS = 6
_MEMBERS = 2
"""Members of each group."""
_RATE = 60
"""Messages a second."""
_OFFSETS_PARTITIONS = 6
_SESSION_MS = 10_000
_HEARTBEAT_MS = 1000
_BROKERS: dict[str, str | int | bool] = {
    "offsets.topic.num.partitions": _OFFSETS_PARTITIONS,
    "min.insync.replicas": 2,
    "group.consumer.session.timeout.ms": _SESSION_MS,
    "group.consumer.heartbeat.interval.ms": _HEARTBEAT_MS,
    "group.consumer.min.session.timeout.ms": _SESSION_MS,
    "group.consumer.min.heartbeat.interval.ms": _HEARTBEAT_MS,
}
_CLASSIC = {"session.timeout.ms": _SESSION_MS, "heartbeat.interval.ms": _HEARTBEAT_MS}
_FAULT_SECONDS = (3.0, 15.0)
_DELAY_SECONDS = (0.1, 1.0)
"""Delays, in each direction."""
_CALM_SECONDS = 3.0
_RECOVERY_SECONDS = 150.0
"""The longest time in which a group must go on after a fault."""
_STEP_SECONDS = 0.1
_SHOWN = 10
"""Violations of a group that are printed."""


class Kind(StrEnum):
    """A fault of a broker; the value is its name in the report."""

    KILL = "kill"
    """SIGKILL; the broker starts again later, at its address."""
    MOVE = "move"
    """The broker starts again at another address."""
    CUT = "cut"
    """Connections with clients are reset, and new ones too."""
    PARTITION = "partition"
    """No bytes pass between clients and the broker; connections stay open."""
    ONE_WAY = "partition of responses"
    """Requests arrive, and their responses do not."""
    DELAY = "delay"
    RESTART = "rolling restart"
    """All brokers, one after the other; the target is the first."""


class Target(StrEnum):
    """The broker that has the fault."""

    COORDINATOR = "coordinator"
    BOOTSTRAP = "bootstrap broker"


@dataclass(frozen=True, slots=True)
class Flavor:
    """A kind of member."""

    name: str
    config: Mapping[str, Any]
    static: bool = False
    secured: bool = False
    """True if its members connect with SASL and TLS."""


KIP_848 = "KIP-848"
FLAVORS = (
    Flavor("cooperative-sticky", {**_CLASSIC, "partition.assignment.strategy": "cooperative-sticky"}),
    Flavor("range", {**_CLASSIC, "partition.assignment.strategy": "range"}, secured=True),
    Flavor(
        "static",
        {**_CLASSIC, "partition.assignment.strategy": "cooperative-sticky"},
        static=True,
        secured=True,
    ),
    Flavor(KIP_848, {"group.protocol": "consumer"}),
)
_BY_NAME = {flavor.name: flavor for flavor in FLAVORS}
SECURITY = ("both", "plain", "sasl_ssl")


@dataclass(frozen=True, slots=True)
class Fault:
    """A fault of the schedule."""

    kind: Kind
    target: Target
    seconds: float
    delay: float
    restarts_members: bool
    """True if a member of each group that is not static is replaced meanwhile: the groups rebalance."""


def faults(seed: int) -> Iterator[Fault]:
    """Yield faults without end: each kind with each target, in another order each time."""
    dice = random.Random(seed)  # noqa: S311 - repeatable faults, no secret
    while True:
        every = list(itertools.product(Kind, Target))
        dice.shuffle(every)
        for kind, target in every:
            yield Fault(
                kind,
                target,
                dice.uniform(*_FAULT_SECONDS),
                dice.uniform(*_DELAY_SECONDS),
                dice.random() < 0.5,
            )


@dataclass(slots=True)
class Result:
    """Result of a run."""

    injected: list[tuple[float, Fault]] = field(default_factory=list)
    """The faults, with the times at which they began."""
    longest: dict[tuple[str, str], list[float]] = field(default_factory=dict)
    """The longest wait after each fault in seconds, by client and flavor."""
    violations: dict[str, list[str]] = field(default_factory=lambda: {client: [] for client in CLIENTS})
    messages: int = 0
    rebalances: int = 0
    """Generations of our groups."""

    def of(self, client: str, kind: Kind, flavor: Flavor | None = None) -> list[float]:
        """Return the longest wait after each fault of a kind, by default over all flavors."""
        columns = [
            found
            for (name, which), found in self.longest.items()
            if name == client and (flavor is None or flavor.name == which)
        ]
        rows = zip(*columns, strict=True)
        return [max(row) for row, (_, fault) in zip(rows, self.injected, strict=True) if fault.kind is kind]

    def slower(self) -> list[str]:
        """Return the kinds of faults after which ours waited longer than the limit."""
        return [
            kind.value
            for kind in Kind
            if (ours := self.of(OURS, kind)) and is_longer(max(ours), max(self.of(ORIGINAL, kind)))
        ]


def is_longer(ours: float, original: float) -> bool:
    """Return whether our longest wait is beyond the limit."""
    return ours > MOST_TIMES_LONGER * original and ours - original > _NOISE_SECONDS


class Groups:
    """A group of each client and flavor on the same coordinator, and the producer of their messages."""

    def __init__(self, cluster: LocalCluster, security: str, directory: Path) -> None:
        """Start the producer and the members."""
        self._cluster = cluster
        self.bootstrap = 1
        """The only broker in the members' `bootstrap.servers`."""
        slot = next(
            number for number in range(_OFFSETS_PARTITIONS) if _leader(cluster, number) not in {1, None}
        )
        self._secured = {
            flavor.name: flavor.secured if security == "both" else security == "sasl_ssl"
            for flavor in FLAVORS
        }
        self.groups: dict[tuple[str, str], LoadedGroup] = {}
        self._replaced: list[tuple[LoadedGroup, Flavor, Member]] = []
        self._numbers = itertools.count(1)
        self._stack = ExitStack()
        try:
            for client, flavor in itertools.product(CLIENTS, FLAVORS):
                group = LoadedGroup(
                    cluster.bootstrap_servers,
                    {_TOPIC: _PARTITIONS},
                    CLIENTS[client],
                    group_id=_group_in(slot, f"{client}-{flavor.name}"),
                    config={"auto.commit.interval.ms": 1000, "log_level": 0, **flavor.config},
                    processes=True,
                    batch=100,
                    messages_per_second=0,
                    directory=directory,
                    patience=_RECOVERY_SECONDS,
                )
                self.groups[client, flavor.name] = self._stack.enter_context(group)
            self._ledgers = [group.ledger for group in self.groups.values()]
            self._load = self._stack.enter_context(
                Load(self._partitions, _RATE, {"message.timeout.ms": 60_000}, self._record, self._producer)
            )
            for _ in range(_MEMBERS):
                for (_, name), group in self.groups.items():
                    self._start(group, _BY_NAME[name])
        except BaseException:
            self._stack.close()
            raise

    def coordinator(self) -> int:
        """Return the broker that coordinates all groups."""
        return self._cluster.coordinator_of(next(iter(self.groups.values())).group_id)

    def replace_members(self) -> None:
        """Let a member of each group that is not static leave; `look` starts its successor."""
        for (_, name), group in self.groups.items():
            flavor = _BY_NAME[name]
            if not flavor.static and (present := [m for m in group.members if not m.was_asked_to_leave]):
                present[0].request_leave()
                self._replaced.append((group, flavor, present[0]))

    def look(self) -> None:
        """Read the members' histories, and start the successors of members that have left."""
        for group in self.groups.values():
            group.ledger.owners()  # which reads them
        for each in [each for each in self._replaced if each[2].has_ended]:
            self._replaced.remove(each)
            group, flavor, member = each
            group.members.remove(member)
            self._start(group, flavor)

    def are_complete(self) -> bool:
        """Return whether all members that have left have successors."""
        self.look()
        return not self._replaced

    def wait_until_progress(self) -> Iterator[tuple[str, str]]:
        """Wait until each group consumes and commits new messages; yield each client and its failure."""
        for (client, name), group in self.groups.items():
            try:
                group.wait_until_progress()
            except LoadedGroupError as error:
                yield client, f"{name}: {error}"
                self._restart(group, name)

    def _restart(self, group: LoadedGroup, name: str) -> None:
        """Kill a group's members and start others, as an operator would, or it would stop for good."""
        for member in [each for each in group.members if not each.was_asked_to_leave]:
            if not member.has_ended:
                group.kill(member)
            else:
                group.members.remove(member)
            self._start(group, _BY_NAME[name])

    def finish(self, result: Result) -> None:
        """Let the groups consume everything and leave; add what they have shown to the result."""
        self._load.stop()
        holds_within(lambda: self._load.ended, _RECOVERY_SECONDS)
        self._load.raise_for_error()
        for which, group in self.groups.items():
            client, name = which
            in_time = holds_within(lambda: not group.ledger.unconsumed_count, _RECOVERY_SECONDS)  # noqa: B023 - called at once
            found = []
            try:
                group.leave(*group.members)
            except LoadedGroupError as error:
                found.append(str(error))
            report = group.ledger.check(ANY_END, waited=None if in_time else _RECOVERY_SECONDS)
            found += _some(report.violations)
            found += [
                f"a poll of {member} failed: {error}"
                for member in group.ledger.histories
                for error in group.ledger.errors(member)
            ]
            if name == KIP_848 and not (report.lost or report.unconsumed):
                # With both clients the membership is librdkafka's, which learns of its removal afterwards.
                client = ORIGINAL
            result.violations[client] += (f"{group.group_id}: {each}" for each in found)
            result.messages = report.produced
            result.rebalances += _rebalances(group.ledger.histories)
            delivered = waits(group.ledger.histories, group.ledger.produced)
            begins = [time for time, _ in result.injected]
            result.longest[which] = longest_between(delivered, begins)

    def close(self) -> None:
        """End the producer and all members."""
        self._stack.close()

    def _start(self, group: LoadedGroup, flavor: Flavor) -> None:
        name = f"{group.group_id}-{next(self._numbers)}"
        config = {"group.instance.id": name} if flavor.static else {}
        if self._secured[flavor.name]:
            config |= self._cluster.secure_config(Listener.SASL_SSL, mechanism="SCRAM-SHA-256")
            config["bootstrap.servers"] = self._cluster.address(self.bootstrap, Listener.SASL_SSL)
        else:
            config["bootstrap.servers"] = self._cluster.link(self.bootstrap).address
        group.start_member(name, config)

    @staticmethod
    def _partitions() -> Sequence[TopicPartitionKey]:
        return [(_TOPIC, number) for number in range(_PARTITIONS)]

    def _producer(self, config: dict[str, Any]) -> confluent_kafka.Producer:
        return confluent_kafka.Producer({**config, "bootstrap.servers": self._cluster.bootstrap_servers})

    def _record(self, event: Produced) -> None:
        for ledger in self._ledgers:
            ledger.record_produced(event)


def _some(violations: Sequence[str]) -> list[str]:
    more = len(violations) - _SHOWN
    return [*violations[:_SHOWN], *([f"and {more} more"] if more > 0 else [])]


def _rebalances(histories: Mapping[str, Sequence[Event]]) -> int:
    """Return the number of generations that members have reported; 0 for consumers that report none."""
    events = itertools.chain.from_iterable(histories.values())
    return len({event.generation for event in events if isinstance(event, Rebalanced)})


def _leader(cluster: LocalCluster, offsets_partition: int) -> int | None:
    with contextlib.suppress(Exception):
        return cluster.coordinator_of(_group_in(offsets_partition, "probe"))
    return None


def _group_in(offsets_partition: int, name: str) -> str:
    """Return the id of a group that a partition of `__consumer_offsets` has."""
    ids = (f"{name}-{uuid.uuid4().hex[:6]}" for _ in itertools.count())
    return next(each for each in ids if partition_for(each, _OFFSETS_PARTITIONS) == offsets_partition)


def run(seconds: float, seed: int, security: str, directory: Path, say: Callable[[str], None]) -> Result:
    """Inject faults for a time; every process has ended when it returns."""
    result = Result()
    with LocalCluster(security=Security(), config=_BROKERS) as cluster:
        cluster.create_topic(_TOPIC, _PARTITIONS)
        _create_offsets_topic(cluster)
        groups = Groups(cluster, security, directory)
        try:
            _go_on(groups, result)
            ends = now() + seconds
            for fault in faults(seed):
                if now() > ends:
                    break
                threading.Event().wait(_CALM_SECONDS)
                say(f"{len(result.injected) + 1}: {fault.kind} of the {fault.target}, {fault.seconds:.0f} s")
                result.injected.append((now(), fault))
                _inject(cluster, groups, fault)
                cluster.heal()
                _go_on(groups, result)
            groups.finish(result)
        finally:
            groups.close()
    return result


def _go_on(groups: Groups, result: Result) -> None:
    if not holds_within(groups.are_complete, _RECOVERY_SECONDS, _STEP_SECONDS):
        raise LoadedGroupError("members that were asked to leave have not ended")
    for client, failure in groups.wait_until_progress():
        result.violations[client].append(failure)


def _inject(cluster: LocalCluster, groups: Groups, fault: Fault) -> None:
    node = groups.bootstrap if fault.target is Target.BOOTSTRAP else groups.coordinator()
    ends = now() + fault.seconds
    if fault.kind is Kind.KILL:
        cluster.kill(node)
    for link in cluster.links(node):
        link.set_faults(_link_faults(fault))
    if fault.restarts_members:
        groups.replace_members()
    if fault.kind is Kind.MOVE:
        cluster.move(node)
    elif fault.kind is Kind.RESTART:
        for each in sorted(cluster.nodes, key=lambda each: each != node):
            cluster.stop(each)
            cluster.heal()
    else:
        while now() < ends:
            groups.look()
            threading.Event().wait(_STEP_SECONDS)


def _link_faults(fault: Fault) -> LinkFaults:
    return LinkFaults(
        cut=fault.kind is Kind.CUT,
        silent=fault.kind is Kind.PARTITION,
        responses_silent=fault.kind is Kind.ONE_WAY,
        delay=fault.delay if fault.kind is Kind.DELAY else 0.0,
    )


def _create_offsets_topic(cluster: LocalCluster) -> None:
    config = {"bootstrap.servers": cluster.bootstrap_servers, "group.id": "probe", "log_level": 0}
    with contextlib.closing(confluent_kafka.Consumer(config)) as probe:

        def is_coordinated() -> bool:
            with contextlib.suppress(KafkaException):
                probe.committed([TopicPartition(_TOPIC, 0)], timeout=5)
                return True
            return False

        assert holds_within(is_coordinated, _RECOVERY_SECONDS)
    cluster.wait_until_ready()


def table(result: Result, title: str) -> Table:
    """Return the longest waits by fault and flavor; in parentheses the median of the faults."""
    shown = Table(title=title)
    for column in ("fault", "members", "times", OURS, ORIGINAL, "ratio"):
        shown.add_column(column, justify="left" if column in {"fault", "members"} else "right")
    for kind in Kind:
        for flavor in (None, *FLAVORS):
            ours, original = (result.of(client, kind, flavor) for client in (OURS, ORIGINAL))
            if not ours:
                continue
            ratio = max(ours) / max(*original, 0.001)
            mark = " !" if flavor is None and is_longer(max(ours), max(original)) else ""
            shown.add_row(
                kind.value if flavor is None else "",
                "all" if flavor is None else flavor.name,
                str(len(ours)) if flavor is None else "",
                *(f"{max(each):.2f} s ({statistics.median(each):.2f})" for each in (ours, original)),
                f"{ratio:.2f}{mark}",
                end_section=flavor is FLAVORS[-1],
            )
    return shown


def _show_each(result: Result, console: Console) -> None:
    for number, (time, fault) in enumerate(result.injected):
        waited = ", ".join(
            f"{flavor.name} "
            + " / ".join(f"{result.longest[client, flavor.name][number]:.2f}" for client in CLIENTS)
            for flavor in FLAVORS
        )
        console.print(
            f"{time:.1f} {fault.kind} of the {fault.target}: {waited}", highlight=False, soft_wrap=True
        )


def main() -> int:
    """Run; return exit status 1 if ours has violated a guarantee or waited longer than the limit."""
    options = _options().parse_args()
    seed = random.SystemRandom().randrange(1_000_000) if options.seed is None else options.seed
    directory = options.directory or run_directory.create(seed)
    directory.mkdir(parents=True, exist_ok=True)
    console = Console()
    with (directory / run_directory.OUTPUT).open("a", buffering=1, encoding="utf-8") as output:
        outs = (console, Console(file=output, width=160, no_color=True))

        def say(text: str) -> None:
            for out in outs:
                out.print(text, highlight=False, soft_wrap=True)

        say(f"Seed {seed}: {options.minutes:g} min of faults; histories and logs: {directory}")
        result = run(
            options.minutes * 60, seed, options.security, directory, lambda text: say(f"{now():.1f} {text}")
        )
        for out in outs:
            _show_each(result, out)
            out.print(table(result, "Longest time for which messages waited, by fault (median)"))
        say(f"{result.messages} messages, {result.rebalances} rebalances of our groups")
        for client, violations in result.violations.items():
            for each in violations:
                say(f"{client}: {each}")
        for kind in result.slower():
            say(f"{OURS}: after {kind}, messages waited more than {MOST_TIMES_LONGER:g} times as long")
    return 1 if result.violations[OURS] or result.slower() else 0


def _options() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m integration_tests.soak.cluster", description="Faults of three brokers."
    )
    parser.add_argument("--minutes", type=float, default=5.0, help="duration of the faults (default: 5)")
    parser.add_argument("--seed", type=int, help="repeat the faults of an earlier run")
    parser.add_argument(
        "--security", choices=SECURITY, default="both", help="the members' listeners (default: some of each)"
    )
    parser.add_argument("--directory", type=Path, help="for histories and logs (default: build/soak)")
    return parser


if __name__ == "__main__":
    sys.exit(main())
