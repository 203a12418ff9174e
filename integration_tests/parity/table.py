"""Table of differences between our consumer and confluent-kafka's, with reasons.

A difference without a row fails its scenario, and a row that none of its scenarios shows fails a test of its
own. The table is part of the consumer's README; `python -m integration_tests.parity table` writes it.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatch
from pathlib import Path

from integration_tests.harness.pages import with_block

PAGE = Path(__file__).parents[2] / "consumer" / "README.md"


@dataclass(frozen=True, slots=True)
class Row:
    """One intended difference."""

    name: str
    """A short name, used by tests."""
    subject: str
    """The method, callback or setting concerned."""
    original: str
    """Behaviour of confluent-kafka's consumer."""
    ours: str
    """Behaviour of Groupwright's consumer."""
    reason: str
    scenarios: tuple[str, ...]
    """Names of the scenarios that show it, as patterns with ``*``."""
    pairs: tuple[tuple[str, str], ...] = field(default=())
    """Regular expressions (original, ours) over the lines, joined by ``\\n``; empty if there are no lines."""
    in_fuzzing: bool = False
    """True if random programs may show it too."""
    by_chance: bool = False
    """True if the original does it in some runs only, so that a run of its scenarios may not show it."""

    def explains(self, scenario: str, original: Sequence[str], ours: Sequence[str]) -> bool:
        """Return whether this row is about these lines."""
        if not self.covers(scenario):
            return False
        left, right = "\n".join(original), "\n".join(ours)
        return any(re.fullmatch(one, left) and re.fullmatch(other, right) for one, other in self.pairs)

    def covers(self, scenario: str) -> bool:
        """Return whether the row may explain differences of this scenario."""
        if scenario.startswith("program"):
            return self.in_fuzzing
        return any(fnmatch(scenario, pattern) for pattern in self.scenarios)


ROWS: tuple[Row, ...] = (
    Row(
        name="unassign-in-on-assign",
        subject="`unassign()` in an eager `on_assign`",
        original="the member waits for `assign` forever: it never rejoins, and `close` calls no `on_revoke`",
        ours="as `assign([])`: nothing is assigned, and the member goes on",
        reason="a member that takes part in no rebalance holds the group up, and is expelled from it",
        scenarios=("unassigning_in_an_eager_on_assign",),
        pairs=((r"", r"on_revoke t1\[0\]"),),
    ),
    Row(
        name="refused-in-on-assign",
        subject="`on_assign` whose call to assign was refused",
        original="nothing is assigned",
        ours="the partitions are assigned from their committed offsets, as without a callback",
        reason="the group has assigned them to this member: no other member would read them",
        scenarios=(
            "a_refused_call_in_on_assign_*",
            "on_assign_assigns_in_a_cooperative_group",
            "on_assign_adds_incrementally_in_an_eager_group",
        ),
        pairs=(
            (r"assigned nothing", r"assigned t1\[0\]"),
            (r"", r"(messages t1\[0\] 0\.\.2\n)?on_revoke t1\[0\]"),
            (r"", r"messages t1\[0\] 0\.\.2"),
            (r"", r"t1\[0\]@3"),
        ),
    ),
    Row(
        name="joins-without-topics",
        subject="a subscription of which no topic exists",
        original="the member does not join before one does",
        ours="it joins, and `on_assign` is called with nothing; a static member stays until its session ends",
        reason="its group and its callbacks are settled, as with the Java client",
        scenarios=(
            "a_subscription_of_which_nothing_exists",
            "a_regular_expression_that_matches_nothing_yet",
            "a_pattern_that_matches_nothing_yet",
            "a_topic_that_is_made_later",
            "a_topic_is_made_anew",
            "the_only_topic_is_deleted",
        ),
        pairs=(
            (r"", r"on_assign nothing(\non_revoke nothing)?"),
            (r"", r"on_revoke nothing"),
            (r"", r"on_assign nothing\non_revoke nothing"),
            (r"members: 0", r"members: 1"),
        ),
    ),
    Row(
        name="lost-when-fenced",
        subject="`on_lost` of a fenced member",
        original="no callback is called",
        ours="called",
        reason="the application learns that its partitions are another's, as in the Java client",
        scenarios=(
            "a_fenced_static_member_has_lost_its_partitions",
            "a_fenced_static_member_has_error_cb",
            "a_second_static_member_of_the_same_id",
        ),
        pairs=((r"", r"on_lost t1\[0\]"),),
    ),
    Row(
        name="partly-failed-commit",
        subject="`on_commit` of a commit that fails in part",
        original="gives each partition an error, those that were stored too",
        ours="gives it to those that failed",
        reason="the application learns what was stored",
        scenarios=(
            "a_commit_that_fails_in_part_tells_on_commit_where",
            "a_commit_of_an_unknown_topic_fails_soon",
        ),
        pairs=((r"on_commit UNKNOWN_TOPIC_OR_PART .*", r"on_commit UNKNOWN_TOPIC_OR_PART .*"),),
        in_fuzzing=True,
    ),
    Row(
        name="on-commit-first",
        subject="`on_commit` of commits made before `commit(asynchronous=False)`",
        original="is called by a later poll",
        ours="has been called when it returns, if the polling thread commits",
        reason="results come in the order of the commits, as Java's `commitSync` promises",
        scenarios=("on_commit_has_run_before_a_later_commit_returns",),
        pairs=((r"on_commit None \[t1\[0\]@4\]", ""), ("", r"on_commit None \[t1\[0\]@4\]")),
    ),
    Row(
        name="committed in a former assignment",
        subject="a commit of a partition that came back and was read again from a lower offset",
        original="fails with `_NO_OFFSET` up to the offset that the member committed before the rebalance",
        ours="is stored",
        reason="another member, or an operator, may have committed a lower offset meanwhile",
        scenarios=("a_partition_comes_back_and_is_read_again_from_below",),
        pairs=(
            (
                r"commit\(asynchronous=False\) raises KafkaException\(_NO_OFFSET\)",
                r"commit\(asynchronous=False\) = \[.*\]",
            ),
            (r"on_commit _NO_OFFSET .*", r"on_commit None .*"),
            # Other partitions are committed beside it, or an earlier commit was of a higher offset.
            (
                r"commit\(asynchronous=False\) = \[.*t\d\[[\d.]+\][,\]].*",
                r"commit\(asynchronous=False\) = \[.*\]",
            ),
            (r"on_commit None \[.*t\d\[[\d.]+\][,\]].*", r"on_commit None \[.*\]"),
            (r"t\d\[\d\]@\d+", r"t\d\[\d\]@\d+"),
        ),
        in_fuzzing=True,
    ),
    Row(
        name="commit after leaving",
        subject="commits of partitions assigned by hand, after `unsubscribe`",
        original="fail with `UNKNOWN_MEMBER_ID`, because they carry the generation of the former group",
        ours="are stored, without a generation",
        reason="a consumer that has left its group commits as one that never was in it",
        scenarios=("by_hand_committed_after_leaving",),
        pairs=(
            (
                r"commit\(asynchronous=False\) raises KafkaException\(UNKNOWN_MEMBER_ID\)",
                r"commit\(asynchronous=False\) = \[.*\]",
            ),
            (r"on_commit UNKNOWN_MEMBER_ID \[.*\]", r"on_commit None \[.*\]"),
            (r"stored \[-1001\]", r"stored \[10\]"),
            ("", r"t\d\[\d\]@\d+"),
        ),
        in_fuzzing=True,
    ),
    Row(
        name="never works",
        subject=(
            "`bootstrap.servers` without a port, an empty `partition.assignment.strategy`, "
            "a topic name that is no string"
        ),
        original="accepts it, and never connects, joins no group, or subscribes to a topic named `b'…'`",
        ours="`ConfigurationError` at construction; `TypeError` from `subscribe`",
        reason="an error at once says what is wrong, and nothing that works is refused",
        scenarios=("what_could_never_work_is_refused_at_once",),
        pairs=(
            (r"(subscribe\(.*\) = None\n?)+", r"(subscribe\(.*\) raises TypeError\n?)+"),
            (
                r"(Consumer with .* = None\n?)+",
                r"(Consumer with .* raises KafkaException\(_INVALID_ARG\)\n?)+",
            ),
        ),
    ),
    Row(
        name="nearly right",
        subject="a `Mapping` that is no dict as configuration, `None` for a rebalance callback",
        original="raises `TypeError`",
        ours="takes it: `None` is no callback",
        reason="confluent-kafka's own type hints allow `None`, and wrappers hand their defaults on",
        scenarios=("arguments_that_are_nearly_right",),
        pairs=(
            (r"a mapping( proxy)? raises TypeError", r"a mapping( proxy)? = None"),
            (r"on_\w+=None raises TypeError", r"on_\w+=None = None"),
            (r"subscribe\(\[.*\]\) = None", r"subscribe\(\[.*\]\) raises TypeError"),
        ),
    ),
    Row(
        name="impossible name",
        subject="a topic's name that no broker takes, beside another topic",
        original="nothing is assigned or read",
        ours="the other topic is read",
        reason="both return the error; one wrong name need not stop the others",
        scenarios=("a_name_that_cannot_be_beside_a_topic",),
        pairs=(
            (
                r"read 3 = not within 3 s",
                r"on_assign t1\[0\]\nmessages t1\[0\] 0\.\.2\nread 3 = done\non_revoke t1\[0\]",
            ),
            ("", r"t1\[0\]@3"),
        ),
    ),
    Row(
        name="by hand after unsubscribe",
        subject="a commit of partitions assigned by hand after `unsubscribe`",
        original="fails with `UNKNOWN_MEMBER_ID`, always",
        ours="is stored",
        reason="what is assigned by hand belongs to no generation; as in Java",
        scenarios=("a_commit_by_hand_after_unsubscribe*",),
        pairs=(
            (
                r"commit\(.*\) raises KafkaException\(UNKNOWN_MEMBER_ID\)",
                r"commit\((offsets|message)=.*\) = .*",
            ),
            (
                r"commit\(asynchronous=False\) raises KafkaException\(UNKNOWN_MEMBER_ID\)",
                r"commit\(asynchronous=False\) raises KafkaException\(_NO_OFFSET\)",
            ),
            ("", r"t1\[0\]@2\nt2\[0\]@5"),
        ),
    ),
    Row(
        name="commit during a join",
        subject="an eager member's synchronous commit while JoinGroup waits for other members",
        original="waits behind it until all have joined, `max.poll.interval.ms` at most",
        ours="raises `REBALANCE_IN_PROGRESS` at once",
        reason="the generation of the commit is over by then: it could only be refused",
        scenarios=("a_commit_during_a_join",),
        pairs=(
            ("hangs", ""),
            ("", r"commit\(offsets=(?s:.*)"),
            ("", r"(un)?subscribe(?s:.*)"),
            ("", r"(messages t1\[\d\] .*\n)?close\(\) = None"),
        ),
    ),
    Row(
        name="commit during a cooperative join",
        subject="a cooperative member's synchronous commit while JoinGroup waits for other members",
        original="waits behind it until all have joined, and fails with `ILLEGAL_GENERATION`",
        ours="waits until the round has ended, and is stored",
        reason="the member has kept the partitions, so it commits them in the new generation",
        scenarios=("a_commit_during_a_cooperative_join",),
        pairs=((r"commit\(.*\) raises KafkaException\(ILLEGAL_GENERATION\)", r"commit\(.*\) = .*"),),
    ),
    Row(
        name="commit without an answer",
        subject="a synchronous commit that no broker answers",
        original="waits, beyond `socket.timeout.ms`",
        ours="raises `_TIMED_OUT` after `socket.timeout.ms`",
        reason="an application must be able to go on, and to stop",
        scenarios=("a_synchronous_commit_that_no_broker_answers",),
        pairs=(
            ("hangs", ""),
            ("", r"commit\(asynchronous=False\) raises KafkaException\(_TIMED_OUT\)\nclose\(\) = None"),
            ("", r"t1\[0\]@10"),
        ),
    ),
    Row(
        name="deleted-reported-once",
        subject="the error of a deleted topic",
        original="may come twice: of a fetch that was refused, and of the next metadata",
        ours="comes once",
        reason="it is one fact",
        scenarios=("a_deleted_topic_is_an_error_and_its_partitions_are_revoked",),
        pairs=(("error UNKNOWN_TOPIC_OR_PART of t2", ""),),
        by_chance=True,
    ),
    Row(
        name="deleted-at-second-look",
        subject="partitions of a deleted topic",
        original="are revoked at the first metadata without the topic",
        ours="are revoked at the second, about 2 s later",
        reason="metadata reaches brokers one by one: a broker without the topic must not cause a revocation",
        scenarios=("*_deleted*", "a_topic_is_made_anew", "a_regular_expression_finds_topics_made_later"),
        pairs=(
            (r"until (.*) (left|assigned) = done \[fast\]", r"until (.*) (left|assigned) = done \[slow\]"),
        ),
    ),
    Row(
        name="deleted-in-cooperative-group",
        subject="partitions of a deleted topic in a cooperative group",
        original="`on_lost` is called, and the member joins again",
        ours="the leader's next assignment leaves them out: `on_revoke` is called",
        reason="as in the Java client; no other member can own them, so the application may still commit",
        scenarios=("one_of_two_topics_of_a_cooperative_group_is_deleted",),
        pairs=(
            ("", r"on_assign nothing"),
            (r"on_lost t2\[0\](\non_assign nothing)?", r"on_revoke t2\[0\](\non_assign nothing)*"),
        ),
    ),
    Row(
        name="another topic in a cooperative group",
        subject="`subscribe` of a cooperative member to another topic, which librdkafka does not know yet",
        original="the former topic is taken for deleted: half a second later `on_lost` is called",
        ours="`on_revoke` is called at once, and what was consumed is committed",
        reason="nothing is lost: no other member can own the partitions before they are revoked",
        scenarios=("a_cooperative_member_subscribes_to_another_topic",),
        pairs=(
            (r"on_lost t1\[0\]", r"on_revoke t1\[0\]"),
            (r"stored \[-1001\]", r"stored \[3\]"),
            ("", r"t1\[0\]@3"),
        ),
    ),
    Row(
        name="close before on_assign",
        subject="`close` before a poll has brought the assignment",
        original="calls `on_assign`, and no `on_revoke`",
        ours="calls neither",
        reason="each on_assign has an on_revoke or on_lost",
        scenarios=("close_before_a_poll_has_brought_the_assignment",),
        pairs=((r"on_assign t1\[0\]", ""),),
    ),
    Row(
        name="unsubscribe before on_assign",
        subject="`unsubscribe` before a poll has brought the assignment",
        original="the next poll calls `on_assign` and `on_revoke`; what was assigned by hand is lost",
        ours="calls neither, and what was assigned by hand is read and committed as before",
        reason="the application has said that it wants no partitions of the group",
        scenarios=("by_hand_after_unsubscribe_before_a_poll_has_brought_the_assignment",),
        pairs=(
            (
                r"on_assign .*\non_revoke .*\nassignment\(\) = \[\]\ncommit\(.*\) raises .*_MEMBER_ID\)",
                r"messages .* 10\.\.19\nassignment\(\) = \[t1\[0\]@0\]\ncommit\(.*\) = \[t1\[0\]@10\]",
            ),
            (r"stored \[-1001\]", r"stored \[10\]"),
            ("", r"t1\[0\]@10"),
        ),
    ),
    Row(
        name="callback raises in poll",
        subject="a callback that raises in a `poll` that waits",
        original="loses the message that this poll would have returned",
        ours="the next poll returns that message",
        reason="a message that was never returned must not count as consumed",
        scenarios=("on_assign_raises_in_a_poll_that_waits_for_messages",),
        pairs=((r"messages t1\[0\] 1\.\.4", r"messages t1\[0\] 0\.\.4"),),
    ),
    Row(
        name="callbacks raise in close",
        subject="several callbacks that raise in one `close`",
        original="raises the last exception; the others are lost",
        ours="raises the first exception; the others are logged at ERROR, with their tracebacks",
        reason="a flush that failed must not stay unknown",
        scenarios=("on_commit_and_on_revoke_raise_in_close",),
        pairs=(("raises on_revoke", "raises on_commit"),),
    ),
    Row(
        name="slow callback in poll(0)",
        subject="a slow callback in a `poll` with a timeout of 0",
        original="its time counts towards `max.poll.interval.ms`, unlike in a `poll` that waits",
        ours="its time does not count in either",
        reason="a shorter timeout of `poll` must not remove a member from its group",
        scenarios=("an_on_commit_beyond_the_poll_interval_in_polls_that_do_not_wait",),
        pairs=((r"error _MAX_POLL_EXCEEDED\non_lost t1\[0\]\non_assign t1\[0\]", ""),),
    ),
    Row(
        name="cancelled poll",
        subject="`AIOConsumer.poll` that is cancelled, by `asyncio.wait_for` for example",
        original="loses the message that its thread takes afterwards",
        ours="the next poll returns that message",
        reason="a message that was never returned must not count as consumed",
        scenarios=("aio_message_after_a_cancelled_poll",),
        pairs=((r"messages t1\[0\] 6\.\.7", r"messages t1\[0\] 5\.\.7"),),
    ),
    Row(
        name="dropped",
        subject="a consumer that is dropped, or whose interpreter ends, without `close`",
        original="its member stays in the group until the session ends",
        ours="its member leaves the group",
        reason="no other member reads the partitions of a member that no longer exists",
        scenarios=("a_consumer_dropped_without_close", "an_interpreter_that_ends_*"),
        pairs=(("members: 1", "members: 0"),),
    ),
    Row(
        name="close in __del__",
        subject="`close` in an object's `__del__` while the interpreter ends",
        original="commits, calls `on_revoke`, leaves",
        ours="commits nothing: the member has left already, as without `close`",
        reason="Python has stopped the membership's thread by then; `atexit` and `with` come in time",
        scenarios=("a_consumer_in_an_object_with_a_finalizer",),
        pairs=(
            (r"prints \['read', '3', 'on_revoke', 'closed'\](.*)", r"prints \['read', '3', 'closed'\](.*)"),
            (r"stored \[3\]", r"stored \[-1001\]"),
            (r"t1\[0\]@3", ""),
        ),
    ),
    Row(
        name="fork",
        subject="a parent's consumer in a forked child",
        original="`poll` returns nothing, ever; `close` hangs",
        ours="methods raise `RuntimeError`; `close` does nothing",
        reason="none of the threads that serve the consumer exists in the child",
        scenarios=("a_child_that_uses_its_parents_consumer", "a_child_that_closes_its_parents_consumer"),
        pairs=(
            ("child None, ends by exit 0", "child raises RuntimeError, ends by exit 0"),
            ("child says nothing, ends by signal 9", "child None, ends by exit 0"),
        ),
    ),
    Row(
        name="close in a callback",
        subject="`close` in a callback",
        original="crashes the process in `on_assign`, hangs in `on_revoke` and `on_commit`",
        ours="raises `RuntimeError`; the consumer stays open",
        reason="the call cannot work, since the callback's own call is still under way",
        scenarios=("close_in_on_assign", "close_in_on_revoke", "close_in_on_commit"),
        pairs=(
            ("", r"close\(\) raises RuntimeError\n(?s:.*)"),
            ("", r"subscribe(?s:.*)close\(\) raises RuntimeError\n(?s:.*)"),
            (r"hangs|the process died.*", r"members: 0"),
            ("", r"t1\[0\]@\d+"),
        ),
    ),
    Row(
        name="close without answers",
        subject="`close` with something to commit, while no broker answers",
        original="waits for the commit's answer, beyond `socket.timeout.ms` and the session",
        ours="ends within 10 s, as does another thread's commit; calls `on_lost` if the session has expired",
        reason="a service must stop when it is ordered to, and others may own the partitions by then",
        scenarios=(
            "close_with_a_broker_that_is_silent",
            "close_with_a_broker_that_is_down",
            "close_beside_a_synchronous_commit_that_is_not_answered",
        ),
        pairs=(
            ("hangs", ""),
            ("hangs", "alive: False"),
            ("", r"ended by raises KafkaException\(_DESTROY\)"),
            ("", r"t1\[0\]@5"),
            ("", r"close\(\) = None"),
            (r"on_revoke t1\[0\]", r"on_lost t1\[0\]"),
            (r"on_revoke t1\[0\]", r"on_lost t1\[0\]\nclose\(\) = None"),
        ),
    ),
    Row(
        name="refused group",
        subject="a group that this client may not read",
        original="one error message",
        ours="two: librdkafka's handle, which fetches, reports it too",
        reason="to filter the second would cost each poll",
        scenarios=("rights_to_the_group_come_later",),
        pairs=(("", "error GROUP_AUTHORIZATION_FAILED"),),
    ),
    Row(
        name="closed twice",
        subject="a second `close` of an `AIOConsumer`",
        original="raises `RuntimeError`",
        ours="does nothing, as the synchronous consumer's",
        reason="a `finally` or `async with` that closes again must not hide the exception that came first",
        scenarios=("aio_methods_after_close",),
        pairs=((r"close\(\) raises RuntimeError", r"close\(\) = None"),),
    ),
    Row(
        name="close of a subclass",
        subject="the end of `with` for a subclass that overrides `close`",
        original="the subclass's `close` is not called",
        ours="the subclass's `close` is called",
        reason="it is what a reader of the subclass expects",
        scenarios=("a_subclass_that_overrides_close",),
        pairs=(("", "the subclass's close"),),
    ),
    Row(
        name="starvation",
        subject="calls beside a thread that polls without a pause, or is in `on_revoke`",
        original="may wait forever: the polling thread retakes the lock first, and holds it in callbacks",
        ours="get their turn between two polls; a commit waits for neither",
        reason="a worker has to commit while another thread polls, or waits for it in `on_revoke`",
        scenarios=("commit_beside_a_thread_that_polls_without_a_pause", "a_rebalance_while_workers_are_busy"),
        pairs=(
            ("", r"commit(?s:.*)"),
            ("hangs", ""),
            ("", r"t1\[0\]@10"),
            (r"commit(.*) raises KafkaException\(ILLEGAL_GENERATION\)", r"commit\(.*\) = .*"),
            (r"stored \[-1001, -1001\]", r"stored \[5, 5\]"),
            ("", r"t1\[0\]@5\nt1\[1\]@5"),
        ),
    ),
    Row(
        name="one polling thread",
        subject="two threads that poll",
        original="take turns in no defined order",
        ours="the second one's call raises `ConcurrentAccessError` at once",
        reason="two polling threads commit each other's unprocessed messages; Java rejects the second too",
        scenarios=("two_threads_poll",),
        pairs=(("messages 100, errors \\[\\]", "messages 100, errors \\['ConcurrentAccessError'\\]"),),
    ),
    Row(
        name="close from another thread",
        subject="`close` while another thread polls",
        original="waits until the poll has returned, however long that takes",
        ours="ends the poll, which raises `RuntimeError` or returns the messages in hand",
        reason="a service shuts down at once, not after the time of its poll",
        scenarios=("close_beside_a_thread_that_waits_in_*",),
        pairs=(
            ("", "poll raises RuntimeError"),
            ("", "ended by raises RuntimeError"),
            ("", "consume raises"),
        ),
    ),
    Row(
        name="pause in on_assign",
        subject="`pause` in `on_assign`",
        original="has no effect before `assign` was called there, and raises nothing",
        ours="pauses",
        reason="as in Java: a member is assigned what `on_assign` is called with",
        scenarios=("on_assign_pauses_before_anything_is_assigned",),
        pairs=(("", r"resume\(\[t1\[0\]\]\) = None"), (r"resume\(\[t1\[0\]\]\) = None", "")),
    ),
    Row(
        name="seek in on_assign",
        subject="`seek` in `on_assign`, after `assign`",
        original="raises `_STATE`: fetching begins with a later poll",
        ours="seeks",
        reason="the partition is assigned, and has no message that the seek could come too late for",
        scenarios=("on_assign_seeks_after_it_assigned",),
        pairs=(
            (r"seek\(t1\[0\]@6\) raises KafkaException\(_STATE\)", r"seek\(t1\[0\]@6\) = None"),
            (r"messages t1\[0\] 0\.\.9", r"messages t1\[0\] 6\.\.9"),
            (r"read 10 = done", r"read 10 = not within 3 s"),
        ),
    ),
    Row(
        name="end of a kept partition",
        subject="`enable.partition.eof`: partitions that a cooperative rebalance keeps",
        original="pauses them for the callback, and then returns their ends again",
        ours="goes on fetching; an end is returned again once more messages have come",
        reason="the consumer has reached no new end, and a pause would discard the messages in the queue",
        scenarios=("the_end_of_a_kept_partition_after_a_cooperative_rebalance",),
        pairs=((r"messages t1\[0\] (EOF@3,)+3\.\.4", r"messages t1\[0\] 3\.\.4"),),
    ),
    Row(
        name="revoked after incremental_unassign",
        subject="a cooperative revocation of a partition that the application has unassigned itself",
        original="`poll` raises `_INVALID_ARG`; the member reads nothing more, and `close` may hang",
        ours="goes on: nothing is left to unassign",
        reason="the rebalance completes, and the member keeps its other partitions",
        scenarios=("a_cooperative_revocation_of_what_the_application_has_unassigned",),
        pairs=(
            (
                r"poll raises KafkaException\(_INVALID_ARG\)",
                r"on_assign nothing\nmessages t1\[0\] 5\.\.6(\non_assign nothing)?",
            ),
            ("10 messages", "12 messages"),
        ),
    ),
    Row(
        name="assigned after incremental_assign",
        subject="a cooperative assignment of a partition that the application has assigned itself",
        original="`poll` raises `_CONFLICT`; the member reads nothing more of any partition",
        ours="goes on: that partition is assigned already",
        reason="the member owns it from now on, and other partitions are still its own",
        scenarios=("a_cooperative_assignment_of_what_the_application_has_assigned",),
        pairs=(
            (r"poll raises KafkaException\(_CONFLICT\)", r"messages t1\[0\] 5\.\.6"),
            ("5 messages", "7 messages"),
        ),
    ),
    Row(
        name="which move",
        subject="`cooperative-sticky`: which partitions move",
        original="the first ones of a member that has too many",
        ours="the last ones",
        reason="both move the fewest that balance needs; which ones is promised by neither",
        scenarios=("a_second_member_comes_and_goes_with_cooperative_sticky",),
        pairs=(
            (r"on_(assign|revoke) t1\[0\.\.1\]", r"on_(assign|revoke) t1\[2\.\.3\]"),
            (
                r"messages t1\[2\] 5\.\.7, t1\[3\] 5\.\.7",
                r"messages t1\[0\] 5\.\.7, t1\[1\] 5\.\.7",
            ),
            (
                r"messages t1\[0\] 5\.\.7, t1\[1\] 5\.\.7",
                r"messages t1\[2\] 5\.\.7, t1\[3\] 5\.\.7",
            ),
        ),
    ),
    Row(
        name="static member with other topics",
        subject="a static member that restarts with another subscription",
        original="is assigned the partitions of its former subscription, and reads none of the new topics",
        ours="is assigned partitions of the topics that it subscribes to",
        reason="the coordinator hands out the old assignment without a rebalance; ours asks for one",
        scenarios=("a_static_member_is_back_with_other_topics",),
        pairs=(
            (
                r"on_assign t1\[0\]\nuntil .* = not within 3 s\non_revoke t1\[0\]",
                r"on_assign t2\[0\]\nmessages t2\[0\] 0\.\.4\nuntil .* = done\non_revoke t2\[0\]",
            ),
            ("", r"t2\[0\]@5"),
        ),
    ),
)


def as_markdown(rows: Sequence[Row] = ROWS) -> str:
    """Write the table as the consumer's README has it."""
    lines = ["| | confluent-kafka | Groupwright | why |", "|---|---|---|---|"]
    lines += [f"| {row.subject} | {row.original} | {row.ours} | {row.reason} |" for row in rows]
    return "\n".join(lines) + "\n"


def with_table(page: str) -> str:
    """Return a page with the table between its two marks."""
    return with_block(page, "python -m integration_tests.parity table", as_markdown())
