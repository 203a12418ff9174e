"""Files of groups to study; `_schemas/group.schema.json` describes them."""

import base64
import binascii
import json
import sys
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from groupwright.assignors import InvalidInputError, LoadAwareAssignor, Topic, with_weights
from groupwright.cli._cluster.model import GroupMember, GroupType, Partitions
from groupwright.cli._command_line.exit import CommandError, ExitStatus, unusable_file
from groupwright.cli._study.events import (
    MOST_JOINING,
    AddPartitions,
    ChangeWeights,
    Event,
    Join,
    Leave,
    NewMember,
    Restart,
)
from groupwright.cli._study.model import StudiedGroup, flat
from groupwright.core.spelling import did_you_mean

if TYPE_CHECKING:
    from groupwright.core import TopicPartitionKey

_T = TypeVar("_T")

_MAX_PARTITIONS = 1_000_000
_GROUP_KEYS = ("group", "type", "state", "assignor", "epoch", "members", "topics", "events")
_MEMBER_KEYS = (
    *("id", "client_id", "instance_id", "rack", "topics", "assigned", "owned", "target", "epoch", "capacity"),
    *("is_classic", "user_data", "undecodable"),
)
_NEW_KEYS = ("id", "client_id", "instance_id", "rack", "topics", "capacity")
_TOPIC_KEYS = ("partitions", "racks", "weights")


def read_study(path: Path) -> StudiedGroup:
    """Return the group in a file.

    Raises:
        CommandError: The file cannot be read, or does not follow the schema; the message has the place.
    """
    try:
        document = json.loads(path.read_text(encoding="utf-8-sig"))
    except FileNotFoundError:
        raise CommandError(f"there is no file {str(path)!r}", ExitStatus.USAGE) from None
    except (OSError, ValueError) as error:
        raise unusable_file(path, "read", error) from None
    try:
        return study_of(document)
    except ValueError as error:
        raise CommandError(f"{path}: {error}", ExitStatus.USAGE) from None


def write_study(path: Path, study: StudiedGroup) -> None:
    """Write a group to a new file.

    Raises:
        CommandError: The file exists, or cannot be written.
    """
    text = json.dumps(document_of(study), indent=2, ensure_ascii=False) + "\n"
    try:
        with path.open("x", encoding="utf-8") as file:
            file.write(text)
    except FileExistsError:
        raise CommandError(
            f"{path} exists and is not overwritten; choose another name", ExitStatus.USAGE
        ) from None
    except OSError as error:
        raise unusable_file(path, "written", error) from None


# --- From a document --------------------------------------------------------------------------------


def study_of(document: object) -> StudiedGroup:
    """Return the group in a document.

    The output of `groupwright simulate --output json` is one too: its group is in `group`.

    Raises:
        ValueError: The document does not follow the schema; the message has the place.
    """
    fields = _object(document, "the file", None)
    if isinstance(fields.get("group"), dict):
        return study_of(fields["group"])
    _check_keys(fields, "the file", _GROUP_KEYS, ("members", "topics"))
    members = _each(_member, fields["members"], "members")
    ids = [member.id for member, _ in members]
    for index, id_ in enumerate(ids):
        if id_ in ids[:index]:
            raise ValueError(f"members[{index}].id {id_!r} is that of another member too")
    raw = _list(fields["members"], "members")
    has_assignment = any("assigned" in each for each in raw)
    if has_assignment and not all("assigned" in each for each in raw):
        index = next(index for index, each in enumerate(raw) if "assigned" not in each)
        raise ValueError(
            f"members[{index}] has no assigned, but other members have: write it for all or for none"
        )
    _check_owners([member for member, _ in members])
    topics = {
        name: _topic(name, each, f"topics.{name}")
        for name, each in _object(fields["topics"], "topics", None).items()
    }
    subscribed = {topic for member, _ in members for topic in member.topics}
    return StudiedGroup(
        id=_text(fields.get("group", "group"), "group"),
        type=GroupType(_choice(fields.get("type", "classic"), "type", ("classic", "consumer"))),
        state=_text(fields.get("state", ""), "state", may_be_empty=True),
        assignor=_optional(_text)(fields.get("assignor"), "assignor"),
        members=tuple(member for member, _ in members),
        topics=topics,
        capacities={member.id: capacity for member, capacity in members if capacity != 1},
        has_assignment=has_assignment,
        events=tuple(event for each in _each(_events, fields.get("events", []), "events") for event in each),
        epoch=_optional(_integer)(fields.get("epoch"), "epoch"),
        missing=tuple(sorted(subscribed - set(topics))),
    )


def _check_owners(members: Sequence[GroupMember]) -> None:
    owners: dict[TopicPartitionKey, int] = {}
    for index, member in enumerate(members):
        for topic, number in flat(member.assigned):
            other = owners.setdefault((topic, number), index)
            if other != index:
                raise ValueError(
                    f"members[{index}].assigned has {topic}-{number}, which members[{other}] has too"
                )


def _member(value: object, place: str) -> tuple[GroupMember, float]:
    fields = _object(value, place, _MEMBER_KEYS, ("id", "topics"))
    id_ = _text(fields["id"], f"{place}.id")
    return GroupMember(
        id=id_,
        client_id=_text(fields.get("client_id", id_), f"{place}.client_id", may_be_empty=True),
        host="",
        instance_id=_optional(_text)(fields.get("instance_id"), f"{place}.instance_id"),
        rack=_optional(_text)(fields.get("rack"), f"{place}.rack"),
        topics=_texts(fields["topics"], f"{place}.topics"),
        assigned=_partitions(fields.get("assigned", {}), f"{place}.assigned"),
        owned=_partitions(fields.get("owned", {}), f"{place}.owned"),
        target=_optional(_partitions)(fields.get("target"), f"{place}.target"),
        epoch=_optional(_integer)(fields.get("epoch"), f"{place}.epoch"),
        is_classic=_boolean(fields.get("is_classic", False), f"{place}.is_classic"),
        user_data=_optional(_bytes)(fields.get("user_data"), f"{place}.user_data"),
        undecodable=_optional(_text)(fields.get("undecodable"), f"{place}.undecodable"),
    ), _capacity(fields.get("capacity", 1), f"{place}.capacity")


def _topic(name: str, value: object, place: str) -> Topic:
    if not isinstance(value, dict):
        return Topic(_count(value, place))
    fields = _object(value, place, _TOPIC_KEYS, ("partitions",))
    partitions = _count(fields["partitions"], f"{place}.partitions")
    racks = fields.get("racks")
    if racks is not None:
        racks = _each(_texts, racks, f"{place}.racks")
    weights = fields.get("weights")
    if weights is not None:
        weights = [
            float("nan") if each is None else each
            for each in _each(_optional(_weight), weights, f"{place}.weights")
        ]
    try:
        topic = Topic(partitions, racks)
        return topic if weights is None else with_weights({name: topic}, {name: weights})[name]
    except InvalidInputError as error:
        raise ValueError(f"{place}: {error}") from None


def _events(value: object, place: str) -> list[Event]:
    fields = _object(value, place, ("join", "leave", "add_partitions", "weights", "restart"))
    if len(fields) != 1:
        raise ValueError(f"{place} must have one of join, leave, add_partitions, weights and restart")
    [(kind, given)] = fields.items()
    place = f"{place}.{kind}"
    match kind:
        case "join" if isinstance(given, int) and not isinstance(given, bool):
            return [Join((NewMember(),) * _within(given, place, 1, MOST_JOINING))]
        case "join":
            return [Join(tuple(_each(_new_member, given, place)))]
        case "leave":
            return [Leave((given,) if isinstance(given, str) else _texts(given, place))]
        case "add_partitions":
            topics = _object(given, place, None).items()
            return [AddPartitions(topic, _count(number, f"{place}.{topic}")) for topic, number in topics]
        case "weights":
            weights = {
                topic: _each(_weight, of_topic, f"{place}.{topic}")
                for topic, of_topic in _object(given, place, None).items()
            }
            return [ChangeWeights(weights)]
        case _:
            return [Restart(_text(given, place))]


def _new_member(value: object, place: str) -> NewMember:
    fields = _object(value, place, _NEW_KEYS)
    return NewMember(
        client_id=_optional(_text)(fields.get("client_id"), f"{place}.client_id"),
        id=_optional(_text)(fields.get("id"), f"{place}.id"),
        topics=_optional(_texts)(fields.get("topics"), f"{place}.topics"),
        instance_id=_optional(_text)(fields.get("instance_id"), f"{place}.instance_id"),
        rack=_optional(_text)(fields.get("rack"), f"{place}.rack"),
        capacity=_capacity(fields.get("capacity", 1), f"{place}.capacity"),
    )


# --- Values -----------------------------------------------------------------------------------------


def _object(
    value: object, place: str, known: Collection[str] | None, required: Collection[str] = ()
) -> dict[str, Any]:
    """Return an object; unless `known` is None, other keys than these are errors."""
    if not isinstance(value, dict):
        raise ValueError(f"{place} must be an object, not {_shown(value)}")  # noqa: TRY004 - as for all values
    if known is not None:
        _check_keys(value, place, known, required)
    return value


def _check_keys(
    fields: Mapping[str, Any], place: str, known: Collection[str], required: Collection[str]
) -> None:
    for key in fields:
        if key not in known:
            hint = did_you_mean(key, known) or f"; known are {', '.join(known)}"
            raise ValueError(f"{place} has an unknown key {key!r}{hint}")
    for key in required:
        if key not in fields:
            raise ValueError(f"{place} has no {key}")


def _list(value: object, place: str) -> list[Any]:
    if not isinstance(value, list):
        raise ValueError(f"{place} must be a list, not {_shown(value)}")  # noqa: TRY004 - as for all values
    return value


def _each(read: Callable[[object, str], _T], value: object, place: str) -> list[_T]:
    """Return the elements of a list."""
    return [read(each, f"{place}[{index}]") for index, each in enumerate(_list(value, place))]


def _text(value: object, place: str, *, may_be_empty: bool = False) -> str:
    if not isinstance(value, str) or not (value or may_be_empty):
        raise ValueError(f"{place} must be a text that is not empty, not {_shown(value)}")
    return value


def _texts(value: object, place: str) -> tuple[str, ...]:
    if not isinstance(value, list) or not all(isinstance(each, str) and each for each in value):
        raise ValueError(f"{place} must be a list of names, not {_shown(value)}")
    return tuple(value)


def _boolean(value: object, place: str) -> bool:
    if not isinstance(value, bool):
        raise ValueError(f"{place} must be true or false, not {_shown(value)}")  # noqa: TRY004 - as for all values
    return value


def _integer(value: object, place: str) -> int:
    if not isinstance(value, int) or isinstance(value, bool):
        raise ValueError(f"{place} must be an integer, not {_shown(value)}")  # noqa: TRY004 - as for all values
    return value


def _within(value: object, place: str, least: int, most: int) -> int:
    if not least <= _integer(value, place) <= most:
        raise ValueError(f"{place} must be from {least} to {most}, not {value}")
    return _integer(value, place)


def _count(value: object, place: str) -> int:
    return _within(value, place, 0, _MAX_PARTITIONS)


def _weight(value: object, place: str) -> float:
    if not isinstance(value, int | float) or isinstance(value, bool) or not 0 <= value <= sys.float_info.max:
        raise ValueError(f"{place} must be a finite number that is not negative, not {_shown(value)}")
    return float(value)


def _capacity(value: object, place: str) -> float:
    number = _weight(value, place)
    try:
        LoadAwareAssignor(capacity=number)
    except InvalidInputError as error:
        raise ValueError(f"{place}: {error}") from None
    return number


def _choice(value: object, place: str, known: Collection[str]) -> str:
    if not isinstance(value, str) or value not in known:
        raise ValueError(f"{place} must be one of {', '.join(known)}, not {_shown(value)}")
    return value


def _partitions(value: object, place: str) -> Partitions:
    found: dict[str, tuple[int, ...]] = {}
    for topic, numbers in _object(value, place, None).items():
        listed = [_count(each, f"{place}.{topic}") for each in _list(numbers, f"{place}.{topic}")]
        if listed:
            found[topic] = tuple(sorted(set(listed)))
    return found


def _bytes(value: object, place: str) -> bytes:
    try:
        return base64.b64decode(_text(value, place, may_be_empty=True), validate=True)
    except binascii.Error:
        raise ValueError(f"{place} must be bytes in base64, not {_shown(value)}") from None


def _optional(read: Callable[[object, str], _T]) -> Callable[[object, str], _T | None]:
    return lambda value, place: None if value is None else read(value, place)


def _shown(value: object) -> str:
    text = json.dumps(value, ensure_ascii=False)
    shown = 60
    return text if len(text) <= shown else f"{text[:shown]}..."


# --- To a document ----------------------------------------------------------------------------------


def document_of(study: StudiedGroup) -> dict[str, Any]:
    """Return the document of a group, without events."""
    return {
        "group": study.id,
        "type": study.type.value,
        "state": study.state,
        "assignor": study.assignor,
        "epoch": study.epoch,
        "members": [_member_document(study, member) for member in study.members],
        "topics": {name: _topic_document(study.topics[name]) for name in sorted(study.topics)},
    }


def _member_document(study: StudiedGroup, member: GroupMember) -> dict[str, Any]:
    return {
        "id": member.id,
        "client_id": member.client_id,
        "instance_id": member.instance_id,
        "rack": member.rack,
        "topics": list(member.topics),
        **({"assigned": lists(member.assigned)} if study.has_assignment else {}),
        "owned": lists(member.owned),
        "target": None if member.target is None else lists(member.target),
        "epoch": member.epoch,
        "capacity": study.capacities.get(member.id, 1.0),
        "is_classic": member.is_classic,
        "user_data": None if member.user_data is None else base64.b64encode(member.user_data).decode("ascii"),
        "undecodable": member.undecodable,
    }


def _topic_document(topic: Topic) -> dict[str, Any]:
    return {
        "partitions": topic.partitions,
        "racks": None if topic.racks is None else [sorted(racks) for racks in topic.racks],
        "weights": None if topic.weights is None else topic.weights.tolist(),
    }


def lists(partitions: Partitions) -> dict[str, list[int]]:
    """Return partitions by topic with lists, for JSON."""
    return {topic: list(numbers) for topic, numbers in partitions.items()}
