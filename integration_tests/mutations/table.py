"""What is broken, how, and which test must not pass then."""

from dataclasses import dataclass

_ASSIGNORS = "assignors/src/groupwright/assignors"
_CONSUMER = "consumer/src/groupwright/consumer"


@dataclass(frozen=True, slots=True)
class Mutation:
    """One way to break the product."""

    name: str
    """What is wrong then."""
    file: str
    """Which file, from the repository's root."""
    old: str
    """What stands in it, once."""
    new: str
    """What takes its place."""
    caught_by: str
    """The test, from `integration_tests`."""


MUTATIONS = (
    Mutation(
        "commits carry no generation",
        f"{_CONSUMER}/network.py",
        "generation_id_or_member_epoch=identity.generation,",
        "generation_id_or_member_epoch=-1,",
        "consumer/test_commits.py::test_the_next_member_goes_on_where_the_last_one_committed",
    ),
    Mutation(
        "transactions carry neither generation nor member",
        f"{_CONSUMER}/group_metadata.py",
        "    generation = _GENERATION.pack(identity.generation)\n",
        "    identity = Identity()\n    generation = _GENERATION.pack(identity.generation)\n",
        "exactly_once/test_fencing.py::test_a_zombie_that_was_expelled_is_refused_and_nothing_of_it_is_seen",
    ),
    Mutation(
        "on_revoke is not called",
        f"{_CONSUMER}/handover.py",
        "if event.lost else self.on_revoke\n",
        "if event.lost else None\n",
        "triggers/test_members.py::test_a_member_that_joins_is_given_its_share[range]",
    ),
    Mutation(
        "what was lost is told as revoked",
        f"{_CONSUMER}/handover.py",
        "callback = (self.on_lost or self.on_revoke) if event.lost",
        "callback = self.on_revoke if event.lost",
        "triggers/test_members.py::test_a_member_that_does_not_poll_in_time_loses_everything_and_comes_back[cooperative-sticky]",
    ),
    Mutation(
        "what was lost is counted as revoked",
        f"{_CONSUMER}/handover.py",
        '"partitions_lost" if event.lost else "partitions_revoked"',
        '"partitions_revoked"',
        "metrics/test_truth.py::test_what_was_lost_is_counted_as_lost_and_by_whose_fault[range]",
    ),
    Mutation(
        "the subscription does not say what is owned",
        f"{_CONSUMER}/rounds.py",
        "self._encode_subscription(self.subscription, self.owned, generation)",
        "self._encode_subscription(self.subscription, {}, generation)",
        "triggers/test_members.py::test_a_member_that_joins_is_given_its_share[cooperative-sticky]",
    ),
    Mutation(
        "a partition that must be given up first is assigned at once",
        f"{_ASSIGNORS}/sticky/assignors.py",
        "return np.where(is_withheld, np.int32(NOBODY), owners)",
        "return owners",
        "triggers/test_members.py::test_a_member_that_joins_is_given_its_share[cooperative-sticky]",
    ),
    Mutation(
        "after giving something up a cooperative member does not join again",
        f"{_CONSUMER}/rounds.py",
        "self._another_round = bool(given_up)",
        "self._another_round = False",
        "triggers/test_members.py::test_a_member_that_joins_is_given_its_share[cooperative-sticky]",
    ),
    Mutation(
        "no heartbeat is sent",
        f"{_CONSUMER}/driver.py",
        "error = await self._network.heartbeat(action.identity)",
        "error = 0",
        "triggers/test_members.py::test_a_member_that_joins_is_given_its_share[range]",
    ),
    Mutation(
        "LeaveGroup is not sent",
        f"{_CONSUMER}/driver.py",
        "error = await self._network.leave(action.identity, action.reason)",
        "error = 0",
        "triggers/test_members.py::test_what_a_member_had_that_leaves_is_given_to_the_others[range]",
    ),
    Mutation(
        "JoinGroup does not say the group.instance.id",
        f"{_CONSUMER}/network.py",
        "member_id=request.member_id,\n                group_instance_id=config.group_instance_id,",
        "member_id=request.member_id,",
        "triggers/test_members.py::test_a_static_member_that_is_back_within_its_session_is_not_noticed[range]",
    ),
    Mutation(
        "a static member leaves when it is closed",
        f"{_CONSUMER}/own_member.py",
        "static=network.group_instance_id is not None,",
        "static=False,",
        "triggers/test_members.py::test_a_static_member_that_is_back_within_its_session_is_not_noticed[range]",
    ),
    Mutation(
        "a member whose place was taken joins again, and takes it back",
        f"{_CONSUMER}/verdicts.py",
        "ErrorCode.FENCED_INSTANCE_ID: Verdict.FENCED,",
        "ErrorCode.FENCED_INSTANCE_ID: Verdict.NEW_MEMBER,",
        "metrics/test_truth.py::test_a_member_whose_place_is_taken_counts_it_and_owns_nothing",
    ),
    Mutation(
        "commits carry no leader epoch",
        f"{_CONSUMER}/network.py",
        "committed_leader_epoch=offset.leader_epoch,",
        "committed_leader_epoch=-1,",
        "offsets/test_stored.py::test_a_commit_is_a_record_for_each_partition_and_the_last_one_holds",
    ),
    Mutation(
        "the committed offsets are not used",
        f"{_CONSUMER}/rounds.py",
        "                answer.offsets,\n",
        "                {},\n",
        "offsets/test_reset.py::test_an_empty_group_goes_on_where_it_is_told_to[back]",
    ),
    Mutation(
        "offsets that a transaction may still change are taken",
        f"{_CONSUMER}/network.py",
        "require_stable=True,",
        "require_stable=False,",
        "exactly_once/test_fencing.py::test_an_heir_waits_until_the_transaction_of_the_dead_has_ended[commit-expected0]",
    ),
    Mutation(
        "what was consumed is not committed before it is given up",
        f"{_CONSUMER}/own_member.py",
        "commit = self._committer.last_commit(consumer, self._config.timing.session_timeout)",
        "commit = None",
        "consumer/test_commits.py::test_what_was_consumed_is_committed_before_it_is_given_up",
    ),
    Mutation(
        "a pause outlives the assignment",
        f"{_CONSUMER}/handover.py",
        "        if paused:\n            self._natively(self.resume,",
        "        if not paused:\n            self._natively(self.resume,",
        "consumer/test_callbacks.py::test_a_pause_ends_with_the_assignment",
    ),
    Mutation(
        "the leader leaves the last member out of its plan",
        f"{_CONSUMER}/driver.py",
        "                action.members,\n",
        "                action.members[:-1] or action.members,\n",
        "triggers/test_members.py::test_a_member_that_joins_is_given_its_share[range]",
    ),
    Mutation(
        "the leader does not watch its group's topics",
        f"{_CONSUMER}/membership.py",
        "            self._watch.lead(asked, topics, now)\n",
        "",
        "triggers/test_topics.py::test_partitions_that_a_topic_gains_are_assigned[range]",
    ),
    Mutation(
        "max.poll.interval.ms is not kept",
        f"{_CONSUMER}/membership.py",
        "if self._must_poll and now >= self._poll_ends:",
        "if False:",
        "triggers/test_members.py::test_a_member_that_does_not_poll_in_time_loses_everything_and_comes_back[cooperative-sticky]",
    ),
)
