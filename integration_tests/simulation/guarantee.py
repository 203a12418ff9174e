"""List of the guarantees, each with when it is checked; run as a program, it writes the page."""

from pathlib import Path

from integration_tests.harness.pages import with_block

PAGE = Path(__file__).with_name("README.md")
MADE_BY = "python -m integration_tests.simulation.guarantee"

GUARANTEES = {
    "a partition has one owner": "at each `on_assign`: no other member owns it that the group still has",
    "only the owner gets messages": (
        "at each message: the member owns the partition, and its session is not over"
    ),
    "no message is lost": "at each commit: every message before it was delivered; in the end: all were",
    "none is delivered twice": (
        "at each message: it follows the last one, or the group's committed offset; of an "
        "application that assigns by hand: the newest commit, also one under way"
    ),
    "commits never go backwards": "at each commit that the coordinator accepts",
    "no commit is beyond what was delivered": "at each commit that the coordinator accepts",
    "a commit is reported as it went": (
        "at each `on_commit` without an error: the coordinator has accepted it"
    ),
    "a commit that fails names its partitions": "at each `on_commit` with an error",
    "a commit of an unknown topic fails soon": "when it has ended, without faults before",
    "a commit of a lost assignment is refused as that": "in `on_lost`",
    "a synchronous commit returns all assigned partitions": "when one without arguments has returned",
    "what was asked to be committed ends before close returns": "when it has returned",
    "what was asked to be committed is committed when close returns": (
        "of an application that assigns by hand: unless `on_commit` got an error"
    ),
    "close drops no commit": (
        "at each `on_commit` of an application that assigns by hand, without faults before"
    ),
    "the coordinator decides on a commit before the first generation": "when it is refused",
    "what was consumed before a clean revocation is committed": (
        "at the next assignment, without faults before"
    ),
    "automatic commits go on while the application is busy": (
        "after a long time without a poll, without faults before"
    ),
    "an automatic commit goes back at the end alone": (
        "after a seek, at each commit of a member that owns the partition"
    ),
    "the end of a partition comes where the application is": (
        "at each PARTITION_EOF: the application is there, and the partition is not paused"
    ),
    "a paused partition returns no message": "at each message",
    "callbacks are paired": "`on_revoke` and `on_lost` get what `on_assign` got; `close` leaves nothing",
    "on_lost is called for partitions that are lost": "at each `on_revoke`: the member knows of no loss",
    "listeners get what callbacks get": "at each poll",
    "max.poll.interval.ms is kept": "at the poll after a longer time without one: nothing is owned any more",
    "time in callbacks counts as polling": (
        "when an interval is exceeded: the application was so long outside"
    ),
    "nothing comes after unsubscribe": "at each message before `on_revoke`",
    "nothing comes after an eager member has subscribed again": "at each message before `on_revoke`",
    "the next poll after unsubscribe calls on_revoke": "after a `poll(0)` that returns nothing",
    "calls of the other rebalance protocol are refused": "at a call",
    "assignment() returns what the application has chosen": "at a call",
    "an application gets no error that it does not expect": (
        "at each error that a call returns or raises, or that comes to a callback"
    ),
    "a topic that does not exist is reported": (
        "30 s after the last fault: each member that subscribes to it got an error"
    ),
    "a static member that closes stays in the group": "at each LeaveGroup",
    "a fenced member never joins again": (
        "at each JoinGroup after FENCED_INSTANCE_ID in its present generation, from the coordinator "
        "it has joined"
    ),
    "the coordinator is looked up soon after a failure": (
        "0.35 s after a look-up has failed: the next one has begun"
    ),
    "the coordinator is found while a broker that the member has seen answers": (
        "at each look-up that fails: not for longer than the session and 2 s, where the brokers agree"
    ),
    "calls of other threads end when the consumer is closed": (
        "1 s after `close` has returned: a commit by another thread has ended"
    ),
    "a forked child does its parent no harm": (
        "at each fork: all of the child's calls raise, `close` does nothing, none waits"
    ),
    "no thread spins": "at each reading of the clock: some wait has come between so many",
    "the group comes to rest": (
        "in the end: Stable, every partition has one owner, all is consumed, no rebalance"
    ),
    "no storms": "in the end: no more generations than the faults can have caused",
}
"""When each guarantee is checked."""


def as_markdown() -> str:
    """Return the guarantees as a table."""
    lines = ["| guarantee | checked |", "|---|---|"]
    lines += [f"| {name} | {checked} |" for name, checked in GUARANTEES.items()]
    return "\n".join(lines) + "\n"


def with_guarantees(page: str) -> str:
    """Return a page with the table between its marks."""
    return with_block(page, MADE_BY, as_markdown())


if __name__ == "__main__":
    PAGE.write_text(with_guarantees(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
