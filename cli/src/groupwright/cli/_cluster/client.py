"""Client of a cluster: the requests of the commands."""

import time
import uuid
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping
from types import MappingProxyType
from typing import Any, Self

from confluent_kafka import KafkaError

from groupwright.cli._cluster import apis
from groupwright.cli._cluster.description import DESCRIPTIONS, without_missing_partitions
from groupwright.cli._cluster.first_messages import FirstMessages, RecordKey, first_messages
from groupwright.cli._cluster.model import (
    CommittedOffset,
    DescribedGroup,
    GroupType,
    ListedGroup,
    OpenTransaction,
    TopicMetadata,
)
from groupwright.cli._cluster.requests import (
    FORBIDDEN,
    WithGroup,
    describe_share_offsets,
    forbidden,
    list_offsets,
    listed_group,
    offset_commit,
    offset_delete,
    open_transaction,
    topic_metadata,
    words,
)
from groupwright.cli._command_line.exit import CommandError, ExitStatus
from groupwright.consumer import ConfigurationError
from groupwright.consumer.cluster import Broker, ClusterConnection, ClusterConnectionError
from groupwright.core import TopicPartitionKey
from groupwright.core.kafka_apis import METADATA
from groupwright.core.wire_format import Message, Request

EARLIEST, LATEST = -2, -1
"""Timestamps of `Cluster.offsets` for the beginning and the end of a log."""

_RETRIABLE = frozenset(
    {
        KafkaError.COORDINATOR_NOT_AVAILABLE,
        KafkaError.COORDINATOR_LOAD_IN_PROGRESS,
        KafkaError.NOT_COORDINATOR,
    }
)
_BROKER, _GROUP = 4, 32  # ConfigResource.Type
_OPEN = ("Ongoing", "PrepareCommit", "PrepareAbort", "PrepareEpochFence")
_COORDINATOR_ATTEMPTS = 10
_COORDINATOR_BACKOFF = 0.3  # seconds
_GROUPS_A_REQUEST = 200
"""Groups in one request: a response of some megabytes at most."""


class Cluster:
    """Client of a cluster. Use it as a context manager; any thread may use it.

    Methods raise `CommandError`, with a message for the user and the command's exit status.
    """

    def __init__(self, settings: Mapping[str, Any], *, timeout: float = 10.0) -> None:
        """Prepare; nothing is connected before the first request.

        Args:
            settings: A confluent-kafka configuration; see `connection_settings`.
            timeout: Seconds for each request.
        """
        try:
            self._connection = ClusterConnection({"client.id": "groupwright", **settings}, timeout=timeout)
        except ConfigurationError as error:
            raise CommandError(error.message, ExitStatus.USAGE) from None
        self._settings = dict(settings)
        self._address = str(settings["bootstrap.servers"])
        self._brokers: dict[int, Broker] = {}
        self._coordinators: dict[str, int] = {}

    def __enter__(self) -> Self:
        """Return the object itself."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close the connections."""
        self.close()

    def close(self) -> None:
        """Close the connections."""
        self._connection.close()

    # --- Brokers and topics -------------------------------------------------------------------------

    def brokers(self) -> dict[int, Broker]:
        """Return the brokers by their ids."""
        try:
            self._brokers = self._connection.brokers()
        except ClusterConnectionError as error:
            raise self._unreachable(error) from None
        if not self._brokers:  # of a broker that starts, or ends
            raise CommandError("the cluster names no brokers yet", ExitStatus.UNREACHABLE)
        return self._brokers

    def broker_settings(self, broker: int) -> dict[str, str]:
        """Return the settings of a broker, without secrets."""
        return self._describe_configs(_BROKER, str(broker), f"broker {broker}", "the cluster", broker)

    def group_settings(self, group: str) -> dict[str, str]:
        """Return the settings of a group by KIP-848: its own, or else those of all groups."""
        return self._describe_configs(_GROUP, group, f"the group {group!r}", "the group")

    def _describe_configs(
        self, resource_type: int, name: str, what: str, right_on: str, broker: int | None = None
    ) -> dict[str, str]:
        request = apis.DESCRIBE_CONFIGS(resources=[{"resource_type": resource_type, "resource_name": name}])
        try:
            row = self._connection.send(request, broker).results[0]
        except ClusterConnectionError as error:
            raise self._unreachable(error) from None
        if row.error_code in FORBIDDEN:
            raise forbidden(f"the settings of {what}", row.error_code, f"DESCRIBE_CONFIGS on {right_on}")
        if row.error_code:
            raise CommandError(
                f"the settings of {what} are not returned: {words(row.error_code)}",
                ExitStatus.INCOMPLETE,
            )
        return {each.name: each.value for each in row.configs if each.value is not None}

    def topics(self, names: Collection[str] | None = None) -> dict[str, TopicMetadata]:
        """Return the topics that exist, and that this client may see.

        Args:
            names: Names of topics; None for all.
        """
        if names is not None and not names:
            return {}
        response = self._metadata(names)
        racks = {row.node_id: row.rack for row in response.brokers if row.rack}
        return {row.name: topic_metadata(row, racks) for row in response.topics if not row.error_code}

    def forbidden_topics(self, names: Collection[str]) -> frozenset[str]:
        """Return the topics among these that this client may not see, whether they exist or not."""
        rows = self._metadata(names).topics if names else ()
        return frozenset(row.name for row in rows if row.error_code in FORBIDDEN)

    def _metadata(self, names: Collection[str] | None) -> Message:
        return self._send(
            METADATA(topics=None if names is None else [{"name": name} for name in sorted(names)])
        )

    # --- Groups -------------------------------------------------------------------------------------

    def groups(self) -> tuple[list[ListedGroup], dict[Broker, str]]:
        """Return the groups of all brokers by their names, and the brokers that did not answer, with reasons.

        A broker lists only the groups that this client may describe.
        """
        brokers = self.brokers()
        responses = self._connection.send_all(dict.fromkeys(brokers, apis.LIST_GROUPS()))
        found: dict[str, ListedGroup] = {}
        silent: dict[Broker, str] = {}
        for id_, response in responses.items():
            if isinstance(response, ClusterConnectionError):
                silent[brokers[id_]] = str(response)
            elif response.error_code:
                silent[brokers[id_]] = words(response.error_code)
            else:
                found |= {row.group_id: listed_group(row, id_) for row in response.groups}
        # Groups that are gone are forgotten: an exporter sees ever new names.
        known = self._coordinators if silent else {}
        self._coordinators = {**known, **{group.id: group.coordinator for group in found.values()}}
        if silent and len(silent) == len(brokers):
            raise CommandError(
                f"no broker lists its groups: {next(iter(silent.values()))}", ExitStatus.UNREACHABLE
            )
        return sorted(found.values(), key=lambda group: group.id), silent

    def describe(self, ids: Collection[str], *, skip_forbidden: bool = False) -> dict[str, DescribedGroup]:
        """Describe groups of any type, each as its coordinator knows it; those that do not exist are `Dead`.

        Each group is asked for by its type, of which brokers that do not know it return nothing: first the
        classic groups, then the others (as Kafka's own tools do it, in the other order).

        Args:
            ids: The groups.
            skip_forbidden: Whether groups that this client may list, but not describe, are left out.
        """
        described: dict[str, DescribedGroup] = {}
        hidden: set[str] = set()
        for number, (request, read) in enumerate(DESCRIPTIONS):
            remaining = [
                id_
                for id_ in ids
                if id_ not in hidden and (id_ not in described or not described[id_].exists)
            ]
            try:
                rows = self._send_to_coordinators(remaining, request, lambda response: response.groups)
            except ClusterConnectionError as error:
                if number and error.is_refused:
                    break  # the broker is too old for groups of this type
                raise self._unreachable(error) from None
            for id_, (row, coordinator) in rows.items():
                if row.error_code in FORBIDDEN:
                    if not skip_forbidden:
                        # Of groups that are not classic, brokers check the topics as well.
                        is_topic = row.error_code == KafkaError.TOPIC_AUTHORIZATION_FAILED
                        right = f"DESCRIBE on {'all topics of its members' if is_topic else 'the group'}"
                        raise forbidden(f"the group {id_!r}", row.error_code, right)
                    hidden.add(id_)
                elif id_ not in described or not row.error_code:
                    described[id_] = read(row, coordinator)
        shown = {id_: described[id_] for id_ in ids if id_ in described and id_ not in hidden}
        return shown | self._with_existing_partitions(shown.values())

    def _with_existing_partitions(self, groups: Iterable[DescribedGroup]) -> dict[str, DescribedGroup]:
        """Return the streams groups among these without the partitions that do not exist."""
        streams = [each for each in groups if each.type is GroupType.STREAMS]
        topics = self.topics(
            {topic for each in streams for member in each.members for topic in member.topics}
        )
        return {each.id: without_missing_partitions(each, topics) for each in streams}

    def serves_consumer_protocol(self, group: str) -> bool:
        """Return whether the group's coordinator serves KIP-848: it has it, and it is switched on."""
        try:
            rows = self._send_to_coordinators(
                [group],
                lambda ids: apis.CONSUMER_GROUP_DESCRIBE(group_ids=ids),
                lambda response: response.groups,
            )
        except ClusterConnectionError as error:
            if error.is_refused:
                return False
            raise self._unreachable(error) from None
        return all(row.error_code != KafkaError.UNSUPPORTED_VERSION for row, _ in rows.values())

    def committed(self, ids: Collection[str]) -> dict[str, dict[TopicPartitionKey, CommittedOffset]]:
        """Return the committed offsets of groups; no partitions of a group that has none.

        While a transaction with a commit is open, this is the offset committed before it: OffsetFetch
        is sent without `require_stable`.
        """

        def request(some: list[str]) -> Request:
            return apis.OFFSETS_FETCH(groups=[{"group_id": id_} for id_ in some])

        rows = self._send_about_groups(ids, request, lambda response: response.groups)
        return {
            id_: {
                (topic.name, row.partition_index): CommittedOffset(
                    row.committed_offset,
                    None if row.committed_leader_epoch < 0 else row.committed_leader_epoch,
                    row.metadata or "",
                )
                for topic in found.topics or ()
                for row in topic.partitions
                if not row.error_code and row.committed_offset >= 0
            }
            for id_, (found, _) in rows.items()
        }

    def share_offsets(self, ids: Collection[str]) -> dict[str, dict[TopicPartitionKey, CommittedOffset]]:
        """Return the start offsets of share groups, before which all is processed (KIP-932), and the lag.

        Brokers that do not know the request return none.
        """
        try:
            rows = self._send_to_coordinators(ids, describe_share_offsets, lambda response: response.groups)
        except ClusterConnectionError as error:
            if error.is_refused:
                return {id_: {} for id_ in ids}
            raise self._unreachable(error) from None
        return {
            id_: {
                (topic.topic_name, row.partition_index): CommittedOffset(
                    row.start_offset, lag=None if row.lag < 0 else row.lag
                )
                for topic in found.topics or ()
                for row in topic.partitions
                if not row.error_code and row.start_offset >= 0
            }
            for id_, (found, _) in rows.items()
        }

    def commit(
        self, group: str, offsets: Mapping[TopicPartitionKey, CommittedOffset]
    ) -> dict[TopicPartitionKey, str | None]:
        """Commit offsets of a group that has no members; return the error of each partition, or None.

        From Kafka 4.1 on, offsets of a topic that is deleted and created again meanwhile are refused.
        """
        topics = self.topics({name for name, _ in offsets})
        ids = {name: uuid.UUID(topic.id).bytes for name, topic in topics.items() if topic.id}
        names = {id_: name for name, id_ in ids.items()}
        return self._errors_by_partition(group, offset_commit(group, offsets, ids), "READ", names)

    def delete_offsets(
        self, group: str, partitions: Iterable[TopicPartitionKey]
    ) -> dict[TopicPartitionKey, str | None]:
        """Delete committed offsets; return the error of each partition, or None.

        The broker refuses a partition of a topic that the group's members subscribe to.
        """
        return self._errors_by_partition(group, offset_delete(group, partitions), "DELETE")

    # --- Offsets of logs ----------------------------------------------------------------------------

    def offsets(
        self,
        partitions: Collection[TopicPartitionKey],
        timestamp: int = LATEST,
        *,
        read_committed: bool = False,
        topics: Mapping[str, TopicMetadata] | None = None,
    ) -> tuple[dict[TopicPartitionKey, int | None], dict[TopicPartitionKey, str]]:
        """Return offsets of logs, and the errors of partitions whose offset is not known.

        Args:
            partitions: The partitions, which should exist.
            timestamp: `EARLIEST`, `LATEST`, or milliseconds since the epoch: the first message at or after
                it, and None where there is none.
            read_committed: Whether `LATEST` is the last stable offset.
            topics: The partitions' topics, as `topics` returned them a moment ago; None to query them.
        """
        if topics is None:
            topics = self.topics({name for name, _ in partitions})
        errors: dict[TopicPartitionKey, str] = {}
        by_leader: dict[int, list[TopicPartitionKey]] = defaultdict(list)
        for key in partitions:
            found = topics.get(key[0])
            if found is None or not 0 <= key[1] < found.partitions:
                errors[key] = "the partition does not exist, or this client may not see it"
            elif found.leaders[key[1]] < 0:
                errors[key] = "the partition has no leader"
            else:
                by_leader[found.leaders[key[1]]].append(key)
        requests = {
            leader: list_offsets(keys, timestamp, read_committed=read_committed)
            for leader, keys in by_leader.items()
        }
        known: dict[TopicPartitionKey, int | None] = {}
        for leader, response in self._connection.send_all(requests).items():
            if isinstance(response, ClusterConnectionError):
                errors |= dict.fromkeys(by_leader[leader], f"broker {leader}: {response!s}")
                continue
            for topic in response.topics:
                for row in topic.partitions:
                    key = (topic.name, row.partition_index)
                    if row.error_code:
                        errors[key] = words(row.error_code)
                    else:
                        known[key] = row.offset if row.offset >= 0 else None
        return known, errors

    def first_messages(self, offsets: Collection[RecordKey], timeout: float) -> FirstMessages:
        """Return the first messages at or after offsets, as a `read_committed` consumer reads them."""
        return first_messages(self._settings, offsets, timeout)

    # --- Transactions -------------------------------------------------------------------------------

    def open_transactions(self) -> list[OpenTransaction]:
        """Return the open transactions that this client may see, the oldest first.

        Brokers that do not respond, or that are older than 3.0, have none.
        """
        found: list[OpenTransaction] = []
        listed = self._connection.send_all(
            dict.fromkeys(
                self.brokers(),
                apis.LIST_TRANSACTIONS(state_filters=_OPEN),
            )
        )
        requests = {
            broker: apis.DESCRIBE_TRANSACTIONS(
                transactional_ids=[row.transactional_id for row in response.transaction_states]
            )
            for broker, response in listed.items()
            if not isinstance(response, ClusterConnectionError) and response.transaction_states
        }
        for response in self._connection.send_all(requests).values():
            if not isinstance(response, ClusterConnectionError):
                found += [open_transaction(row) for row in response.transaction_states if not row.error_code]
        return sorted(found, key=lambda each: each.started)

    # --- Sending ------------------------------------------------------------------------------------

    def _send(self, request: Request) -> Message:
        try:
            return self._connection.send(request)
        except ClusterConnectionError as error:
            raise self._unreachable(error) from None

    def _errors_by_partition(
        self, group: str, request: Request, right: str, names: Mapping[bytes, str] = MappingProxyType({})
    ) -> dict[TopicPartitionKey, str | None]:
        """Send a request about a group's offsets; return the error of each partition, or None.

        Args:
            group: The group.
            request: The request.
            right: The right on the group that the request needs.
            names: The topics' names by id.
        """
        rows = self._send_about_groups(
            [group], lambda _: request, lambda response: [WithGroup(group, response)]
        )
        response = rows[group][0].response
        if code := getattr(response, "error_code", 0):
            if code in FORBIDDEN:
                raise forbidden(f"the group {group!r}", code, f"{right} on the group")
            raise CommandError(f"the group {group!r}: {words(code)}", ExitStatus.REFUSED)
        codes = {
            (topic.name or names[topic.topic_id], row.partition_index): row.error_code
            for topic in response.topics
            for row in topic.partitions
        }
        if codes and all(code in FORBIDDEN for code in codes.values()):
            code = next(iter(codes.values()))
            if code != KafkaError.TOPIC_AUTHORIZATION_FAILED:
                raise forbidden(f"the group {group!r}", code, f"{right} on the group")
            topics = ", ".join(repr(name) for name in sorted({name for name, _ in codes}))
            raise forbidden(f"the topics {topics}", code, "READ on the topics")
        return {key: words(code) if code else None for key, code in codes.items()}

    def _send_about_groups(
        self, ids: Collection[str], request: Callable[[list[str]], Any], rows: Callable[[Any], Iterable[Any]]
    ) -> dict[str, tuple[Any, Broker]]:
        try:
            return self._send_to_coordinators(ids, request, rows)
        except ClusterConnectionError as error:
            raise self._unreachable(error) from None

    def _send_to_coordinators(
        self, ids: Collection[str], request: Callable[[list[str]], Any], rows: Callable[[Any], Iterable[Any]]
    ) -> dict[str, tuple[Any, Broker]]:
        """Send requests about groups to their coordinators, and again while these move or load the groups.

        Args:
            ids: The groups.
            request: Returns the request about some groups.
            rows: Returns the rows of a response, each with `group_id` (or `group_id` of the only group) and
                `error_code`.

        Returns:
            By group, the row and the coordinator.
        """
        found: dict[str, tuple[Any, Broker]] = {}
        remaining = list(ids)
        for attempt in range(_COORDINATOR_ATTEMPTS):
            if attempt:
                time.sleep(_COORDINATOR_BACKOFF)
            by_broker: dict[int, list[str]] = defaultdict(list)
            for id_, broker in self._find_coordinators(remaining).items():
                by_broker[broker].append(id_)
            while any(by_broker.values()):
                batch = {broker: some[:_GROUPS_A_REQUEST] for broker, some in by_broker.items() if some}
                by_broker = {broker: by_broker[broker][_GROUPS_A_REQUEST:] for broker in by_broker}
                responses = self._connection.send_all(
                    {broker: request(some) for broker, some in batch.items()}
                )
                for broker, response in responses.items():
                    if isinstance(response, ClusterConnectionError):
                        self._coordinators.clear()  # they may have moved to brokers that respond
                        raise response
                    for row in rows(response):
                        found[row.group_id] = (row, self._brokers[broker])
            remaining = [
                id_ for id_ in remaining if id_ not in found or found[id_][0].error_code in _RETRIABLE
            ]
            if not remaining:
                break
            self._coordinators = {
                group: broker for group, broker in self._coordinators.items() if group not in remaining
            }
        if remaining:
            raise CommandError(
                f"the coordinator of the group {remaining[0]!r} is not available; try again",
                ExitStatus.UNREACHABLE,
            )
        return found

    def _find_coordinators(self, ids: Collection[str]) -> dict[str, int]:
        """Return the ids of the groups' coordinators; groups without one now are left out."""
        unknown = [id_ for id_ in ids if id_ not in self._coordinators]
        for start in range(0, len(unknown), _GROUPS_A_REQUEST):
            some = unknown[start : start + _GROUPS_A_REQUEST]
            response = self._connection.send(apis.FIND_COORDINATORS(key_type=0, coordinator_keys=some))
            for row in response.coordinators:
                if row.error_code in FORBIDDEN:
                    raise forbidden(f"the group {row.key!r}", row.error_code, "DESCRIBE on the group")
                if not row.error_code:
                    self._coordinators[row.key] = row.node_id
        if any(self._coordinators.get(id_) not in self._brokers for id_ in ids):
            self._brokers = self._connection.brokers()
        return {id_: self._coordinators[id_] for id_ in ids if id_ in self._coordinators}

    def _unreachable(self, error: ClusterConnectionError) -> CommandError:
        advice = (
            "Correct the security settings"
            if error.is_refused
            else "Check bootstrap.servers, and that a broker runs there"
        )
        return CommandError(
            f"cannot query the cluster at {self._address}: {error!s}. {advice}",
            ExitStatus.UNREACHABLE,
        )
