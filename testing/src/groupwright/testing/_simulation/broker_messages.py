"""Requests that any simulated broker answers, and their responses; the coordinator's are in `messages`."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from groupwright.core import ErrorCode, TopicPartitionKey


@dataclass(frozen=True, slots=True)
class FindCoordinatorRequest:
    """FindCoordinator for one group."""

    group_id: str


@dataclass(frozen=True, slots=True)
class FindCoordinatorResponse:
    """Response to FindCoordinator."""

    error: ErrorCode = ErrorCode.NONE
    broker: int = -1
    address: int = -1


@dataclass(frozen=True, slots=True)
class MetadataRequest:
    """Metadata for these topics; None for all."""

    topics: frozenset[str] | None = None


@dataclass(frozen=True, slots=True)
class MetadataResponse:
    """Response to Metadata.

    Attributes:
        brokers: The live brokers that the answering broker knows.
        topics: Number of partitions by topic, as far as the answering broker knows.
        ids: Topic id by topic; a topic that is created again has another one.
        leaders: Leader of each partition, or -1.
        addresses: Address of each of these brokers.
    """

    brokers: tuple[int, ...] = ()
    topics: Mapping[str, int] = field(default_factory=dict)
    ids: Mapping[str, int] = field(default_factory=dict)
    leaders: Mapping[TopicPartitionKey, int] = field(default_factory=dict)
    addresses: Mapping[int, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ListOffsetsRequest:
    """ListOffsets of partitions' beginning or end, to their leader."""

    partitions: tuple[TopicPartitionKey, ...]
    end: bool


@dataclass(frozen=True, slots=True)
class ListOffsetsResponse:
    """Response to ListOffsets; partitions that this broker does not lead are left out."""

    offsets: Mapping[TopicPartitionKey, int] = field(default_factory=dict)
