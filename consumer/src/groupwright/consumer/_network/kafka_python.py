"""The parts of kafka-python that the membership's connections use; the only module that imports kafka-python.

They are internal to kafka-python, so any release may change them. `consumer/tests/test_kafka_python.py` lists
the private members that are overridden, called or replaced here, and names those that a new release has
changed.
"""

import warnings
from typing import Any

with warnings.catch_warnings():
    # kafka-python calls these deprecated functions while it is imported. With ``python -W error``, this
    # package could not be imported.
    warnings.filterwarnings("ignore", "(read_text|open_text) is deprecated", DeprecationWarning)
    try:
        import kafka.errors as kafka_errors
    except ModuleNotFoundError as error:
        if error.name == "kafka":
            raise
        import kafka

        raise ImportError(
            f"the module 'kafka' is {kafka.__file__}, which hides kafka-python; rename that file or folder"
        ) from error
    from kafka.future import Future
    from kafka.net.connection import KafkaConnection, SaslReauthenticator
    from kafka.net.inet import KafkaNetSocket
    from kafka.net.manager import KafkaConnectionManager
    from kafka.net.sasl.oauth import AbstractTokenProvider
    from kafka.net.selector import NetworkSelector
    from kafka.net.transport import KafkaSSLTransport, KafkaTCPTransport
    from kafka.protocol.admin import DescribeGroupsRequest
    from kafka.protocol.consumer import (
        HeartbeatRequest,
        HeartbeatResponse,
        JoinGroupRequest,
        JoinGroupResponse,
        LeaveGroupRequest,
        ListOffsetsRequest,
        ListOffsetsResponse,
        OffsetCommitRequest,
        OffsetCommitResponse,
        OffsetFetchRequest,
        OffsetFetchResponse,
        SyncGroupRequest,
        SyncGroupResponse,
    )
    from kafka.protocol.metadata import (
        ApiVersionsRequest,
        ApiVersionsResponse,
        FindCoordinatorRequest,
        FindCoordinatorResponse,
        MetadataRequest,
        MetadataResponse,
    )
    from kafka.protocol.parser import KafkaProtocol
    from kafka.protocol.sasl import SaslAuthenticateRequest
    from kafka.protocol.schemas.fields.codecs.tagged_fields import TaggedFields, UnsignedVarInt32

__all__ = [
    "AbstractTokenProvider",
    "ApiVersionsRequest",
    "ApiVersionsResponse",
    "DescribeGroupsRequest",
    "FindCoordinatorRequest",
    "FindCoordinatorResponse",
    "Future",
    "HeartbeatRequest",
    "HeartbeatResponse",
    "JoinGroupRequest",
    "JoinGroupResponse",
    "KafkaConnection",
    "KafkaConnectionManager",
    "KafkaNetSocket",
    "KafkaProtocol",
    "KafkaSSLTransport",
    "KafkaTCPTransport",
    "LeaveGroupRequest",
    "ListOffsetsRequest",
    "ListOffsetsResponse",
    "MetadataRequest",
    "MetadataResponse",
    "NetworkSelector",
    "OffsetCommitRequest",
    "OffsetCommitResponse",
    "OffsetFetchRequest",
    "OffsetFetchResponse",
    "SaslAuthenticateRequest",
    "SaslReauthenticator",
    "SyncGroupRequest",
    "SyncGroupResponse",
    "kafka_errors",
]


def _decode_empty(data: Any) -> None:
    """Read the number of tagged fields, which must be 0.

    kafka-python does so inside an `assert`: with ``python -O`` it would not read the byte, and no response
    could be decoded.
    """
    if UnsignedVarInt32.decode(data) != 0:
        raise ValueError("a response has tagged fields where none are allowed")


TaggedFields.decode_empty = staticmethod(_decode_empty)
