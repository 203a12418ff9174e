"""The plan of a reset is right for any facts; targets, selections and files are understood or refused."""

import datetime as dt
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from groupwright import cli
from groupwright.cli._cluster.model import CommittedOffset, DescribedGroup, GroupMember, GroupType
from groupwright.cli._command_line.exit import CommandError, ExitStatus
from groupwright.cli.offsets.execution import execute, failures
from groupwright.cli.offsets.files import read_offsets, write_offsets
from groupwright.cli.offsets.plan import Facts, PlannedPartition, planned_deletion, planned_reset, shown
from groupwright.cli.offsets.selection import Choice, parse_choice, selected
from groupwright.cli.offsets.target import LogEnd, Offset, Offsets, Shift, Target, Timestamp, parse_target
from groupwright.cli.offsets.view import Action, members_sentence, printable, rows, subscribes
from groupwright.consumer.cluster import Broker

NOW = dt.datetime(2026, 1, 31, 12, tzinfo=dt.UTC)
NOON = int(NOW.timestamp() * 1000)
KEY = ("orders", 0)


# --- Targets


@pytest.mark.parametrize(
    ("text", "target"),
    [
        ("earliest", LogEnd.EARLIEST),
        ("latest", LogEnd.LATEST),
        ("timestamp:2026-01-31T12:00:00Z", Timestamp(NOON)),
        ("timestamp:2026-01-31T13:00:00+01:00", Timestamp(NOON)),
        ("timestamp:2026-01-31T12:00:00.250", Timestamp(NOON + 250)),  # UTC, as in Kafka's tool
        ("timestamp:1969-01-01", Timestamp(0)),  # not -1 or -2, which are the ends of a log
        ("duration:PT1H", Timestamp(NOON - 3_600_000)),
        ("duration:P1DT12H30M1.5S", Timestamp(NOON - 131_401_500)),
        ("duration:1h", Timestamp(NOON - 3_600_000)),
        ("duration:1d12h", Timestamp(NOON - 129_600_000)),
        ("offset:123", Offset(123)),
    ],
)
def test_each_form_of_a_target_is_understood(text: str, target: Target) -> None:
    assert parse_target(text, "billing", NOW) == target


@pytest.mark.parametrize(
    ("text", "advice"),
    [
        ("earlist", "did you mean 'earliest'?"),
        ("123", "did you mean 'offset:123'?"),
        ("1h", "did you mean 'duration:1h'?"),
        ("PT1H", "did you mean 'duration:PT1H'?"),
        ("2026-01-31T12:00:00Z", "did you mean 'timestamp:2026-01-31T12:00:00Z'?"),
        ("plan.csv", "did you mean 'file:plan.csv'?"),
        ("ofset:5", "did you mean 'offset:5'?"),
        ("fil:plan.csv", "did you mean 'file:plan.csv'?"),
        ("xyzzy", "write earliest, latest, timestamp:"),
        ("", "write earliest"),
        ("file:", "write earliest"),
        ("offset:-5", "--shift takes negative numbers"),
        ("offset:٣", "an offset is a number"),
        ("duration:P", "write a duration as PT1H"),
        ("duration:PT", "write a duration as PT1H"),
        ("duration:", "write earliest"),
        ("duration:99999999d", "write a duration as PT1H"),
        ("timestamp:yesterday", "write a time as"),
    ],
)
def test_a_wrong_target_is_refused_with_advice(text: str, advice: str) -> None:
    with pytest.raises(CommandError) as refused:
        parse_target(text, "billing", NOW)

    assert str(refused.value).startswith(f"--reset-to {text!r} is not understood")
    assert advice in str(refused.value)
    assert refused.value.status is ExitStatus.USAGE


# --- Selections


@pytest.mark.parametrize(
    ("text", "choice"),
    [
        ("orders", Choice("orders")),
        ("orders:0", Choice("orders", frozenset({0}))),
        ("orders:0,3-5", Choice("orders", frozenset({0, 3, 4, 5}))),
    ],
)
def test_topics_and_their_partitions_are_chosen(text: str, choice: Choice) -> None:
    assert parse_choice(text) == choice


@pytest.mark.parametrize(
    "text", ["", ":1", "orders:", "orders:a", "orders:3-1", "orders:0,,1", "orders:0-9999999"]
)
def test_a_wrong_choice_is_refused(text: str) -> None:
    with pytest.raises(CommandError, match="is not understood"):
        parse_choice(text)


def test_partitions_without_an_offset_are_chosen_by_their_topic_only() -> None:
    candidates = {("orders", 1), ("gone", 7)}

    assert selected([], candidates, {}) == [("gone", 7), ("orders", 1)]
    assert selected([Choice("orders")], candidates, {"orders": 2}) == [("orders", 0), ("orders", 1)]
    assert selected([Choice("gone")], candidates, {"orders": 2}) == [("gone", 7)]


@pytest.mark.parametrize(
    ("choice", "message"),
    [
        ("ordres", "there is no topic 'ordres', did you mean 'orders'?"),
        ("zzz", "there is no topic 'zzz', or these credentials may not see it"),
        ("orders:1-3", "the topic 'orders' has no partition 2: it has 2, from 0 on"),
    ],
)
def test_a_chosen_partition_must_exist(choice: str, message: str) -> None:
    with pytest.raises(CommandError, match=message.replace("?", r"\?")) as refused:
        selected([parse_choice(choice)], [], {"orders": 2})

    assert refused.value.status is ExitStatus.NOT_FOUND


# --- Files

offsets_of_partitions = st.dictionaries(
    st.tuples(st.from_regex(r"[a-zA-Z0-9._-]{1,20}", fullmatch=True), st.integers(0, 9_999)),
    st.builds(
        CommittedOffset,
        st.integers(0, 2**63 - 1),
        st.none() | st.integers(0, 2**31 - 1),
        st.text(st.characters(exclude_categories=["Cs"])),
    ),
    min_size=1,
)


@pytest.mark.medium
@given(offsets=offsets_of_partitions, suffix=st.sampled_from([".csv", ".json", ""]))
def test_an_exported_file_is_read_back(
    tmp_path_factory: pytest.TempPathFactory, offsets: dict[tuple[str, int], CommittedOffset], suffix: str
) -> None:
    path = tmp_path_factory.mktemp("exported") / f"offsets{suffix}"

    ids = {topic: f"id of {topic}" for topic, _ in offsets}
    write_offsets(path, offsets, ids)

    plain = {key: value.offset for key, value in offsets.items()}
    has_all = suffix == ".json"
    assert read_offsets(path, "billing") == (plain, ids if has_all else {}, offsets if has_all else {})


@pytest.mark.parametrize(
    "text",
    [
        "orders,0,5\n",
        '"orders",0,5\r\n\r\n',
        "topic,partition,offset\norders, 0, 5\n",
        "billing,orders,0,5\nother,orders,0,9\n",
        "\ufefforders,0,5",
    ],
)
def test_forms_of_csv(tmp_path: Path, text: str) -> None:
    (tmp_path / "plan.csv").write_text(text, encoding="utf-8")

    assert read_offsets(tmp_path / "plan.csv", "billing") == ({KEY: 5}, {}, {})


def test_json_without_metadata_has_an_offset_alone(tmp_path: Path) -> None:
    path = tmp_path / "plan.json"
    path.write_text('[{"topic": "orders", "partition": 0, "offset": 5, "topic_id": "id-1"}]')

    assert read_offsets(path, "billing") == ({KEY: 5}, {"orders": "id-1"}, {})


@pytest.mark.parametrize(
    ("name", "text", "reason"),
    [
        ("a.csv", "", "has no offsets of the group 'billing'"),
        ("a.csv", "other,orders,0,5", "has no offsets of the group 'billing'"),
        ("a.csv", "orders,0,5\norders,0,6", "line 2: orders-0 has an offset already"),
        ("a.csv", "orders,0,-5", "line 1: partitions and offsets are not negative"),
        ("a.csv", "orders,5", "line 1 is not topic,partition,offset: 'orders,5'"),
        ("a.csv", "orders,zero,5", "line 1 is not topic,partition,offset: 'orders,zero,5'"),
        ("a.csv", "a,b,orders,0,5", "line 1 is not topic,partition,offset"),
        ("a.json", "{}", "write a list"),
        ("a.json", "[1]", "entry 0 has no topic, partition and offset: 1"),
        ("a.json", '[{"topic": "orders", "partition": 0, "offset": "5"}]', "entry 0 has no topic"),
        ("a.json", "[", "cannot be read"),
        (
            "a.json",
            '[{"topic": "orders", "partition": 0, "offset": 5, "metadata": 1}]',
            "entry 0: leader_epoch is a number from 0 on or null, and metadata is text",
        ),
        (
            "a.json",
            '[{"topic": "orders", "partition": 0, "offset": 5, "leader_epoch": 3000000000}]',
            "entry 0: leader_epoch is a number from 0 on",
        ),
    ],
)
def test_a_wrong_file_is_refused_with_the_place(tmp_path: Path, name: str, text: str, reason: str) -> None:
    (tmp_path / name).write_text(text)

    with pytest.raises(CommandError) as refused:
        read_offsets(tmp_path / name, "billing")

    assert reason in str(refused.value)
    assert refused.value.status is ExitStatus.USAGE


def test_a_missing_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(CommandError, match=r"cannot be read: No such file or directory$"):
        read_offsets(tmp_path / "none.csv", "billing")


def test_a_folder_that_does_not_exist_is_said_without_a_number(tmp_path: Path) -> None:
    with pytest.raises(CommandError, match=r"cannot be written: No such file or directory$"):
        write_offsets(tmp_path / "none" / "a.csv", {KEY: CommittedOffset(5)}, {})


def test_a_time_is_written_as_it_is_read() -> None:
    assert str(Timestamp(NOON + 250)) == "2026-01-31T12:00:00.250Z"


def test_an_export_does_not_overwrite_the_only_copy(tmp_path: Path) -> None:
    write_offsets(tmp_path / "a.csv", {KEY: CommittedOffset(5)}, {})

    with pytest.raises(CommandError, match="exists and is not overwritten"):
        write_offsets(tmp_path / "a.csv", {KEY: CommittedOffset(0)}, {})
    with pytest.raises(CommandError, match="cannot be written"):
        write_offsets(tmp_path / "none" / "a.csv", {KEY: CommittedOffset(0)}, {})

    assert (tmp_path / "a.csv").read_text() == "orders,0,5\n"


# --- Plans


def planned(target: Target, committed: int | None = 50, **facts: object) -> PlannedPartition:
    known = {
        "committed": {} if committed is None else {KEY: CommittedOffset(committed, 3, "mine")},
        "begins": {KEY: 10},
        "ends": {KEY: 100},
        **facts,
    }
    [row] = planned_reset([KEY], target, Facts(**known))  # type: ignore[arg-type]
    return row


@pytest.mark.parametrize(
    ("target", "after", "note"),
    [
        (LogEnd.EARLIEST, 10, ""),
        (LogEnd.LATEST, 100, ""),
        (Offset(70), 70, ""),
        (Offset(3), 10, "3 is before the log: its beginning"),
        (Offset(300), 100, "300 is beyond the log: its end"),
        (Shift(-20), 30, ""),
        (Shift(20), 70, ""),
        (Shift(-2000), 10, "-1950 is before the log: its beginning"),
        (Shift(51), 100, "101 is beyond the log: its end"),
        (Offsets(Path("a"), {KEY: 42}), 42, ""),
    ],
)
def test_the_new_offset_is_the_wanted_one_within_the_log(target: Target, after: int, note: str) -> None:
    row = planned(target)

    assert (row.before, row.after, row.lag_after, row.note, row.error) == (50, after, 100 - after, note, "")


@pytest.mark.parametrize(
    ("target", "reason"),
    [
        (Offsets(Path("a"), {KEY: 300}), "300 is beyond the end of the log, 100: the file was written for"),
        (Offsets(Path("a"), {KEY: 42}, {"orders": "a"}), "was written for a former topic of this name"),
        (Offsets(Path("a"), {KEY: 42}, {"orders": "b"}), ""),
        (Offsets(Path("a"), {KEY: 42}, {"payments": "a"}), ""),
    ],
)
def test_a_file_of_a_former_topic_is_refused(target: Target, reason: str) -> None:
    row = planned(target, topic_ids={"orders": "b"})

    assert reason in row.error
    assert (row.after, row.is_change) == ((None, False) if reason else (42, True))


def restored(of_file: CommittedOffset, **facts: Any) -> PlannedPartition:
    """Return the plan of a file with an offset, of a group that has committed 50 with the metadata `mine`."""
    file = Offsets(Path("a.json"), {KEY: of_file.offset}, {"orders": "id-1"}, {KEY: of_file})
    return planned(file, topic_ids={"orders": "id-1"}, **facts)


def test_the_metadata_and_the_leader_epoch_of_a_file_go_with_its_offset() -> None:
    of_file = CommittedOffset(42, 7, "theirs")

    row = restored(of_file)
    assert (row.after, row.restored, row.is_change, row.note) == (42, of_file, True, "")
    clamped = restored(of_file, begins={KEY: 45})
    assert (clamped.after, clamped.restored) == (45, None)
    without_id = planned(Offsets(Path("a.json"), {KEY: 42}, {}, {KEY: of_file}), topic_ids={"orders": "id-1"})
    assert without_id.restored == CommittedOffset(42, None, "theirs")


def test_other_metadata_at_the_same_offset_are_a_change() -> None:
    row = restored(CommittedOffset(50, 3, "theirs"))

    assert (row.is_change, row.note) == (True, "the offset stays, with the metadata of the file")
    assert not restored(CommittedOffset(50, 3, "mine")).is_change
    assert not planned(Offsets(Path("a.csv"), {KEY: 50})).is_change


def test_the_lag_of_a_plan_counts_to_the_last_stable_offset() -> None:
    row = planned(Offset(20), stable={KEY: 60})
    assert (row.end, row.lag, row.lag_after) == (100, 10, 40)

    latest = planned(LogEnd.LATEST, stable={KEY: 60})
    assert (latest.after, latest.lag_after) == (100, 0)
    [beyond] = shown([KEY], Facts({KEY: CommittedOffset(80)}, {KEY: 10}, {KEY: 100}, stable={KEY: 60}))
    assert beyond.lag == 0
    [later] = shown([KEY], Facts({KEY: CommittedOffset(80)}, {KEY: 10}, {KEY: 100}, stable={KEY: 105}))
    assert later.lag == 20


def test_the_lag_of_an_offset_beyond_the_end_is_not_known() -> None:
    [row] = shown([KEY], Facts({KEY: CommittedOffset(300)}, {KEY: 10}, {KEY: 100}))

    assert (row.lag, row.note) == (None, "the committed offset is beyond the end of the log")


def test_a_time_is_the_first_message_since_then_or_the_end() -> None:
    assert planned(Timestamp(1), at_time={KEY: 60}).after == 60
    none = planned(Timestamp(1), at_time={KEY: None})
    assert (none.after, none.note) == (100, "no message since then: the end")
    unknown = planned(Timestamp(1), errors={KEY: "the partition has no leader"})
    assert (unknown.after, unknown.error) == (None, "the partition has no leader")


def test_a_shift_leaves_a_partition_without_an_offset_alone() -> None:
    row = planned(Shift(1), committed=None)

    assert (row.after, row.note, row.is_change) == (None, "has no committed offset to shift", False)


def test_a_partition_whose_log_is_not_known_has_no_plan() -> None:
    row = planned(Offset(5), begins={}, errors={KEY: "the partition does not exist"})

    assert (row.after, row.error, row.is_change) == (None, "the partition does not exist", False)


def test_a_deletion_leaves_no_offset() -> None:
    one, other = planned_deletion([KEY, ("orders", 1)], Facts(committed={KEY: CommittedOffset(5)}))

    assert (one.before, one.after, one.is_change) == (5, None, True)
    assert (other.is_change, other.note) == (False, "has no committed offset")


targets = st.one_of(
    st.sampled_from(LogEnd),
    st.builds(Offset, st.integers(0, 2**63 - 1)),
    st.builds(Shift, st.integers(-(2**63), 2**63)),
    st.builds(Timestamp, st.integers(0, 2**63 - 1)),
)


@given(
    target=targets,
    committed=st.none() | st.integers(0, 2**63 - 1),
    log=st.tuples(st.integers(0, 2**62), st.integers(0, 2**62)).map(sorted),
    found=st.none() | st.integers(0, 2**63 - 1),
    known=st.booleans(),
)
def test_no_facts_lead_out_of_the_log(
    target: Target, committed: int | None, log: list[int], found: int | None, *, known: bool
) -> None:
    begin, end = log
    row = planned(
        target, committed, begins={KEY: begin}, ends={KEY: end} if known else {}, at_time={KEY: found}
    )

    if row.error or (isinstance(target, Shift) and committed is None):
        assert row.after is None
        assert not row.is_change
        assert known != bool(row.error)
        return
    assert row.after is not None
    assert begin <= row.after <= end
    assert row.lag_after == end - row.after
    assert row.is_change == (row.after != committed)
    # The same reset once more changes nothing.
    assert (
        isinstance(target, Shift)
        or not planned(
            target, row.after, begins={KEY: begin}, ends={KEY: end}, at_time={KEY: found}
        ).is_change
    )


def test_a_shown_partition_does_not_change() -> None:
    [row] = shown([KEY], Facts(committed={KEY: CommittedOffset(5)}, errors={KEY: "no leader"}))

    assert (row.after, row.is_change, row.note, row.error) == (5, False, "no leader", "")


def test_metadata_cannot_control_the_terminal() -> None:
    [row] = rows([PlannedPartition(*KEY, CommittedOffset(5, 3, "a\x1b[2J\nb\0"), 0, 9, 5)], Action.SHOW)

    assert row["metadata"] == "a\x1b[2J\nb"
    assert printable(row)["metadata"] == r"a\x1b[2J\nb"


# --- What was written


def test_each_partition_without_its_planned_offset_is_named() -> None:
    plan = [
        PlannedPartition("orders", number, CommittedOffset(5), 0, 100, after)
        for number, after in enumerate((10, 10, 10, 5, None, None))
    ]
    keys = [each.key for each in plan]
    answers = {keys[0]: None, keys[1]: "Unknown member", keys[2]: None, keys[4]: None, keys[5]: None}
    held = {keys[0]: 10, keys[1]: 5, keys[2]: 77, keys[3]: 5, keys[5]: 5}

    found = failures(plan, answers, {key: CommittedOffset(offset) for key, offset in held.items()})

    assert found == {
        keys[1]: "Unknown member; its offset is 5",
        keys[2]: "accepted, and then changed by another client; its offset is 77",
        keys[5]: "accepted, and then changed by another client; its offset is 5",
    }
    outcomes = [row["outcome"] for row in rows(plan, Action.RESET, is_executed=True, failures=found)]
    assert outcomes == ["done", "failed", "failed", "unchanged", "done", "failed"]


def test_a_lost_response_is_no_failure_if_the_offset_is_held() -> None:
    plan = [PlannedPartition(*KEY, None, 0, 100, 10)]

    assert not failures(plan, {KEY: "the broker did not respond"}, {KEY: CommittedOffset(10)})
    assert failures(plan, {KEY: "the broker did not respond"}, {}) == {
        KEY: "the broker did not respond; its offset is none"
    }


class Coordinator:
    """Coordinator that stores committed offsets, and their metadata if `keeps_metadata`."""

    def __init__(self, *, keeps_metadata: bool = True) -> None:
        self.keeps_metadata = keeps_metadata
        self.held: dict[tuple[str, int], CommittedOffset] = {}

    def commit(
        self, _: str, offsets: dict[tuple[str, int], CommittedOffset]
    ) -> dict[tuple[str, int], str | None]:
        self.held = {
            key: each if self.keeps_metadata else CommittedOffset(each.offset)
            for key, each in offsets.items()
        }
        return dict.fromkeys(offsets)

    def committed(self, _: list[str]) -> dict[str, dict[tuple[str, int], CommittedOffset]]:
        return {"billing": self.held}


def test_metadata_and_leader_epoch_are_written_and_the_metadata_read_back() -> None:
    plan = [restored(CommittedOffset(42, 7, "theirs"))]

    kept, lost = Coordinator(), Coordinator(keeps_metadata=False)
    assert not execute(kept, "billing", plan).failures  # type: ignore[arg-type]
    assert kept.held == {KEY: CommittedOffset(42, 7, "theirs")}
    assert execute(lost, "billing", plan).failures == {  # type: ignore[arg-type]
        KEY: "accepted, and then changed by another client; its offset is 42, with other metadata"
    }


# --- Members


def group(
    *members: GroupMember, state: str = "Stable", type_: GroupType = GroupType.CLASSIC
) -> DescribedGroup:
    return DescribedGroup("billing", type_, state, "consumer", "", members, Broker(1, "h", 9))


def member(number: int, **fields: object) -> GroupMember:
    return GroupMember(f"id-{number}", f"worker-{number}", "127.0.0.1", **fields)  # type: ignore[arg-type]


def test_members_are_named_up_to_five() -> None:
    assert members_sentence(group(member(1))) == "the group 'billing' has 1 member (worker-1)"
    assert members_sentence(group(*map(member, range(7)))) == (
        "the group 'billing' has 7 members (worker-0, worker-1, worker-2, worker-3, worker-4 and 2 more)"
    )


def test_a_member_may_subscribe_if_its_topics_are_not_known() -> None:
    assert subscribes(group(member(1, topics=("orders",))), {"orders"})
    assert not subscribes(group(member(1, topics=("orders",))), {"payments"})
    assert subscribes(group(member(1, topics=("orders",), assigned={"payments": (1,)})), {"payments"})
    assert subscribes(group(member(1)), {"payments"})
    by_pattern = member(1, topics=("a",), topic_regex="pay.*")
    assert subscribes(group(by_pattern, state="Reconciling", type_=GroupType.CONSUMER), {"payments"})
    assert not subscribes(group(by_pattern, state="Stable", type_=GroupType.CONSUMER), {"payments"})
    assert subscribes(group(state="PreparingRebalance"), {"payments"})
    assert not subscribes(group(state="Empty"), {"payments"})


def test_the_schema_is_strict() -> None:
    path = Path(cli.__file__).parent / "_schemas" / "offsets.schema.json"
    schema = json.loads(path.read_text(encoding="utf-8"))
    row = schema["properties"]["partitions"]["items"]

    for each in (schema, row):
        assert each["additionalProperties"] is False
        assert each["required"] == list(each["properties"])
        assert all("description" in value for value in each["properties"].values())
    assert list(rows([PlannedPartition(*KEY, None, 0, 1)], Action.SHOW)[0]) == row["required"]
