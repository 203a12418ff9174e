"""The table of mutations: what is broken, how, and which test must not pass then."""

from mutations.mended import MENDED
from mutations.mutation import ASSIGNORS, CONSUMER, Mutation

MUTATIONS = (
    Mutation(
        "commits carry no generation",
        f"{CONSUMER}/_network/connections.py::Network.commit",
        "_(generation_id_or_member_epoch=_)",
        "_(generation_id_or_member_epoch=-1)",
        "integration_tests/consumer/test_commits.py::test_the_next_member_goes_on_where_the_last_one_committed",
        outside_simulation="requests are simulated",
    ),
    Mutation(
        "transactions carry neither generation nor member",
        f"{CONSUMER}/_protocol/group_metadata.py::encode",
        "GroupMetadata(_1, _, _, _2)",
        'GroupMetadata(_1, -1, "", _2)',
        "integration_tests/exactly_once/test_fencing.py::test_a_zombie_that_was_expelled_is_refused_and_nothing_of_it_is_seen",
        outside_simulation="no transactions",
    ),
    Mutation(
        "on_revoke is not called",
        f"{CONSUMER}/_membership/assignment_applier.py::AssignmentApplier.revoke",
        "_1 if _2 else self.on_revoke",
        "_1 if _2 else None",
        "integration_tests/triggers/test_members.py::test_a_member_that_joins_is_given_its_share[range]",
    ),
    Mutation(
        "on_revoke is called for lost partitions in place of on_lost",
        f"{CONSUMER}/_membership/assignment_applier.py::AssignmentApplier.revoke",
        "(self.on_lost or self.on_revoke) if _1 else _2",
        "self.on_revoke if _1 else _2",
        "integration_tests/triggers/test_members.py::test_a_member_that_does_not_poll_in_time_loses_everything_and_comes_back[cooperative-sticky]",
    ),
    Mutation(
        "lost partitions are counted as revoked",
        f"{CONSUMER}/_membership/assignment_applier.py::AssignmentApplier.revoke",
        '"partitions_lost" if _ else "partitions_revoked"',
        '"partitions_revoked"',
        "integration_tests/metrics/test_truth.py::test_what_was_lost_is_counted_as_lost_and_by_whose_fault[range]",
    ),
    Mutation(
        "the subscription does not contain the owned partitions",
        f"{CONSUMER}/_protocol/consumer_protocol.py",
        "",
        "_encoder = subscription_encoder\n"
        "def subscription_encoder(*arguments):\n"
        "    encode = _encoder(*arguments)\n"
        "    return lambda topics, owned, generation: encode(topics, {}, generation)\n",
        "integration_tests/triggers/test_members.py::test_a_member_that_joins_is_given_its_share[cooperative-sticky]",
    ),
    Mutation(
        "a partition is assigned before its owner has revoked it",
        f"{ASSIGNORS}/_algorithms/claims.py::Claims.withhold",
        "return np.where(_, _, _1)",
        "return _1",
        "integration_tests/triggers/test_members.py::test_a_member_that_joins_is_given_its_share[cooperative-sticky]",
    ),
    Mutation(
        "a cooperative member does not rejoin after a revocation",
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
        outside_simulation="requests are simulated",
    ),
    Mutation(
        "LeaveGroup is not sent",
        f"{CONSUMER}/_network/connections.py",
        "",
        "async def _leave(self, identity, reason):\n    return 0\nNetwork.leave = _leave\n",
        "integration_tests/triggers/test_members.py::test_what_a_member_had_that_leaves_is_given_to_the_others[range]",
        outside_simulation="requests are simulated",
    ),
    Mutation(
        "JoinGroup has no group.instance.id",
        f"{CONSUMER}/_network/connections.py::Network.join",
        "_(group_instance_id=_)",
        "_()",
        "integration_tests/triggers/test_members.py::test_a_static_member_that_is_back_within_its_session_is_not_noticed[range]",
        outside_simulation="requests are simulated",
    ),
    Mutation(
        "a static member leaves when it is closed",
        f"{CONSUMER}/_membership/classic_membership.py::ClassicMembership.__init__",
        "_(static=_)",
        "_(static=False)",
        "integration_tests/triggers/test_members.py::test_a_static_member_that_is_back_within_its_session_is_not_noticed[range]",
    ),
    Mutation(
        "a fenced member joins again",
        f"{CONSUMER}/_protocol/error_policy.py",
        "ErrorAction.FENCED",
        "ErrorAction.NEW_MEMBER",
        "integration_tests/metrics/test_truth.py::test_a_member_whose_place_is_taken_counts_it_and_owns_nothing",
    ),
    Mutation(
        "commits carry no leader epoch",
        f"{CONSUMER}/_network/connections.py::Network.commit",
        "_(committed_leader_epoch=_)",
        "_(committed_leader_epoch=-1)",
        "integration_tests/offsets/test_stored.py::test_a_commit_is_a_record_for_each_partition_and_the_last_one_holds",
        outside_simulation="requests are simulated",
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
        "offsets that a transaction may still change are used",
        f"{CONSUMER}/_network/connections.py::Network.fetch_offsets",
        "_(require_stable=True)",
        "_(require_stable=False)",
        "integration_tests/exactly_once/test_fencing.py::test_an_heir_waits_until_the_transaction_of_the_dead_has_ended[commit-expected0]",
        outside_simulation="requests are simulated",
    ),
    Mutation(
        "consumed messages are not committed before their partition is revoked",
        f"{CONSUMER}/_membership/event_server.py::EventServer._revoke",
        "lambda _: _._.last_commit(...)",
        "None",
        "integration_tests/consumer/test_commits.py::test_what_was_consumed_is_committed_before_it_is_given_up",
    ),
    Mutation(
        "a pause ends with the assignment",
        f"{CONSUMER}/_membership/assignment_applier.py::AssignmentApplier.revoke",
        "_1.drop(_2)",
        "_1.drop(_2)\nself._call_native(self.resume, handle, _partitions(revoked))",
        "consumer/tests/test_assignment_applier.py::test_a_pause_of_the_application_outlives_a_revocation",
    ),
    Mutation(
        "the leader leaves the last member out of its plan",
        f"{CONSUMER}/_coordinator/driver.py::Driver._perform_assignment",
        "_1.members",
        "_1.members[:-1] or _1.members",
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
    # --- Found by simulations and the soak ---
    Mutation(
        "messages that consume() still gathers are committed",
        f"{CONSUMER}/_membership/prefetch.py::PrefetchBuffer._buffered",
        "self.gathered",
        "[]",
        "consumer/tests/test_prefetch.py::test_messages_that_consume_still_gathers_are_not_committed",
    ),
    Mutation(
        "the end of the session is not seen soon after an assignment",
        f"{CONSUMER}/_membership/event_server.py::EventServer._owned_until",
        "if not _: return _1",
        "if True: return _1",
        "consumer/tests/test_assignment_applier.py::test_the_session_limits_the_fast_path_from_the_first_message_on",
    ),
    Mutation(
        "a topic that was deleted before the assignment makes the group rebalance forever",
        f"{CONSUMER}/_protocol/topic_monitor.py::TopicMonitor.on_leader",
        "_1 not in _ or _1 in _",
        "_1",
        "consumer/tests/test_topic_monitor.py::test_a_topic_that_was_deleted_before_the_assignment_makes_the_group_rebalance_no_more",
        story="deleted-before-the-assignment",
    ),
    Mutation(
        "commits of what is revoked between two attempts to join wait for the end of the next round",
        f"{CONSUMER}/_protocol/membership_state.py::MembershipState.commit_identity",
        "(_1 or _2) and _3.valid",
        "_1 and _3.valid",
        "consumer/tests/test_membership_cooperative.py::test_what_is_revoked_between_two_attempts_to_join_is_committed_at_once",
        story="revoked-after-a-failed-sync",
    ),
    Mutation(
        "an exception of a signal handler loses an error of the group",
        f"{CONSUMER}/_membership/event_server.py::EventServer._return",
        "_._.error = _1",
        "",
        "consumer/tests/test_consumer.py::test_an_error_of_the_group_is_returned_by_the_next_call_if_a_signal_handler_raises[poll]",
        story="interrupted-when-it-is-fenced",
    ),
    Mutation(
        "max.poll.interval.ms is not kept after an interrupted first assignment",
        f"{CONSUMER}/_membership/event_server.py::EventServer._serve_event",
        "_1.call(_2.taken, _3)\nself.identity = _4\n_5.assign(_6, _7)",
        "self.identity = _4\n_5.assign(_6, _7)\n_1.call(_2.taken, _3)",
        "consumer/tests/test_assignment_applier.py::test_an_assignment_that_an_exception_interrupts_was_taken",
        story="busy-after-an-interrupted-assignment",
    ),
    Mutation(
        "offsets are not looked up if a signal handler raises when that begins",
        f"{CONSUMER}/_membership/assignment_applier.py::AssignmentApplier.prepare",
        "if _1 != _2: ...",
        "if _1 != _2:\n    _2 = _1\n    ...",
        "consumer/tests/test_assignment_applier.py::test_a_look_up_that_an_exception_has_prevented_is_begun_by_the_next_poll",
        story="interrupted-when-offsets-are-looked-up",
    ),
    Mutation(
        "a callback that a signal handler's exception has prevented is never called",
        f"{CONSUMER}/_membership/assignment_applier.py::AssignmentApplier._call",
        ("_1 = _partitions(_2)\n_3 = True\ntry: ...\nexcept BaseException as error: ...\nfinally: ..."),
        (
            "_3 = True\n"
            "try:\n"
            "    _1 = _partitions(_2)\n"
            "    ...\n"
            "except BaseException as error: ...\n"
            "finally: ..."
        ),
        "consumer/tests/test_assignment_applier.py::test_a_callback_that_an_exception_has_prevented_is_called_by_the_next_poll",
        outside_simulation="between two bytecodes",
    ),
    Mutation(
        "a seek is refused while librdkafka has not begun to fetch",
        f"{CONSUMER}/_membership/manual_assignment.py::ManualAssignment.seek",
        "if not (_ and _._.may_restart(_)): ...",
        "if True: ...",
        "consumer/tests/test_assignment_applier.py::test_a_seek_succeeds_while_librdkafka_has_not_begun_to_fetch",
    ),
    Mutation(
        "close() keeps a core busy while an assignment of an expired session waits",
        f"{CONSUMER}/_membership/event_server.py::EventServer._may_take",
        "self.closing or _1",
        "_1",
        "consumer/tests/test_assignment_applier.py::test_an_assignment_of_an_expired_session_does_not_keep_close_busy",
    ),
    Mutation(
        "a seek is refused while an interrupted assignment waits for the next poll",
        f"{CONSUMER}/_membership/manual_assignment.py::ManualAssignment.seek",
        "_ and _._.awaits_assignment(_)",
        "False",
        "consumer/tests/test_assignment_applier.py::test_a_seek_between_on_assign_and_the_assignment_that_an_exception_has_delayed",
    ),
    Mutation(
        "a batch that a signal handler's exception has dropped is lost after an assignment by hand",
        f"{CONSUMER}/_membership/prefetch.py::PrefetchBuffer.set_start_offsets",
        "{_1: _2 for _ in _3}",
        "{_1: _2 for p in _3 if p.offset >= 0}",
        "consumer/tests/test_prefetch.py"
        "::test_a_discarded_batch_of_a_partition_without_a_known_start_is_fetched_from_its_logical_one",
    ),
    # --- Forks ---
    Mutation(
        "calls of a forked child are not refused",
        f"{CONSUMER}/_membership/access.py::AccessGuard.check_usable",
        "if _.forked: ...",
        "if False: ...",
        "consumer/tests/test_consumer.py::test_after_a_fork_the_child_is_told_and_nothing_hangs",
    ),
    Mutation(
        "close() in a forked child waits for its parent's threads",
        f"{CONSUMER}/consumer.py::Consumer.close",
        "_1.closed or _1.forked",
        "_1.closed",
        "consumer/tests/test_consumer.py::test_after_a_fork_the_child_is_told_and_nothing_hangs",
    ),
    Mutation(
        "a forked child gets messages that its parent has prefetched",
        f"{CONSUMER}/_membership/access.py::_reset_in_child",
        "_.fast_path_until = 0.0",
        "",
        "consumer/tests/test_processes_kafka.py::test_a_fork_is_told_and_its_parent_goes_on",
    ),
    *MENDED,
)
