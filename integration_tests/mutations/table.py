"""The table of mutations: what is broken, how, and which test must not pass then."""

from mutations.mended import MENDED
from mutations.mutation import ASSIGNORS, CONSUMER, Mutation

MUTATIONS = (
    Mutation(
        "commits carry no generation",
        f"{CONSUMER}/_network/connections.py",
        "generation_id_or_member_epoch=identity.generation,",
        "generation_id_or_member_epoch=-1,",
        "integration_tests/consumer/test_commits.py::test_the_next_member_goes_on_where_the_last_one_committed",
    ),
    Mutation(
        "transactions carry neither generation nor member",
        f"{CONSUMER}/_protocol/group_metadata.py",
        "    return GroupMetadata(group_id, identity.generation,",
        "    identity = MemberIdentity()\n    return GroupMetadata(group_id, identity.generation,",
        "integration_tests/exactly_once/test_fencing.py::test_a_zombie_that_was_expelled_is_refused_and_nothing_of_it_is_seen",
    ),
    Mutation(
        "on_revoke is not called",
        f"{CONSUMER}/_membership/assignment_applier.py",
        "if event.lost else self.on_revoke\n",
        "if event.lost else None\n",
        "integration_tests/triggers/test_members.py::test_a_member_that_joins_is_given_its_share[range]",
    ),
    Mutation(
        "what was lost is told as revoked",
        f"{CONSUMER}/_membership/assignment_applier.py",
        "callback = (self.on_lost or self.on_revoke) if event.lost",
        "callback = self.on_revoke if event.lost",
        "integration_tests/triggers/test_members.py::test_a_member_that_does_not_poll_in_time_loses_everything_and_comes_back[cooperative-sticky]",
    ),
    Mutation(
        "what was lost is counted as revoked",
        f"{CONSUMER}/_membership/assignment_applier.py",
        '"partitions_lost" if event.lost else "partitions_revoked"',
        '"partitions_revoked"',
        "integration_tests/metrics/test_truth.py::test_what_was_lost_is_counted_as_lost_and_by_whose_fault[range]",
    ),
    Mutation(
        "the subscription does not say what is owned",
        f"{CONSUMER}/_protocol/consumer_protocol.py",
        "",
        "_encoder = subscription_encoder\n"
        "def subscription_encoder(*arguments):\n"
        "    encode = _encoder(*arguments)\n"
        "    return lambda topics, owned, generation: encode(topics, {}, generation)\n",
        "integration_tests/triggers/test_members.py::test_a_member_that_joins_is_given_its_share[cooperative-sticky]",
    ),
    Mutation(
        "a partition that must be given up first is assigned at once",
        f"{ASSIGNORS}/_algorithms/sticky.py",
        "return indexed.assignment_of(np.where(is_withheld, np.int32(UNASSIGNED), owners))",
        "return indexed.assignment_of(owners)",
        "integration_tests/triggers/test_members.py::test_a_member_that_joins_is_given_its_share[cooperative-sticky]",
    ),
    Mutation(
        "after giving something up a cooperative member does not join again",
        f"{CONSUMER}/_protocol/membership.py",
        "",
        "_Incoming = Incoming\nIncoming = lambda partitions, another_round=False: _Incoming(partitions)\n",
        "integration_tests/triggers/test_members.py::test_a_member_that_joins_is_given_its_share[cooperative-sticky]",
    ),
    Mutation(
        "no heartbeat is sent",
        f"{CONSUMER}/_network/connections.py",
        "",
        "async def _heartbeat(self, identity):\n    return 0\nNetwork.heartbeat = _heartbeat\n",
        "integration_tests/triggers/test_members.py::test_a_member_that_joins_is_given_its_share[range]",
    ),
    Mutation(
        "LeaveGroup is not sent",
        f"{CONSUMER}/_network/connections.py",
        "",
        "async def _leave(self, identity, reason):\n    return 0\nNetwork.leave = _leave\n",
        "integration_tests/triggers/test_members.py::test_what_a_member_had_that_leaves_is_given_to_the_others[range]",
    ),
    Mutation(
        "JoinGroup does not say the group.instance.id",
        f"{CONSUMER}/_network/connections.py",
        "member_id=request.member_id,\n                group_instance_id=config.group_instance_id,",
        "member_id=request.member_id,",
        "integration_tests/triggers/test_members.py::test_a_static_member_that_is_back_within_its_session_is_not_noticed[range]",
    ),
    Mutation(
        "a static member leaves when it is closed",
        f"{CONSUMER}/_membership/classic_membership.py",
        "static=network.group_instance_id is not None,",
        "static=False,",
        "integration_tests/triggers/test_members.py::test_a_static_member_that_is_back_within_its_session_is_not_noticed[range]",
    ),
    Mutation(
        "a member whose place was taken joins again, and takes it back",
        f"{CONSUMER}/_protocol/error_policy.py",
        "ErrorCode.FENCED_INSTANCE_ID: ErrorAction.FENCED,",
        "ErrorCode.FENCED_INSTANCE_ID: ErrorAction.NEW_MEMBER,",
        "integration_tests/metrics/test_truth.py::test_a_member_whose_place_is_taken_counts_it_and_owns_nothing",
    ),
    Mutation(
        "commits carry no leader epoch",
        f"{CONSUMER}/_network/connections.py",
        "committed_leader_epoch=offset.leader_epoch,",
        "committed_leader_epoch=-1,",
        "integration_tests/offsets/test_stored.py::test_a_commit_is_a_record_for_each_partition_and_the_last_one_holds",
    ),
    Mutation(
        "the committed offsets are not used",
        f"{CONSUMER}/_protocol/membership.py",
        "",
        "_deliver_assignment = Membership._deliver_assignment\n"
        "Membership._deliver_assignment = lambda self, offsets, now: _deliver_assignment(self, {}, now)\n",
        "integration_tests/offsets/test_reset.py::test_an_empty_group_goes_on_where_it_is_told_to[back]",
    ),
    Mutation(
        "offsets that a transaction may still change are taken",
        f"{CONSUMER}/_network/connections.py",
        "require_stable=True,",
        "require_stable=False,",
        "integration_tests/exactly_once/test_fencing.py::test_an_heir_waits_until_the_transaction_of_the_dead_has_ended[commit-expected0]",
    ),
    Mutation(
        "what was consumed is not committed before it is given up",
        f"{CONSUMER}/_membership/event_server.py",
        "lambda _: self._committer.last_commit(handle, revoked, self._session_timeout),",
        "None,",
        "integration_tests/consumer/test_commits.py::test_what_was_consumed_is_committed_before_it_is_given_up",
    ),
    Mutation(
        "a pause ends with the assignment",
        f"{CONSUMER}/_membership/assignment_applier.py",
        "self._prefetch.drop(dropped)",
        "self._prefetch.drop(dropped); self._call_native(self.resume, handle, _partitions(revoked))",
        "consumer/tests/test_assignment_applier.py::test_a_pause_of_the_application_outlives_a_revocation",
    ),
    Mutation(
        "the leader leaves the last member out of its plan",
        f"{CONSUMER}/_coordinator/driver.py",
        "                action.members,\n",
        "                action.members[:-1] or action.members,\n",
        "integration_tests/triggers/test_members.py::test_a_member_that_joins_is_given_its_share[range]",
    ),
    Mutation(
        "the leader does not watch its group's topics",
        f"{CONSUMER}/_protocol/topic_monitor.py",
        "",
        "TopicMonitor.on_leader = lambda self, asked, answer, now: None\n",
        "integration_tests/triggers/test_topics.py::test_partitions_that_a_topic_gains_are_assigned[range]",
    ),
    Mutation(
        "max.poll.interval.ms is not kept",
        f"{CONSUMER}/_protocol/membership_state.py",
        "",
        "MembershipState.must_poll = property(lambda self: False)\n",
        "integration_tests/triggers/test_members.py::test_a_member_that_does_not_poll_in_time_loses_everything_and_comes_back[cooperative-sticky]",
    ),
    *MENDED,
)
