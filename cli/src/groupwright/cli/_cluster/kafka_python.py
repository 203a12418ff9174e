"""kafka-python's requests, and those that it lacks; the only module here that imports it."""

import warnings

with warnings.catch_warnings():
    warnings.filterwarnings("ignore", "(read_text|open_text) is deprecated", DeprecationWarning)
    from kafka.protocol.admin import (
        DescribeConfigsRequest,
        DescribeGroupsRequest,
        DescribeTransactionsRequest,
        ListGroupsRequest,
        ListTransactionsRequest,
    )
    from kafka.protocol.api_message import ApiMessage
    from kafka.protocol.consumer import (
        ListOffsetsRequest,
        OffsetCommitRequest,
        OffsetDeleteRequest,
        OffsetFetchRequest,
    )
    from kafka.protocol.metadata import FindCoordinatorRequest, MetadataRequest

    from groupwright.cli._cluster import messages

    class ConsumerGroupDescribeRequest(ApiMessage, load_json=messages):  # type: ignore[misc,call-arg]
        """Describe groups of KIP-848."""

    class ConsumerGroupDescribeResponse(ApiMessage, load_json=messages):  # type: ignore[misc,call-arg]
        """Response to `ConsumerGroupDescribeRequest`."""

    class DescribeShareGroupOffsetsRequest(ApiMessage, load_json=messages):  # type: ignore[misc,call-arg]
        """Fetch the offsets of share groups (KIP-932)."""

    class DescribeShareGroupOffsetsResponse(ApiMessage, load_json=messages):  # type: ignore[misc,call-arg]
        """Response to `DescribeShareGroupOffsetsRequest`."""

    class ShareGroupDescribeRequest(ApiMessage, load_json=messages):  # type: ignore[misc,call-arg]
        """Describe share groups (KIP-932)."""

    class ShareGroupDescribeResponse(ApiMessage, load_json=messages):  # type: ignore[misc,call-arg]
        """Response to `ShareGroupDescribeRequest`."""

    class StreamsGroupDescribeRequest(ApiMessage, load_json=messages):  # type: ignore[misc,call-arg]
        """Describe streams groups (KIP-1071)."""

    class StreamsGroupDescribeResponse(ApiMessage, load_json=messages):  # type: ignore[misc,call-arg]
        """Response to `StreamsGroupDescribeRequest`."""


__all__ = [
    "ConsumerGroupDescribeRequest",
    "DescribeConfigsRequest",
    "DescribeGroupsRequest",
    "DescribeShareGroupOffsetsRequest",
    "DescribeTransactionsRequest",
    "FindCoordinatorRequest",
    "ListGroupsRequest",
    "ListOffsetsRequest",
    "ListTransactionsRequest",
    "MetadataRequest",
    "OffsetCommitRequest",
    "OffsetDeleteRequest",
    "OffsetFetchRequest",
    "ShareGroupDescribeRequest",
    "StreamsGroupDescribeRequest",
]
