"""Messages on the wire: the same bytes as kafka-python's in every version, and what is no message."""

import importlib
import warnings
from types import SimpleNamespace
from typing import Any

import pytest

from groupwright.core import kafka_apis
from groupwright.core.wire_format import (
    BYTES,
    INT16,
    INT32,
    NULLABLE_STRING,
    STRING,
    Api,
    Array,
    Field,
    Fields,
    MalformedMessageError,
    Struct,
    Type,
    UnsupportedVersionError,
    field,
)

APIS = {each.name: each for each in vars(kafka_apis).values() if isinstance(each, Api)}
MODULES = ("consumer", "metadata", "admin", "sasl")


def value(type_: Type, version: int, seed: int) -> Any:
    """Return a value of a type, other than its default."""
    if isinstance(type_, Array):
        return [value(type_._of, version, seed + number) for number in range(2)]
    if isinstance(type_, Struct):
        return message(type_._fields, version, seed)
    if type_ in (STRING, NULLABLE_STRING):
        return f"wört-{seed}" * (1 + seed % 20)
    if type_ is BYTES:
        return bytes(range(seed % 200))
    default = type_.default
    return not default if isinstance(default, bool) else default if isinstance(default, bytes) else seed % 100


def message(fields: Fields, version: int, seed: int = 7) -> dict[str, Any]:
    found = {}
    for number, (name, each) in enumerate(fields.items()):
        known = each if isinstance(each, Field) else field(each)
        if known.is_in(version):
            found[name] = value(known.type, version, seed + 31 * number)
    return found


def theirs(name: str) -> Any:
    """Return kafka-python's class of a message."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "(read_text|open_text) is deprecated", DeprecationWarning)
        modules = [importlib.import_module(f"kafka.protocol.{each}") for each in MODULES]
    return next(getattr(each, name) for each in modules if hasattr(each, name))


def plain(decoded: Any, like: Any) -> Any:
    """Return those attributes of a decoded message that a mapping has."""
    if isinstance(like, dict):
        # kafka-python has a set of names in place of a number.
        return {
            name: each if name.endswith("authorized_operations") else plain(getattr(decoded, name), each)
            for name, each in like.items()
        }
    if isinstance(like, list):
        return [plain(one, each) for one, each in zip(decoded, like, strict=True)]
    if isinstance(like, bytes) and decoded is None:
        return bytes(16)  # kafka-python's zero UUID
    return bytes(decoded) if isinstance(like, bytes) else decoded


@pytest.mark.parametrize("kind", ["Request", "Response"])
@pytest.mark.parametrize("name", APIS)
def test_a_message_has_the_bytes_that_another_client_reads_and_writes(name: str, kind: str) -> None:
    api, their_class = APIS[name], theirs(name + kind)
    is_request = kind == "Request"
    assert api.key == their_class.API_KEY
    for version in range(api.versions[0], api.versions[1] + 1):
        sent = message(api.request if is_request else api.response, version)
        if name == "ApiVersions" and not is_request:
            sent["error_code"] = 0  # with an error, it is of version 0
        data = api.encode(sent, version, is_request=is_request)

        found = their_class.decode(data, version=version)
        assert plain(found, sent) == sent, version
        found._header = None
        assert found.encode(version=version) == data, version
        assert plain(api.decode(data, version, is_request=is_request), sent) == sent, version


def test_a_broker_that_lacks_the_version_says_so_in_the_oldest_one() -> None:
    response = {"error_code": 35, "api_keys": [{"api_key": 18, "min_version": 0, "max_version": 2}]}
    data = bytes(4) + kafka_apis.API_VERSIONS.encode(response, 0, is_request=False)

    assert kafka_apis.API_VERSIONS.decode_frame(data, 4).api_keys[0].max_version == 2


@pytest.mark.parametrize("name", APIS)
def test_a_request_has_the_header_that_another_client_writes(name: str) -> None:
    api, their_class = APIS[name], theirs(f"{name}Request")
    for version in range(api.versions[0], api.versions[1] + 1):
        sent = message(api.request, version)
        request = their_class.decode(api.encode(sent, version), version=version)
        request.with_header(correlation_id=77, client_id="client")

        assert api.frame(sent, version, 77, "client") == request.encode(
            version=version, header=True, framed=True
        ), version


# --- What other versions have ---------------------------------------------------------------------------

THING = Api(
    "Thing",
    99,
    versions=(0, 3),
    flexible=2,
    request={"name": STRING, "since_one": field(NULLABLE_STRING, 1, required=True)},
    response={"code": INT16, "until_one": field(INT32, 0, 1, default=-1), "rows": Array({"name": STRING})},
)


def test_a_field_that_a_version_lacks_has_its_default() -> None:
    assert THING.decode(THING.encode({"code": 3}, 2, is_request=False), 2) == SimpleNamespace(
        code=3, until_one=-1, rows=[]
    )


def test_tagged_fields_are_skipped() -> None:
    """A newer broker may add some to any version (KIP-482)."""
    tagged = b"\x00\x05" + b"\x02" + b"\x02n" + b"\x01\x09\x02hi" + b"\x02\x00\x01x\x63\x00"

    assert THING.decode(tagged, 3).rows == [SimpleNamespace(name="n")]


def test_a_required_field_is_not_left_out() -> None:
    with pytest.raises(UnsupportedVersionError, match="its version 0 lacks since_one"):
        THING.encode({"name": "n", "since_one": "x"}, 0)
    assert THING.encode({"name": "n", "since_one": None}, 0) == b"\x00\x01n"


def test_a_name_that_no_version_has_is_an_error() -> None:
    with pytest.raises(TypeError, match="the structure has no nmae"):
        THING.encode({"nmae": "n"}, 0)


@pytest.mark.parametrize(("broker", "expected"), [((0, 9), 3), ((1, 2), 2), ((3, 3), 3)])
def test_the_newest_version_of_both_is_taken(broker: tuple[int, int], expected: int) -> None:
    assert THING.common_version(*broker) == expected


@pytest.mark.parametrize("broker", [(4, 9), (0, -1)])
def test_without_a_common_version_there_is_an_error(broker: tuple[int, int]) -> None:
    with pytest.raises(UnsupportedVersionError, match=r"Thing: .* this client 0 to 3"):
        THING.common_version(*broker)


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\x00\x05\x02",
        b"\x00\x05\x02\x09n",
        b"\x00\x05\xff\xff\xff\x7f",
        b"\x00\x05\x02\x02\xff\x00\x00",
        b"\x00\x05\x01\x01\x09\x7f",
    ],
    ids=["nothing", "no row", "a short text", "too many rows", "no UTF-8", "a short tagged field"],
)
def test_bytes_that_are_no_message_are_an_error(data: bytes) -> None:
    with pytest.raises(MalformedMessageError):
        THING.decode(data, 2)


@pytest.mark.parametrize("fields", [{"name": "\ud800"}, {"name": "n" * 40_000}, {"name": 7}])
def test_a_value_that_does_not_fit_is_an_error(fields: dict[str, Any]) -> None:
    with pytest.raises(MalformedMessageError):
        THING.frame(fields, 0, 1, "client")
