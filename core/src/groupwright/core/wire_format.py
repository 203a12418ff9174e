"""Kafka's wire format: tables of fields, and the requests and responses that they encode and decode.

Pure: bytes in, bytes out. The layouts are those of Kafka's message schemas (KIP-482 for compact types and
tagged fields). A response is a `Message`, whose attributes have the names of the table; a field that the
version lacks has its default. Tagged fields are skipped, and none is sent.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from dataclasses import field as dataclass_field
from functools import cache
from itertools import groupby
from types import SimpleNamespace
from typing import Any

_LATEST = 32_767
_UNSUPPORTED_VERSION = 35

Message = SimpleNamespace
"""A decoded structure."""
_Read = Callable[[bytes, int], tuple[Any, int]]
"""Takes the data and an offset; returns the value and the offset behind it."""
_Write = Callable[[bytearray, Any], None]
"""Appends the value."""


class MalformedMessageError(ValueError):
    """The bytes are not a message of this layout."""


class UnsupportedVersionError(Exception):
    """The broker has no version of a request that this client can send.

    Attributes:
        code: Kafka's error code.
    """

    code = _UNSUPPORTED_VERSION


# --- Types ------------------------------------------------------------------------------------------


class Type:
    """The type of a field."""

    default: Any = None

    def reader(self, version: int, *, compact: bool) -> _Read:
        """Return the function that reads a value in a version of the message."""
        raise NotImplementedError

    def writer(self, version: int, *, compact: bool) -> _Write:
        """Return the function that writes a value in a version of the message."""
        raise NotImplementedError


class _Fixed(Type):
    """A number, a boolean, or bytes of a fixed length; `code` is that of `struct`."""

    def __init__(self, code: str, default: object = 0) -> None:
        self.code, self.default = code, default
        self._struct = struct.Struct(">" + code)

    def reader(self, version: int, *, compact: bool) -> _Read:  # noqa: ARG002 - the same in all
        unpack, size = self._struct.unpack_from, self._struct.size
        return lambda data, at: (unpack(data, at)[0], at + size)

    def writer(self, version: int, *, compact: bool) -> _Write:  # noqa: ARG002 - as above
        pack = self._struct.pack
        return lambda out, value: out.extend(pack(value))


class _Sized(Type):
    """Bytes or text after their length. A compact length is a varint of the length + 1, and 0 means null."""

    def __init__(self, code: str, default: object, *, text: bool, nullable: bool = False) -> None:
        self.default = None if nullable else default
        self._code, self._text, self._nullable = code, text, nullable

    def reader(self, version: int, *, compact: bool) -> _Read:  # noqa: ARG002 - the same in all
        length_of, text = _length_reader(self._code, compact=compact), self._text

        def read(data: bytes, at: int) -> tuple[Any, int]:
            length, at = length_of(data, at)
            if length < 0:
                return None, at
            end = at + length
            if end > len(data):
                raise MalformedMessageError("the message ends within a text")
            value = data[at:end]
            return (str(value, "utf-8") if text else value), end

        return read

    def writer(self, version: int, *, compact: bool) -> _Write:  # noqa: ARG002 - as above
        write_length, default = _length_writer(self._code, compact=compact), self.default

        def write(out: bytearray, value: Any) -> None:
            value = default if value is None else value
            if isinstance(value, str):
                value = value.encode()
            write_length(out, -1 if value is None else len(value))
            out.extend(value or b"")

        return write


class Array(Type):
    """A sequence; null is read as None."""

    def __init__(self, of: Type | Fields, *, nullable: bool = False) -> None:
        """Create it for elements of a type, or of the fields of a structure."""
        self._of = of if isinstance(of, Type) else Struct(of)
        self.default = None if nullable else ()
        self._nullable = nullable

    def reader(self, version: int, *, compact: bool) -> _Read:
        """Return the function that reads a list."""
        length_of = _length_reader("i", compact=compact)
        numbers = self._of.code if isinstance(self._of, _Fixed) else ""
        size = struct.calcsize(">" + numbers)
        read_one = self._of.reader(version, compact=compact)

        def read(data: bytes, at: int) -> tuple[Any, int]:
            length, at = length_of(data, at)
            if length < 0:
                return None, at
            if length > len(data) - at:
                raise MalformedMessageError(f"the message has no {length} elements")
            if numbers:
                layout = f">{length}{numbers}" if len(numbers) == 1 else ">" + numbers * length
                return list(struct.unpack_from(layout, data, at)), at + length * size
            found = []
            for _ in range(length):
                value, at = read_one(data, at)
                found.append(value)
            return found, at

        return read

    def writer(self, version: int, *, compact: bool) -> _Write:
        """Return the function that writes a sequence."""
        write_length = _length_writer("i", compact=compact)
        write_one, default = self._of.writer(version, compact=compact), self.default

        def write(out: bytearray, value: Any) -> None:
            value = default if value is None else value
            write_length(out, -1 if value is None else len(value))
            for each in value or ():
                write_one(out, each)

        return write


class Struct(Type):
    """A structure: read as a `Message`, and written from one or from a mapping."""

    def __init__(self, fields: Fields, *, nullable: bool = False) -> None:
        """Create it; null is one byte before a nullable structure."""
        self._fields = {
            name: each if isinstance(each, Field) else Field(each, default=each.default)
            for name, each in fields.items()
        }
        self.default = None if nullable else {}
        self._nullable = nullable

    def reader(self, version: int, *, compact: bool) -> _Read:
        """Return the function that reads a `Message`; it reads adjacent numbers at once."""
        present = [(name, each) for name, each in self._fields.items() if each.is_in(version)]
        absent = {name: each.default for name, each in self._fields.items() if not each.is_in(version)}
        steps: list[tuple[tuple[str, ...], Any, int]] = []
        for fixed, group in groupby(present, key=lambda row: isinstance(row[1].type, _Fixed)):
            rows = list(group)
            if fixed:
                layout = struct.Struct(">" + "".join(each.type.code for _, each in rows))  # type: ignore[attr-defined] # they are _Fixed
                steps.append((tuple(name for name, _ in rows), layout.unpack_from, layout.size))
            else:
                steps.extend(((name,), each.type.reader(version, compact=compact), 0) for name, each in rows)
        nullable = self._nullable

        def read(data: bytes, at: int) -> tuple[Any, int]:
            if nullable:
                at += 1
                if data[at - 1] > 127:  # noqa: PLR2004 - a negative byte
                    return None, at
            row = Message(**absent)
            values = row.__dict__
            for names, take, size in steps:
                if size:
                    values.update(zip(names, take(data, at), strict=True))
                    at += size
                else:
                    values[names[0]], at = take(data, at)
            if compact:
                at = _skip_tags(data, at) if data[at] else at + 1
            return row, at

        return read

    def writer(self, version: int, *, compact: bool) -> _Write:
        """Return the function that writes a `Message` or a mapping; an unknown name raises a TypeError."""
        known = self._fields.keys()
        steps = [
            (name, each.default, each.type.writer(version, compact=compact))
            for name, each in self._fields.items()
            if each.is_in(version)
        ]
        required = [name for name, each in self._fields.items() if each.required and not each.is_in(version)]

        def write(out: bytearray, value: Any) -> None:
            if self._nullable:
                out.append(255 if value is None else 1)
                if value is None:
                    return
            values = value if isinstance(value, Mapping) else vars(value)
            if not values.keys() <= known:
                raise TypeError(f"the structure has no {', '.join(values.keys() - known)}")
            if missing := [name for name in required if values.get(name) is not None]:
                raise UnsupportedVersionError(f"its version {version} lacks {', '.join(missing)}")
            for name, default, write_one in steps:
                write_one(out, values.get(name, default))
            if compact:
                out.append(0)  # tagged fields

        return write


@dataclass(frozen=True, slots=True)
class Field:
    """A field that some versions lack, or whose default is not that of its type.

    Attributes:
        type: Its type.
        since: The first version that has it.
        until: The last version that has it.
        default: The value if it is not given, or not in the version.
        required: Whether a request that gives a value is not sent in a version that lacks the field.
    """

    type: Type
    since: int = 0
    until: int = _LATEST
    default: Any = None
    required: bool = False

    def is_in(self, version: int) -> bool:
        """Return whether a version has the field."""
        return self.since <= version <= self.until


Fields = Mapping[str, Type | Field]
"""The fields of a structure, in the order of the wire."""


def field(type_: Type, since: int = 0, until: int = _LATEST, **more: Any) -> Field:
    """Return a `Field` with the default of its type, unless `more` has one."""
    return Field(type_, since, until, **{"default": type_.default, **more})


BOOLEAN = _Fixed("?", default=False)
INT8, INT16, INT32, INT64 = map(_Fixed, "bhiq")
UINT16 = _Fixed("H")
FLOAT64 = _Fixed("d", 0.0)
UUID = _Fixed("16s", bytes(16))
"""16 bytes."""
STRING = _Sized("h", "", text=True)
NULLABLE_STRING = _Sized("h", "", text=True, nullable=True)
BYTES = _Sized("i", b"", text=False)
NULLABLE_BYTES = _Sized("i", b"", text=False, nullable=True)


# --- Lengths ----------------------------------------------------------------------------------------


def _read_varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 127) << shift
        if byte < 128:  # noqa: PLR2004 - no continuation
            return value, at
        shift += 7


def _write_varint(out: bytearray, value: int) -> None:
    while value > 127:  # noqa: PLR2004 - as above
        out.append(value & 127 | 128)
        value >>= 7
    out.append(value)


def _length_reader(code: str, *, compact: bool) -> Callable[[bytes, int], tuple[int, int]]:
    if not compact:
        return _Fixed(code).reader(0, compact=False)

    def read(data: bytes, at: int) -> tuple[int, int]:
        if data[at] < 128:  # noqa: PLR2004 - one byte, as mostly
            return data[at] - 1, at + 1
        length, at = _read_varint(data, at)
        return length - 1, at

    return read


def _length_writer(code: str, *, compact: bool) -> Callable[[bytearray, int], None]:
    if not compact:
        return _Fixed(code).writer(0, compact=False)
    return lambda out, length: _write_varint(out, length + 1)


def _skip_tags(data: bytes, at: int) -> int:
    count, at = _read_varint(data, at)
    for _ in range(count):
        _, at = _read_varint(data, at)
        size, at = _read_varint(data, at)
        at += size
    if at > len(data):
        raise MalformedMessageError("the message ends within its tagged fields")
    return at


# --- Requests and responses -------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False)
class Api:
    """A request and its response. Call it with the request's fields to get a `Request`.

    Attributes:
        name: Kafka's name, without "Request".
        key: Kafka's API key.
        versions: The first and the last version of these tables.
        request: The fields of the request.
        response: The fields of the response.
        flexible: The first version with compact types and tagged fields.
    """

    name: str
    key: int
    versions: tuple[int, int]
    request: Fields
    response: Fields
    flexible: int = _LATEST

    def __call__(self, **fields: Any) -> Request:
        """Return a request; fields that are left out have their defaults."""
        return Request(self, fields)

    def common_version(self, least: int, most: int) -> int:
        """Return the newest version that is also one of the broker's.

        Raises:
            UnsupportedVersionError: There is none.
        """
        version = min(self.versions[1], most)
        if version < max(self.versions[0], least):
            raise UnsupportedVersionError(
                f"{self.name}: it has the versions {least} to {most}, "
                f"and this client {self.versions[0]} to {self.versions[1]}"
            )
        return version

    def decode(self, data: bytes, version: int, *, is_request: bool = False, at: int = 0) -> Message:
        """Return the message in `data`, which begins at an offset, after the header.

        Raises:
            MalformedMessageError: The bytes are not such a message.
        """
        try:
            row, _ = _reader(self, version, is_request)(data, at)
        except (struct.error, IndexError, UnicodeDecodeError) as error:
            raise MalformedMessageError(f"{self.name} {version}: {error}") from error
        return row  # type: ignore[no-any-return] # a structure is a Message

    def encode(self, message: Mapping[str, Any], version: int, *, is_request: bool = True) -> bytes:
        """Return the bytes of a message, without a header."""
        out = bytearray()
        _writer(self, version, is_request)(out, message)
        return bytes(out)

    def frame(self, message: Mapping[str, Any], version: int, correlation_id: int, client_id: str) -> bytes:
        """Return a request as it is sent: its size, its header and the message.

        Raises:
            MalformedMessageError: A field has a value of another type, or out of its range.
            UnsupportedVersionError: The version lacks a required field that has a value.
        """
        out = bytearray(struct.pack(">ihhi", 0, self.key, version, correlation_id))
        try:
            NULLABLE_STRING.writer(0, compact=False)(out, client_id)
            if version >= self.flexible:
                out.append(0)  # tagged fields of the header
            _writer(self, version, is_request=True)(out, message)
        except (struct.error, UnicodeEncodeError, TypeError) as error:
            raise MalformedMessageError(f"{self.name} {version}: {error}") from error
        struct.pack_into(">i", out, 0, len(out) - 4)
        return bytes(out)

    def decode_frame(self, data: bytes, version: int) -> Message:
        """Return the response in a frame, after its size.

        Raises:
            MalformedMessageError: The bytes are not such a response.
        """
        flexible = version >= self.flexible
        if self.key == _API_VERSIONS:
            # Every client can read this response (KIP-511): its header is never flexible, and a broker that
            # lacks the version responds in version 0.
            flexible = False
            version = 0 if data[4:6] == _UNSUPPORTED_VERSION.to_bytes(2, "big") else version
        try:
            return self.decode(data, version, at=_skip_tags(data, 4) if flexible else 4)
        except IndexError as error:
            raise MalformedMessageError(f"{self.name} {version}: {error}") from error


_API_VERSIONS = 18


@dataclass(frozen=True, slots=True)
class Request:
    """A request; its `repr` does not show the fields, which may be secret."""

    api: Api
    fields: Mapping[str, Any] = dataclass_field(repr=False)


@cache
def _reader(api: Api, version: int, is_request: bool) -> _Read:  # noqa: FBT001 - a key of the cache
    fields = api.request if is_request else api.response
    return Struct(fields).reader(version, compact=version >= api.flexible)


@cache
def _writer(api: Api, version: int, is_request: bool) -> _Write:  # noqa: FBT001 - as above
    fields = api.request if is_request else api.response
    return Struct(fields).writer(version, compact=version >= api.flexible)
