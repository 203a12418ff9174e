"""Requests in flight, with bytes in place of a connection."""

import struct

import pytest

from groupwright.consumer._network.pipeline import Pipeline
from groupwright.core.kafka_apis import HEARTBEAT, METADATA
from groupwright.core.wire_format import MalformedMessageError, UnsupportedVersionError


def response(correlation_id: int, code: int) -> bytes:
    body = (
        struct.pack(">i", correlation_id)
        + b"\0"
        + HEARTBEAT.encode({"error_code": code}, 4, is_request=False)
    )
    return struct.pack(">i", len(body)) + body


@pytest.fixture
def pipeline() -> Pipeline[str]:
    pipeline = Pipeline[str]("client", 1_000)
    for handle in "abc":
        pipeline.send(HEARTBEAT(group_id="g"), 4, handle)
    return pipeline


@pytest.mark.parametrize("size", [1, 2, 5, 1_000])
def test_responses_arrive_in_pieces(pipeline: Pipeline[str], size: int) -> None:
    data = response(0, 27) + response(1, 0) + response(2, 25)
    pieces = [data[start : start + size] for start in range(0, len(data), size)]

    found = [each for piece in pieces for each in pipeline.receive(piece)]

    assert [(handle, message.error_code) for handle, message in found] == [("a", 27), ("b", 0), ("c", 25)]
    assert pipeline.handles == []


def test_a_response_leaves_the_others_in_flight(pipeline: Pipeline[str]) -> None:
    assert [handle for handle, _ in pipeline.receive(response(0, 0))] == ["a"]
    assert pipeline.handles == ["b", "c"]


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (response(1, 0), "out of order"),
        (struct.pack(">i", 1_001), "receive.message.max.bytes allows 1000"),
        (struct.pack(">i", -1), "a response of -1 bytes"),
        (b"HTTP/1.1 400", "announces a response"),
        (struct.pack(">ii", 5, 0) + b"\0", "Heartbeat 4"),
    ],
)
def test_what_is_no_response_is_an_error(pipeline: Pipeline[str], data: bytes, words: str) -> None:
    with pytest.raises(MalformedMessageError, match=words):
        list(pipeline.receive(data))
    assert pipeline.handles == ["a", "b", "c"], "each still waits, so that it fails with the connection"


def test_a_response_to_no_request_is_an_error() -> None:
    with pytest.raises(MalformedMessageError, match="without a request"):
        list(Pipeline[str]("client", 1_000).receive(response(0, 0)))


def test_a_request_that_cannot_be_sent_is_not_in_flight(pipeline: Pipeline[str]) -> None:
    with pytest.raises(UnsupportedVersionError):
        pipeline.send(HEARTBEAT(group_instance_id="static"), 2, "d")
    with pytest.raises(MalformedMessageError):
        pipeline.send(METADATA(topics=[{"name": "\ud800"}]), 12, "e")

    assert pipeline.handles == ["a", "b", "c"]
    assert pipeline.send(HEARTBEAT(), 4, "f")[8:12] == struct.pack(">i", 3)
