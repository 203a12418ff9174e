"""The command `groupwright doctor`: checks of a consumer's configuration, broker, group and offsets topic."""

import json
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from groupwright.core.offsets_topic import OFFSETS_TOPIC
from groupwright.instrumentation.advice import (
    BrokerLimits,
    Finding,
    GroupFacts,
    OffsetsTopic,
    Severity,
    on_broker,
    on_configuration,
    on_group,
    on_offsets_topic,
)
from groupwright.instrumentation.advice.configuration import Measured

if TYPE_CHECKING:
    from confluent_kafka.admin import AdminClient

_CONSUMER_PREFIXES = (
    "group.",
    "session.",
    "heartbeat.",
    "max.poll.",
    "partition.",
    "auto.",
    "enable.auto.",
    "isolation.",
)
"""Prefixes of consumer settings, which AdminClient would warn about."""


def doctor(
    settings: Annotated[
        list[str] | None,
        typer.Argument(metavar="[KEY=VALUE]...", help="Settings, which override the file's."),
    ] = None,
    *,
    config: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            exists=True,
            dir_okay=False,
            help="The consumer's settings: .properties, .json or .toml.",
        ),
    ] = None,
    longest_processing: Annotated[
        float | None,
        typer.Option(
            metavar="SECONDS",
            min=0,
            help="Longest measured time between two polls.",
            show_default=False,
        ),
    ] = None,
    restarts_often: Annotated[
        bool, typer.Option("--restarts-often", help="Declare that members are restarted or redeployed often.")
    ] = False,
    offline: Annotated[bool, typer.Option("--offline", help="Do not connect to a broker.")] = False,
    timeout: Annotated[
        float, typer.Option(metavar="SECONDS", min=1, help="Timeout of each request to the broker.")
    ] = 10.0,
    as_json: Annotated[bool, typer.Option("--json", help="Print the findings as JSON.")] = False,
) -> None:
    """Find causes of rebalances in a consumer's setup, each with evidence, consequence and remedy.

    Checks the configuration; with bootstrap.servers also the broker's limits; and with group.id also the
    group's state and the offsets topic. Changes nothing and joins no group.

    The exit status is 1 if there are warnings, and 2 if the configuration cannot be read or the broker cannot
    be reached.
    """
    given = {**(_read(config) if config is not None else {}), **dict(map(_setting, settings or ()))}
    if not given:
        raise typer.BadParameter("no settings are given: pass KEY=VALUE, or a file with --config")
    findings = on_configuration(given, Measured(longest_processing, restarts_often))
    if given.get("bootstrap.servers") and not offline:
        findings += _query_broker(given, timeout)
    _print(findings, as_json=as_json)
    raise typer.Exit(int(any(finding.severity is Severity.WARNING for finding in findings)))


def _setting(text: str) -> tuple[str, str]:
    key, separator, value = text.partition("=")
    if not separator or not key.strip():
        raise typer.BadParameter(
            f"{text!r} is not a setting: write KEY=VALUE, such as session.timeout.ms=45000"
        )
    return key.strip(), value.strip()


def _read(path: Path) -> dict[str, Any]:
    try:
        text = path.read_text(encoding="utf-8")
        match path.suffix:
            case ".json":
                loaded = json.loads(text)
            case ".toml":
                loaded = _flat(tomllib.loads(text))
            case _:
                loaded = dict(
                    _setting(line)
                    for line in map(str.strip, text.splitlines())
                    if line and line[0] not in "#!"
                )
    except (OSError, ValueError) as error:
        raise typer.BadParameter(f"{path} cannot be read: {error}") from None
    if not isinstance(loaded, dict):
        raise typer.BadParameter(f"{path} has no settings: write an object of keys and values")
    return loaded


def _flat(table: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Flatten nested tables to dotted keys, which TOML parses as tables unless they are quoted."""
    flat: dict[str, Any] = {}
    for key, value in table.items():
        flat |= _flat(value, f"{prefix}{key}.") if isinstance(value, dict) else {prefix + key: value}
    return flat


def _query_broker(given: Mapping[str, Any], timeout: float) -> list[Finding]:
    from confluent_kafka import KafkaException  # noqa: PLC0415 - `groupwright --help` needs none of these
    from confluent_kafka.admin import AdminClient  # noqa: PLC0415 - as above

    connection = {key: value for key, value in given.items() if not key.startswith(_CONSUMER_PREFIXES)}
    try:
        admin = AdminClient({**connection, "log_level": 0})
        settings = _broker_settings(admin, timeout)
        limits = _limits(settings)
        findings = on_broker(given, limits)
        if group := str(given.get("group.id") or ""):
            findings += on_group(given, _describe(admin, group, timeout), limits)
            topic = _offsets_topic(admin, settings, timeout)
            findings += on_offsets_topic(group, topic) if topic is not None else []
    except KafkaException as error:
        typer.echo(
            f"groupwright doctor: cannot query the broker at {given['bootstrap.servers']}: {error.args[0]}. "
            "Correct bootstrap.servers and the security settings, or use --offline",
            err=True,
        )
        raise typer.Exit(2) from None
    return findings


def _broker_settings(admin: "AdminClient", timeout: float) -> dict[str, str]:
    from confluent_kafka import admin as api  # noqa: PLC0415 - as above

    broker = min(admin.list_topics(timeout=timeout).brokers)
    resource = api.ConfigResource(api.ResourceType.BROKER, str(broker))  # type: ignore[attr-defined] # its stub omits both
    entries = admin.describe_configs([resource], request_timeout=timeout)[resource].result(timeout + 1)
    return {name: entry.value for name, entry in entries.items()}


def _limits(settings: Mapping[str, str]) -> BrokerLimits:
    return BrokerLimits(
        min_session_timeout=int(settings["group.min.session.timeout.ms"]),
        max_session_timeout=int(settings["group.max.session.timeout.ms"]),
        max_size=int(settings["group.max.size"]),
    )


def _offsets_topic(admin: "AdminClient", settings: Mapping[str, str], timeout: float) -> OffsetsTopic | None:
    """Return the offsets topic, or None if no group has committed yet."""
    found = admin.list_topics(timeout=timeout).topics.get(OFFSETS_TOPIC)
    if found is None:
        return None
    return OffsetsTopic(len(found.partitions), int(settings["offsets.topic.num.partitions"]))


def _describe(admin: "AdminClient", group: str, timeout: float) -> GroupFacts:
    from confluent_kafka import ConsumerGroupType, KafkaError, KafkaException  # noqa: PLC0415 - as above

    try:
        described = admin.describe_consumer_groups([group], request_timeout=timeout)[group].result(
            timeout + 1
        )
    except KafkaException as error:
        if error.args[0].code() == KafkaError.GROUP_ID_NOT_FOUND:
            return GroupFacts("DEAD", "", [])
        raise
    return GroupFacts(
        state=described.state.name,
        assignor=described.partition_assignor,
        members=[(member.client_id, member.group_instance_id) for member in described.members],
        classic=described.type != ConsumerGroupType.CONSUMER,
    )


def _print(findings: list[Finding], *, as_json: bool) -> None:
    if as_json:
        fields = ("rule", "severity", "evidence", "consequence", "change")
        typer.echo(
            json.dumps([{name: str(getattr(each, name)) for name in fields} for each in findings], indent=2)
        )
        return
    for finding in sorted(findings, key=lambda each: each.severity is Severity.NOTE):
        typer.echo(f"{finding.severity}: {finding.rule}")
        typer.echo(f"  evidence     {finding.evidence}")
        typer.echo(f"  consequence  {finding.consequence}")
        typer.echo(f"  change       {finding.change}\n")
    warnings = sum(finding.severity is Severity.WARNING for finding in findings)
    typer.echo(f"{warnings} warnings, {len(findings) - warnings} notes")
