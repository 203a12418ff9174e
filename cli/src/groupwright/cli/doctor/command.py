"""The options of `groupwright doctor`, and its checks in order."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any

import typer

from groupwright.cli._command_line.connection import BootstrapServers, ConfigFile, Timeout, read_settings
from groupwright.cli._command_line.exit import CommandError, ExitStatus, errors_reported
from groupwright.cli._command_line.output import Output, OutputFormat, plural
from groupwright.core.assignor_traits import ASSIGNORS

if TYPE_CHECKING:
    from groupwright.cli._cluster.client import Cluster
    from groupwright.cli.doctor.report import Check
    from groupwright.instrumentation.advice import Finding
    from groupwright.instrumentation.advice.configuration import Measured

_SUBJECTS = ("broker", "group", "offsets topic")
_JAVA_ASSIGNORS = {traits.java_class: name for name, traits in ASSIGNORS.items() if traits.java_class}
"""Names of Kafka's assignors by Java's classes."""


def doctor(
    settings: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="KEY=VALUE",
            help="Settings, which override the file's. An assignor of your own is MODULE:CLASS.",
        ),
    ] = None,
    *,
    bootstrap_servers: BootstrapServers = None,
    config: ConfigFile = None,
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
    timeout: Timeout = 10.0,
    output: Output = OutputFormat.TABLE,
) -> None:
    """Find causes of rebalances in a consumer's setup, each with evidence, consequence and remedy.

    Validates every setting, as the consumer does when it is created, and applies rules to the configuration;
    with bootstrap.servers also to the broker's limits; and with group.id also to the group and to the offsets
    topic. The end of the report lists what was checked, and what was not. Changes nothing and joins no group.

    Examples:
    - groupwright doctor --config consumer.properties
    - groupwright doctor --offline session.timeout.ms=6000 partition.assignment.strategy=range
    - groupwright doctor --bootstrap-servers localhost:9092 group.id=billing --output json

    The exit status is 1 if there are warnings. It is 3 if no broker responds, 5 if the credentials do not
    allow it, 4 if the group does not exist, and 7 if something else could not be checked.
    """
    with errors_reported("doctor"):
        given = read_settings(config) if config is not None else {}
        if bootstrap_servers:
            given["bootstrap.servers"] = bootstrap_servers
        given |= dict(_setting(number, text) for number, text in enumerate(settings or (), start=1))
        if not given:
            raise CommandError(
                "no settings are given: pass KEY=VALUE, or a file with --config", ExitStatus.USAGE
            )
        status = _examine(
            _with_assignors(given),
            longest_processing,
            restarts_often=restarts_often,
            offline=offline,
            timeout=timeout,
            output=output,
        )
    raise typer.Exit(status)


def _setting(number: int, text: str) -> tuple[str, str]:
    key, separator, value = text.partition("=")
    if not separator or not key.strip():
        # The argument is not shown: it may be a password.
        raise CommandError(
            f"setting {number} is not of the form KEY=VALUE, such as session.timeout.ms=45000",
            ExitStatus.USAGE,
        )
    return key.strip(), value.strip()


def _with_assignors(given: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the settings with assignors as consumers take them: Java's by name, one's own as objects."""
    from groupwright.assignors import AssignorError
    from groupwright.cli._command_line.assignors import load_assignor
    from groupwright.core.configuration import STRATEGY, strategy_names

    if not isinstance(given.get(STRATEGY), str):
        return given
    names = [_JAVA_ASSIGNORS.get(name, name) for name in strategy_names(given[STRATEGY])]
    if not any(":" in name for name in names):
        return {**given, STRATEGY: ",".join(names)}
    try:
        return {**given, STRATEGY: [load_assignor(name) if ":" in name else name for name in names]}
    except AssignorError as error:
        raise CommandError(str(error), ExitStatus.USAGE) from None


def _examine(
    given: Mapping[str, Any],
    longest_processing: float | None,
    *,
    restarts_often: bool,
    offline: bool,
    timeout: float,
    output: OutputFormat,
) -> ExitStatus:
    from groupwright.cli.doctor.report import Check, exit_status, print_report
    from groupwright.cli.doctor.validation import on_settings
    from groupwright.instrumentation.advice import on_configuration
    from groupwright.instrumentation.advice.configuration import RULES, Measured

    measured = Measured(longest_processing, restarts_often)
    detail = f"{plural(len(given), 'setting')} validated, {plural(len(RULES), 'rule')}"
    checks = [Check("configuration", detail)]
    of_cluster: list[Finding] = []
    if offline or not given.get("bootstrap.servers"):
        reason = "--offline is set" if offline else "bootstrap.servers is not set"
        checks += [Check(subject, reason, is_done=False) for subject in _SUBJECTS]
    else:
        measured, of_cluster, more = _examine_cluster(given, measured, timeout)
        checks += more
    findings = [*on_settings(given), *on_configuration(given, measured), *of_cluster]
    print_report(findings, checks, output)
    return exit_status(findings, checks)


def _examine_cluster(
    given: Mapping[str, Any], measured: "Measured", timeout: float
) -> "tuple[Measured, list[Finding], list[Check]]":
    from groupwright.cli._cluster.client import Cluster
    from groupwright.cli.doctor.report import Check

    try:
        with Cluster(given, timeout=timeout) as cluster:
            brokers = cluster.brokers()
            return _Examination(given, measured, cluster).run(min(brokers))
    except CommandError as error:
        # Settings of the connection that are wrong are findings of the validation.
        failure = ExitStatus.INCOMPLETE if error.status is ExitStatus.USAGE else error.status
        others = [Check(subject, "the cluster was not asked", is_done=False) for subject in _SUBJECTS[1:]]
        return measured, [], [Check(_SUBJECTS[0], str(error), is_done=False, failure=failure), *others]


class _Examination:
    """The checks of a cluster that responds. A check that fails does not prevent the others."""

    def __init__(self, given: Mapping[str, Any], measured: "Measured", cluster: "Cluster") -> None:
        self._given = given
        self._measured = measured
        self._cluster = cluster
        self._broker_settings: dict[str, str] = {}
        self._findings: list[Finding] = []
        self._checks: list[Check] = []

    def run(self, broker: int) -> "tuple[Measured, list[Finding], list[Check]]":
        """Check the limits of a broker, the group, and the offsets topic."""
        self._check("broker", lambda: self._check_broker(broker))
        group = str(self._given.get("group.id") or "")
        if group:
            self._check("group", lambda: self._check_group(group))
            self._check("offsets topic", lambda: self._check_offsets_topic(group))
        else:
            for subject in _SUBJECTS[1:]:
                self._add_check(subject, "group.id is not set", is_done=False)
        return self._measured, self._findings, self._checks

    def _check(self, subject: str, check: Callable[[], str]) -> None:
        try:
            self._add_check(subject, check())
        except CommandError as error:
            self._add_check(subject, str(error), is_done=False, failure=error.status)

    def _add_check(
        self, subject: str, detail: str, *, is_done: bool = True, failure: ExitStatus | None = None
    ) -> None:
        from groupwright.cli.doctor.report import Check

        self._checks.append(Check(subject, detail, is_done, failure))

    def _check_broker(self, broker: int) -> str:
        from groupwright.cli.doctor.facts import broker_limits
        from groupwright.instrumentation.advice import on_broker

        try:
            self._broker_settings = self._cluster.broker_settings(broker)
        except CommandError as error:
            if error.status is ExitStatus.FORBIDDEN:  # usual for an application's credentials
                raise CommandError(str(error), ExitStatus.INCOMPLETE) from None
            raise
        limits = broker_limits(self._broker_settings)
        self._measured = replace(self._measured, limits=limits)
        self._findings += on_broker(self._given, limits)
        return f"limits of sessions and groups, of broker {broker}"

    def _check_group(self, group: str) -> str:
        from groupwright.cli.doctor.facts import find_consumer_group, group_facts
        from groupwright.instrumentation.advice import on_group

        facts = group_facts(find_consumer_group(self._cluster, group))
        self._findings += on_group(self._given, facts, self._measured.limits)
        return f"{group!r}, {facts.state} with {plural(len(facts.members), 'member')}"

    def _check_offsets_topic(self, group: str) -> str:
        from groupwright.cli.doctor.facts import offsets_topic
        from groupwright.instrumentation.advice import on_offsets_topic

        if not self._broker_settings:
            raise CommandError("the broker's settings are not known", ExitStatus.INCOMPLETE)
        topic = offsets_topic(self._cluster, self._broker_settings)
        self._findings += on_offsets_topic(group, topic)
        return f"the group's place in its {topic.partitions} partitions"
