"""The partition of a group, beside Java's values; without a broker."""

import csv
import json
from collections.abc import Callable
from pathlib import Path
from subprocess import CompletedProcess

import jsonschema  # type: ignore[import-untyped]
import pytest

from groupwright import cli
from groupwright.cli.locate.command import located

Run = Callable[..., CompletedProcess[str]]
SCHEMA = Path(cli.__file__).parent / "_schemas" / "locate.schema.json"
JAVA = {  # String.hashCode, and Utils.abs of it modulo 50
    "": (0, 0),
    "a": (97, 47),
    "hello": (99162322, 22),
    "billing": (-109829509, 9),
    "polygenelubricants": (-2147483648, 0),  # has no absolute value
    "\N{GRINNING FACE}": (1772899, 49),  # two code units
}


@pytest.mark.parametrize(("group", "values"), JAVA.items())
def test_hash_and_partition_are_javas(group: str, values: tuple[int, int]) -> None:
    assert located(group, 50) == {
        "group": group,
        "hash": values[0],
        "partition": values[1],
        "partitions": 50,
    }


def test_without_a_broker_the_table_has_what_is_computed(groupwright: Run) -> None:
    result = groupwright("locate", "billing", "hello", "--partitions", "50", COLUMNS="80")

    assert (result.returncode, result.stderr) == (0, "")
    assert [line.split() for line in result.stdout.splitlines()] == [
        ["GROUP", "HASH", "PARTITION", "OF"],
        ["billing", "-109829509", "9", "50"],
        ["hello", "99162322", "22", "50"],
    ]


def test_without_a_broker_json_and_csv_have_all_columns(groupwright: Run) -> None:
    arguments = ("locate", "billing", "--partitions", "50", "--output")
    document = json.loads(groupwright(*arguments, "json").stdout)
    [row] = csv.DictReader(groupwright(*arguments, "csv").stdout.splitlines())

    jsonschema.validate(document, json.loads(SCHEMA.read_text(encoding="utf-8")))
    assert document == [{**located("billing", 50), "broker": None, "host": None, "port": None}]
    assert row == {key: "" if value is None else str(value) for key, value in document[0].items()}


@pytest.mark.medium
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "Missing argument 'GROUP'"),
        (["billing", "--partitions", "0"], "Invalid value for '--partitions'"),
        (["billing"], "no broker is set: pass --bootstrap-servers HOST:PORT or --config FILE"),
    ],
)
def test_wrong_arguments_are_refused(groupwright: Run, arguments: list[str], message: str) -> None:
    result = groupwright("locate", *arguments, GROUPWRIGHT_BOOTSTRAP_SERVERS="", GROUPWRIGHT_CONFIG="")

    assert (result.returncode, result.stdout) == (2, "")
    assert message in " ".join(result.stderr.split())
