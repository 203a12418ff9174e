"""Diagnostics: error messages that say why a member cannot be in its group, and what to change."""

from __future__ import annotations

import re
import time
from collections.abc import Iterable
from types import TracebackType

from confluent_kafka import KafkaError

from groupwright.consumer._coordinator.inbox import Failed, Reported
from groupwright.consumer._network.connections import Network
from groupwright.consumer._protocol.actions import ReportError
from groupwright.consumer._protocol.model import DisconnectedError
from groupwright.consumer.errors import AssignorFailedError
from groupwright.core import ErrorCode

_TIMEOUT = 5.0  # seconds for the group to become stable, so that its assignor is known
_RETRY_INTERVAL = 0.2  # seconds between two DescribeGroups
_STABLE = "Stable"
_DEAD = "Dead"

_HINTS = {
    ErrorCode.UNSUPPORTED_VERSION: (
        "the coordinator is too old for this member. It must be Kafka 0.11 or later, and 2.3 or later for a "
        "static member: upgrade the broker, or leave group.instance.id out"
    ),
    ErrorCode.GROUP_AUTHORIZATION_FAILED: (
        "this client may not take part. Allow it the operation READ on the group {group!r}"
    ),
    ErrorCode.INVALID_SESSION_TIMEOUT: (
        "set session.timeout.ms to a value from the broker's group.min.session.timeout.ms to its "
        "group.max.session.timeout.ms"
    ),
    ErrorCode.GROUP_MAX_SIZE_REACHED: (
        "the group {group!r} has as many members as the broker's group.max.size allows. Start fewer members, "
        "or raise the limit"
    ),
}
"""By error code, of whichever request, the cause and what to change."""
_TOPIC_NAME = re.compile(r"(?!\.{1,2}$)[a-zA-Z0-9._-]{1,249}")
_FENCED = "another consumer has joined with this consumer's group.instance.id; give every consumer its own"


async def explain(refusal: ReportError, protocols: Iterable[str], network: Network) -> Failed | Reported:
    """Return the event for an error, with a message that says what to change. It may send DescribeGroups.

    Returns:
        `Failed` for an assignor's failure, for which librdkafka has no error code; otherwise `Reported`,
        whose message begins with librdkafka's text.
    """
    error, detail = refusal.error, refusal.detail
    if error == ErrorCode.NONE:
        failure = AssignorFailedError(KafkaError._APPLICATION, detail)  # noqa: SLF001 - public
        return Failed(failure, refusal.timeline)
    words = f"{detail}: {KafkaError(error).str()}"
    code = error
    match error:
        case ErrorCode.FENCED_INSTANCE_ID:
            # The member never joins again: librdkafka reports this as its fatal error.
            code = KafkaError._FATAL  # noqa: SLF001 - librdkafka's public code
            words = f"Fatal error: {KafkaError(error).str()}: {_FENCED}"
        case KafkaError.SASL_AUTHENTICATION_FAILED:
            code = KafkaError._AUTHENTICATION  # noqa: SLF001 - the code with which librdkafka calls error_cb
            words = detail
        case ErrorCode.INCONSISTENT_GROUP_PROTOCOL:
            words = f"{words}: {await _compare_protocols(protocols, network)}"
        case _:
            hint = next((hint for known, hint in _HINTS.items() if known == error), None)
            words = words if hint is None else f"{words}: {hint.format(group=network.group_id)}"
    return Reported(KafkaError(code, words), refusal.timeline, refusal.repeated)


def application_traceback(error: Exception) -> TracebackType | None:
    """Return the traceback of an error from the application's own code on, or all of it if there is none."""
    found = error.__traceback__
    while found is not None:
        if str(found.tb_frame.f_globals.get("__name__")).partition(".")[0] != "groupwright":
            return found
        found = found.tb_next
    return error.__traceback__


def explain_topic(topic: str, error: int) -> KafkaError:
    """Return the error of a subscribed topic or regular expression: librdkafka's text, and what to do."""
    if error == ErrorCode.TOPIC_AUTHORIZATION_FAILED:
        hint = "allow this client the operations DESCRIBE and READ on it"
    elif topic.startswith("^"):
        hint = "no topic that this client may see matches this regular expression so far"
    elif _TOPIC_NAME.fullmatch(topic):
        hint = "it does not exist; it is consumed once it does"
    else:
        hint = (
            "no topic can have this name: 1 to 249 letters, digits, dots, underscores and hyphens are allowed"
        )
    words = f"Subscribed topic not available: {topic}: {KafkaError(error).str()}: {hint}"
    return KafkaError(error, words)


async def _compare_protocols(protocols: Iterable[str], network: Network) -> str:
    """Return why the member has no protocol in common with the group, and what to change."""
    mine = ", ".join(map(repr, protocols))
    message = f"this member supports {mine}"
    deadline = time.monotonic() + _TIMEOUT
    while time.monotonic() < deadline:
        try:
            group = await network.describe_group()
        except DisconnectedError:
            break
        # A group that rejects members but has no description as a classic group is of another type.
        if group.state == _DEAD:
            return (
                f"the group id {network.group_id!r} belongs to a group of another type, such as a share or "
                "streams group. Choose another group.id"
            )
        # The coordinator returns the assignor of a stable group only.
        if group.state == _STABLE and group.protocol:
            others = ", ".join(sorted(set(group.client_ids.values())))
            return (
                f"{message}, while the group's members ({others}) have agreed on {group.protocol!r}. Add "
                f"{group.protocol!r} to this consumer's partition.assignment.strategy, or one of "
                f"{mine} to theirs"
            )
        await network.sleep(_RETRY_INTERVAL)
    return f"{message}, and the group's other members have none of these in common"
