"""Files of offsets: the CSV of Kafka's kafka-consumer-groups.sh, and JSON."""

import csv
import io
import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from groupwright.cli._cluster.model import CommittedOffset
from groupwright.cli._command_line.exit import CommandError, ExitStatus, unusable_file
from groupwright.core import TopicPartitionKey

_FIELDS = ("topic", "partition", "offset")
_LARGEST_EPOCH = 2**31 - 1


class _Entry(NamedTuple):
    """An offset in a file.

    Attributes:
        place: The line or the entry.
        topic_id: The topic's id; empty if the file has none.
        commit: The offset with its leader epoch and metadata; None if the file has neither.
    """

    place: str
    topic: str
    partition: int
    offset: int
    topic_id: str = ""
    commit: CommittedOffset | None = None


def read_offsets(
    path: Path, group: str
) -> tuple[dict[TopicPartitionKey, int], dict[str, str], dict[TopicPartitionKey, CommittedOffset]]:
    """Return the offsets in a file; as far as it has them, the ids of topics, leader epochs and metadata.

    Args:
        path: A `.json` file as `write_offsets` writes it; any other name is CSV: topic,partition,offset, or
            group,topic,partition,offset, as Kafka's tool exports one group and several. A header is skipped.
        group: Of the lines with a group, those of this one are read.

    Raises:
        CommandError: The file cannot be read, has no offset of the group, or two of a partition.
    """
    offsets: dict[TopicPartitionKey, int] = {}
    topic_ids: dict[str, str] = {}
    commits: dict[TopicPartitionKey, CommittedOffset] = {}
    try:
        text = path.read_text(encoding="utf-8-sig")
        for each in (_json if path.suffix == ".json" else _csv)(text, group):
            key = each.topic, each.partition
            if each.partition < 0 or each.offset < 0:
                raise ValueError(f"{each.place}: partitions and offsets are not negative")  # noqa: TRY301
            if key in offsets:
                raise ValueError(f"{each.place}: {each.topic}-{each.partition} has an offset already")  # noqa: TRY301
            offsets[key] = each.offset
            if each.topic_id:
                topic_ids[each.topic] = each.topic_id
            if each.commit is not None:
                commits[key] = each.commit
    except (OSError, ValueError) as error:
        raise unusable_file(path, "read", error) from None
    if not offsets:
        raise CommandError(f"{path} has no offsets of the group {group!r}", ExitStatus.USAGE)
    return offsets, topic_ids, commits


def _csv(text: str, group: str) -> Iterator[_Entry]:
    reader = csv.reader(io.StringIO(text))
    for number, cells in enumerate(([cell.strip() for cell in row] for row in reader), start=1):
        if not any(cells) or (number == 1 and tuple(cells[-3:]) == _FIELDS):
            continue
        try:
            *groups, topic, partition, offset = cells
            row = _Entry(f"line {number}", topic, int(partition), int(offset))
        except ValueError:
            groups, row = ["", ""], _Entry("", "", 0, 0)
        if len(groups) > 1 or not row.topic:
            raise ValueError(f"line {number} is not topic,partition,offset: {','.join(cells)!r}")
        if groups in ([], [group]):
            yield row


def _json(text: str, group: str) -> Iterator[_Entry]:
    document = json.loads(text)
    if not isinstance(document, list):
        raise ValueError('write a list: [{"topic": "orders", "partition": 0, "offset": 123}]')  # noqa: TRY004
    for index, row in enumerate(document):
        match row:
            case {"topic": str(topic), "partition": int(partition), "offset": int(offset)}:
                if row.get("group", group) == group:
                    place, topic_id = f"entry {index}", str(row.get("topic_id") or "")
                    yield _Entry(place, topic, partition, offset, topic_id, _commit(place, offset, row))
            case _:
                raise ValueError(f"entry {index} has no topic, partition and offset: {json.dumps(row)}")


def _commit(place: str, offset: int, row: Mapping[str, Any]) -> CommittedOffset | None:
    """Return the offset of an entry with its leader epoch and metadata; None if it has neither."""
    if row.keys().isdisjoint({"leader_epoch", "metadata"}):
        return None
    match row.get("leader_epoch"), row.get("metadata"):
        case (None | int() as epoch, None | str() as metadata) if 0 <= (epoch or 0) <= _LARGEST_EPOCH:
            return CommittedOffset(offset, epoch, metadata or "")
    raise ValueError(
        f"{place}: leader_epoch is a number from 0 on or null, and metadata is text: {json.dumps(row)}"
    )


def write_offsets(
    path: Path, offsets: Mapping[TopicPartitionKey, CommittedOffset], topic_ids: Mapping[str, str]
) -> None:
    """Write offsets to a new file.

    It is JSON with ids of topics, leader epochs and metadata if its name ends in `.json`, else CSV.

    Raises:
        CommandError: The file exists, since it may be the only copy of earlier offsets, or cannot be written.
    """
    text = _as_json(offsets, topic_ids) if path.suffix == ".json" else _as_csv(offsets)
    try:
        with path.open("x", encoding="utf-8", newline="") as file:
            file.write(text)
    except FileExistsError:
        raise CommandError(
            f"{path} exists and is not overwritten; choose another name", ExitStatus.USAGE
        ) from None
    except OSError as error:
        raise unusable_file(path, "written", error) from None


def _as_csv(offsets: Mapping[TopicPartitionKey, CommittedOffset]) -> str:
    text = io.StringIO()
    rows: Iterable[tuple[Any, ...]] = ((*key, offsets[key].offset) for key in sorted(offsets))
    csv.writer(text, lineterminator="\n").writerows(rows)
    return text.getvalue()


def _as_json(offsets: Mapping[TopicPartitionKey, CommittedOffset], topic_ids: Mapping[str, str]) -> str:
    rows = [
        {
            "topic": topic,
            "topic_id": topic_ids.get(topic),
            "partition": partition,
            "offset": offset.offset,
            "leader_epoch": offset.leader_epoch,
            "metadata": offset.metadata,
        }
        for (topic, partition), offset in sorted(offsets.items(), key=lambda item: item[0])
    ]
    return json.dumps(rows, indent=2, ensure_ascii=False) + "\n"
