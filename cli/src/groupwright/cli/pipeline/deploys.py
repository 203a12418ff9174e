"""Simulated deploys and crashes of a group in the tables, with its present settings and with others."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - as Spark's own documentation has it
from rich.table import Table
from rich.text import Text

from groupwright.assignors import InvalidInputError
from groupwright.cli._command_line.exit import CommandError, ExitStatus
from groupwright.cli._command_line.output import console
from groupwright.core.assignor_traits import ASSIGNORS
from groupwright.pipeline.report import DeployCost, DeployStudy
from groupwright.testing.simulation import (
    Behaviour,
    Crash,
    RollingRestart,
    Scenario,
    Settings,
    Study,
    study,
)

_SEEDS = range(3)
_MESSAGES_PER_SECOND = 100.0
"""Messages per second of a group, at most; a partition gets at most one per second."""
_SESSION_TIMEOUTS_MS = (10_000, 45_000)
"""Defaults of Kafka's clients before 3.0, and since then."""


@dataclass(frozen=True, slots=True)
class PresentGroup:
    """A group in its last generation with members.

    Attributes:
        group: The group.
        pods: Number of members; each is a pod of its own.
        topics: Number of partitions by topic, as far as they are assigned.
        settings: Its settings, as far as the tables have them.
    """

    group: str
    pods: int
    topics: Mapping[str, int]
    settings: Settings


def simulated_deploys(tables: Mapping[str, DataFrame], group: str, client: str = "librdkafka") -> DeployStudy:
    """Simulate deploys and crashes of a group.

    Args:
        tables: Tables by name.
        group: The group.
        client: The consumers' client library, `librdkafka` or `java`.

    Raises:
        InvalidInputError: The tables have no members of the group, or its assignor cannot be simulated.
        SimulationError: The simulated group does not become stable.
    """
    return simulate_group(present_group(tables, group, Behaviour[client.upper()]))


def simulate_group(present: PresentGroup) -> DeployStudy:
    """Simulate each scenario with each of the settings."""
    at_once = max(1, present.pods // 10)
    scenarios: dict[str, Scenario] = {"a rolling restart": RollingRestart(at_once)}
    if present.pods > 1:
        scenarios["a crash of one pod"] = Crash()
    costs = [
        _cost(
            name, settings, study(scenario, changed, pods=present.pods, topics=present.topics, seeds=_SEEDS)
        )
        for name, scenario in scenarios.items()
        for settings, changed in _variants(present.settings)
    ]
    return DeployStudy(present.group, tuple(_assumptions(present, at_once)), costs)


def present_group(tables: Mapping[str, DataFrame], group: str, client: Behaviour) -> PresentGroup:
    """Return the group as in its last generation with members.

    Raises:
        InvalidInputError: The tables have no members of the group, or its assignor cannot be simulated.
    """
    members = tables["group_members"].where(F.col("group_id") == group)
    last = members.agg(F.max(F.struct("log_time", "generation")).alias("last")).collect()[0]["last"]
    if last is None:
        raise CommandError(
            f"the tables have no members of group {group!r}: check its name, or simulate a classic group",
            ExitStatus.NOT_FOUND,
        )
    generation = members.where(
        (F.col("generation") == last["generation"]) & (F.col("log_time") == F.lit(last["log_time"]))
    )
    rows = generation.select(
        "assigned", "instance_id", "session_timeout_ms", "rebalance_timeout_ms"
    ).collect()
    topics: dict[str, int] = {}
    for row in rows:
        for each in row["assigned"] or ():
            topics[each["topic"]] = max(topics.get(each["topic"], 0), 1 + max(each["partitions"], default=-1))
    topics = {name: partitions for name, partitions in topics.items() if partitions}
    if not topics:
        raise InvalidInputError(f"group {group!r} has no assigned partitions in its last generation")
    generations = tables["group_generations"].where(
        (F.col("group_id") == group) & (F.col("generation") == last["generation"])
    )
    protocol = generations.agg(F.max_by("protocol", "log_time").alias("name")).collect()[0]["name"]
    known = {name for name, traits in ASSIGNORS.items() if not traits.needs_weights}
    if protocol not in known:
        raise InvalidInputError(
            f"the assignor of group {group!r} is {protocol!r}, which cannot be simulated; those that can: "
            f"{', '.join(sorted(known))}"
        )
    session = (
        max((row["session_timeout_ms"] or 0 for row in rows), default=0) or Settings().session_timeout_ms
    )
    max_poll = max((row["rebalance_timeout_ms"] or 0 for row in rows), default=0)
    settings = Settings(
        assignor=protocol,
        client=client,
        static_membership=all(row["instance_id"] for row in rows),
        session_timeout_ms=session,
        heartbeat_interval_ms=min(Settings().heartbeat_interval_ms, session // 3),
        max_poll_interval_ms=max(max_poll or Settings().max_poll_interval_ms, session),
        min_session_timeout_ms=min(Settings().min_session_timeout_ms, session),
        messages_per_second=min(1.0, _MESSAGES_PER_SECOND / sum(topics.values())),
    )
    return PresentGroup(group, len(rows), topics, settings)


def _variants(present: Settings) -> Iterator[tuple[str | None, Settings]]:
    """Yield settings with their names, the present ones, which have none, first."""
    yield None, present
    if present.assignor != "cooperative-sticky":
        yield "cooperative-sticky", replace(present, assignor="cooperative-sticky")
    if not present.static_membership:
        yield "static membership", replace(present, static_membership=True)
        if present.assignor != "cooperative-sticky":
            yield (
                "static membership and cooperative-sticky",
                replace(present, static_membership=True, assignor="cooperative-sticky"),
            )
    for timeout in _SESSION_TIMEOUTS_MS:
        if timeout != present.session_timeout_ms:
            yield (
                f"session.timeout.ms={timeout}",
                replace(
                    present,
                    session_timeout_ms=timeout,
                    max_poll_interval_ms=max(present.max_poll_interval_ms, timeout),
                ),
            )


def _cost(scenario: str, settings: str | None, results: Study) -> DeployCost:
    return DeployCost(
        scenario,
        settings or "as now",
        settings is None,
        results.range(lambda result: result.rebalances),
        results.range(lambda result: result.total_pause),
        results.range(lambda result: result.longest_pause),
        results.range(lambda result: result.delivered_twice),
    )


def _assumptions(present: PresentGroup, at_once: int) -> Iterator[str]:
    settings = present.settings
    partitions = sum(present.topics.values())
    membership = "static" if settings.static_membership else "dynamic"
    yield (
        f"As now: {present.pods} members, one for each pod; {partitions} partitions; {settings.assignor}; "
        f"{membership} membership; session.timeout.ms={settings.session_timeout_ms}; "
        f"max.poll.interval.ms={settings.max_poll_interval_ms}."
    )
    yield (
        f"Consumers behave as {'Java' if settings.client is Behaviour.JAVA else 'librdkafka'}'s. All "
        "subscribe to all topics, with Groupwright's version of the assignor. Kafka is "
        f"{settings.kafka_version.value}, with its default settings."
    )
    yield (
        f"A rolling restart replaces {at_once} pod{'' if at_once == 1 else 's'} at a time; a pod takes "
        f"{settings.stop_seconds:.0f} s to stop and {settings.start_seconds:.0f} s to start, with up to a "
        f"fifth more or less, and the next one restarts {settings.ready_seconds:.0f} s later."
    )
    yield (
        f"Each partition gets {settings.messages_per_second:.2g} messages per second: messages delivered "
        "twice grow with the real rate."
    )
    yield f"Every scenario is simulated with {len(_SEEDS)} seeds, which determine all delays."


def print_deploys(tables: Mapping[str, DataFrame], group: str, client: str) -> None:
    """Print the cost of each scenario with each of the settings.

    Raises:
        GroupwrightError: The group cannot be simulated.
    """
    terminal = console()
    with terminal.status("simulating"):
        found = simulated_deploys(tables, group, client)
    shown = Table(
        title=Text(f"Deploys of {group}, simulated"), title_justify="left", box=None, pad_edge=False
    )
    for name in ("change", "settings"):
        shown.add_column(name)
    for name in ("rebalances", "partition-seconds", "longest pause", "delivered twice"):
        shown.add_column(name, justify="right")
    for cost in found.costs:
        shown.add_row(
            cost.scenario,
            cost.settings,
            _span(cost.rebalances),
            _span(cost.partition_seconds),
            f"{_span(cost.longest_pause)} s",
            _span(cost.delivered_twice),
        )
    terminal.print(shown)
    terminal.print("\nassumptions:")
    for assumption in found.assumptions:
        terminal.print(f"- {assumption}", soft_wrap=True)


def _span(values: tuple[float, float]) -> str:
    low, high = (f"{value:,.0f}" for value in values)
    return low if low == high else f"{low} to {high}"
