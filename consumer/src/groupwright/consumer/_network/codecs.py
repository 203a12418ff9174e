"""Versions of the requests that every member sends, and their codecs, which are compiled in advance.

kafka-python generates and compiles a function for each request and response at its first use. That would be
on the network thread: it would delay the first rebalance by 20 ms, and the 1.2 MB that the compiler has freed
would stay with that thread. During the imports, the modules that are imported next use this memory.
"""

from typing import Any

from groupwright.consumer._network import kafka_python as kp

_CODECS = (
    (kp.ApiVersionsRequest, kp.ApiVersionsResponse, kp.ApiVersionsRequest.max_version),
    (kp.FindCoordinatorRequest, kp.FindCoordinatorResponse, 6),
    (kp.MetadataRequest, kp.MetadataResponse, 12),
    (kp.JoinGroupRequest, kp.JoinGroupResponse, 9),
    (kp.SyncGroupRequest, kp.SyncGroupResponse, 5),
    (kp.HeartbeatRequest, kp.HeartbeatResponse, 4),
    (kp.OffsetFetchRequest, kp.OffsetFetchResponse, 8),
    (kp.ListOffsetsRequest, kp.ListOffsetsResponse, 7),
    (kp.OffsetCommitRequest, kp.OffsetCommitResponse, 9),  # version 10 needs topic ids
)

MAX_VERSION: dict[Any, int] = {request: version for request, _, version in _CODECS}
"""By request, the highest version that is sent. A broker that has not all of them gets lower versions, whose
codecs are compiled at their first use."""


def _compile_codecs() -> None:
    for request, response, version in _CODECS:
        flexible = request.flexible_version_q(version)
        request._struct.compiled_encode_into(version, compact=flexible, tagged=flexible)  # noqa: SLF001 - no public way
        response._struct.compiled_decode_from(  # noqa: SLF001 - as above
            version, compact=flexible, tagged=flexible, data_class=response
        )


_compile_codecs()
