"""Defects that the consumer once had beside confluent-kafka's, put back: one that returns is noticed."""

from mutations.mutation import CONSUMER, Mutation

_TESTS = "consumer/tests"
_BOTH = "integration_tests/parity/test_parity.py::test_both_do_the_same"

MENDED = (
    # --- Commits ---
    Mutation(
        "a commit of an unknown topic is retried to its deadline",
        f"{CONSUMER}/commits.py",
        "return codes <= RETRIABLE or (codes <= _BRIEFLY and retries < _FEW)",
        "return codes <= _BRIEFLY",
        f"{_TESTS}/test_commits.py::test_an_unknown_topic_is_asked_for_twice_more",
        "a_commit_of_an_unknown_topic_fails_soon",
        in_fuzzing=True,
    ),
    Mutation(
        "asynchronous commits are dropped by a close that sends no LeaveGroup",
        f"{CONSUMER}/rounds.py",
        "elif self._closing and not self._commits_sent:",
        "elif False:",
        f"{_TESTS}/test_membership_leaving.py::test_closing_outside_of_any_group_waits_for_the_commits_too",
        "close_loses_no_asynchronous_commit",
        in_fuzzing=True,
    ),
    Mutation(
        "a commit that has not ended when the consumer is closed is never settled",
        f"{CONSUMER}/commit_sender.py",
        "        self._queue.expire(math.inf, reason, DESTROYED)\n",
        "",
        f"{_TESTS}/test_driver.py::test_commits_that_have_not_ended_end_with_the_thread",
        "close_beside_a_synchronous_commit",
    ),
    Mutation(
        "what was consumed before a seek is not committed",
        f"{CONSUMER}/offsets.py",
        "self._begun[key] = (offset, self._consumed([position]).get(key))",
        "self._begun[key] = (offset, None)",
        f"{_TESTS}/test_offsets.py::test_consumed_before_a_seek_stays_pending_until_a_message_comes",
        "consumed_before_a_seek_is_committed",
        in_fuzzing=True,
    ),
    Mutation(
        "a partition that is assigned again begins before the commit under way",
        f"{CONSUMER}/own_member.py",
        "        partitions = self._committer.resumed(partitions)\n        Native.assign(consumer, partitions)\n",
        "        Native.assign(consumer, partitions)\n",
        f"{_BOTH}[partitions_assigned_again_go_on_at_the_commit_under_way]",
        "partitions_assigned_again_go_on_at_the_commit_under_way",
        in_fuzzing=True,
    ),
    Mutation(
        "on_commit of a commit that failed has partitions without errors",
        f"{CONSUMER}/committing.py",
        "reported(ended.partitions, ended.result.errors)",
        "reported(ended.partitions, {})",
        f"{_BOTH}[an_asynchronous_commit_of_an_unknown_partition]",
        "an_asynchronous_commit_of_an_unknown_partition",
        in_fuzzing=True,
    ),
    Mutation(
        "a commit of nothing fails in other words than librdkafka's",
        f"{CONSUMER}/committing.py",
        "raise CommitError(code, _words(code, detail))",
        "raise CommitError(code, detail)",
        f"{_TESTS}/test_commits_kafka.py::test_a_synchronous_commit_is_stored_when_it_returns",
    ),
    Mutation(
        "on_commit is not called for an asynchronous commit of nothing",
        f"{CONSUMER}/committing.py",
        '            self.ended.append(CommitEnded(partitions, {}, CommitResult({("", 0): code}, detail), None))\n',
        "",
        f"{_BOTH}[on_commit_hears_of_every_asynchronous_commit]",
        "on_commit_hears_of_every_asynchronous_commit",
        in_fuzzing=True,
    ),
    Mutation(
        "automatic commits stop while the application is busy",
        f"{CONSUMER}/auto_commit.py",
        "if self._consumer is not None and not busy and not self._polling.closing:",
        "if False:",
        f"{_TESTS}/test_auto_commit.py::test_what_is_overdue_is_committed_by_a_thread_of_its_own",
        "automatic_commits_go_on_while_the_application_is_busy",
        in_fuzzing=True,
    ),
    # --- Positions and messages ---
    Mutation(
        "a seek soon after the assignment is undone, since the beginning is no offset yet",
        f"{CONSUMER}/handover.py",
        "logical = [p for p in starts if p.offset in _LOGICAL]",
        "logical = [p for p in starts if p.offset == OFFSET_END]",
        f"{_TESTS}/test_handover_kafka.py::test_a_seek_right_after_the_assignment_is_not_undone",
        "on_assign_seeks_after_it_assigned",
        in_fuzzing=True,
    ),
    Mutation(
        "a partition's end is told after a seek, a pause or an unassignment",
        f"{CONSUMER}/ahead.py",
        "return None if topic is None or partition is None else (topic, partition)",
        "return None if topic is None or partition is None or message.error() is not None else (topic, partition)",
        f"{_TESTS}/test_ahead.py::test_an_error_of_a_partition_goes_with_it",
        "a_replay_to_the_end_reads_it_all",
        in_fuzzing=True,
    ),
    Mutation(
        "consume() loses its batch when another thread comes between, to close or to poll",
        f"{CONSUMER}/consumer.py",
        "                    return self._gather(num_messages, deadline, messages)\n            except",
        "                    messages, found = [], messages\n"
        "                    polling.ident = 0\n"
        "                    return inside(type(self)._gather)(self, num_messages, deadline, found)\n"
        "            except",
        f"{_BOTH}[close_beside_a_thread_that_waits_in_consume]",
        "close_beside_a_thread_that_waits_in_consume",
    ),
    Mutation(
        "an exception of a signal handler loses the messages that a native call brought",
        f"{CONSUMER}/ahead.py",
        "        try:\n"
        "            # One bytecode, CALL_FUNCTION_EX, makes the native call and keeps what it brings.\n"
        "            messages.extend(*map(consume, (most,), (timeout,)))\n"
        "        except BaseException:\n"
        "            self.cut_short = self._handful > 0\n"
        "            raise\n",
        "        messages.extend(consume(most, timeout))\n",
        f"{_TESTS}/test_interrupted_kafka.py::test_no_message_is_lost[poll-at-once-fast-]",
        "a_handler_that_raises_while_messages_flow",
    ),
    Mutation(
        "an exception of a signal handler loses what consume() has gathered",
        f"{CONSUMER}/consumer.py",
        "            self._ahead.put_back(messages)\n            if self._ahead.cut_short:\n",
        "            if self._ahead.cut_short:\n",
        f"{_TESTS}/test_interrupted_kafka.py::test_no_message_is_lost[consume-gathering-whole-]",
        "a_handler_that_raises_while_messages_flow",
    ),
    Mutation(
        "a process that was stopped beyond its session hands out its batch",
        f"{CONSUMER}/consumer.py",
        "lapsed = self._member.lapsed",
        "lapsed = False",
        f"{_TESTS}/test_consumer_threads.py::test_what_others_may_own_by_now_is_not_handed_out",
        "a_process_stopped_beyond_its_session",
    ),
    # --- The group ---
    Mutation(
        "a topic that the leader may not see stops the whole group",
        f"{CONSUMER}/leading.py",
        "            if topics.refused:\n",
        '            if topics.refused:\n                raise AccessError(29, "a topic is refused")\n',
        f"{_TESTS}/test_driver.py::test_a_leader_plans_what_it_may_see_and_warns_of_the_rest",
        "two_members_of_whom_one_may_not_read_a_topic",
    ),
    Mutation(
        "an assignment may be changed by calls of the other rebalance protocol",
        f"{CONSUMER}/own_member.py",
        "if whole is self._handover.cooperative:",
        "if False:",
        f"{_TESTS}/test_handover.py::test_calls_by_hand_keep_to_the_groups_protocol_from_its_first_assignment_on",
        "which_calls_assign_in_a_cooperative_group",
        in_fuzzing=True,
    ),
    Mutation(
        "the application does not hear of a topic that does not exist",
        f"{CONSUMER}/membership.py",
        "self._out.append(act.Deliver(TopicUnavailable(topic, error)))",
        "pass",
        f"{_TESTS}/test_membership_topics.py"
        "::test_a_member_looks_at_its_topics_beside_the_join_and_reports_what_is_missing",
        "a_missing_topic_beside_an_existing_one_is_an_error_once",
        in_fuzzing=True,
    ),
    Mutation(
        "an error of the group is raised instead of returned as a message",
        f"{CONSUMER}/own_member.py",
        "return None if event.repeated else _error(event.error)",
        "raise KafkaException(event.error)",
        f"{_TESTS}/test_consumer.py::test_an_error_of_the_group_is_handed_out_once_as_a_message",
        "a_session_timeout_that_the_broker_refuses_is_an_error_message",
    ),
    Mutation(
        "after an outage a connection is tried again only after seconds",
        f"{CONSUMER}/transport.py",
        'min(settings.get("reconnect_backoff_max_ms", longest), longest)',
        'settings.get("reconnect_backoff_max_ms", longest)',
        f"{_TESTS}/test_library.py::test_a_failed_connection_waits_longer_up_to_its_limit",
        "a_cut_is_over_when_the_network_is_back",
    ),
    Mutation(
        "after an outage the coordinator is looked up only after a second",
        f"{CONSUMER}/timing.py",
        "Backoff(timing, jitter, longest=_LONGEST_LOOKUP_PAUSE)",
        "Backoff(timing, jitter)",
        f"{_TESTS}/test_timing.py::test_a_long_outage_does_not_lengthen_the_pauses_between_look_ups",
    ),
    Mutation(
        "time in a callback counts as not polling",
        f"{CONSUMER}/polling_thread.py",
        "return now if self.ident else self.last",
        "return self.last",
        f"{_TESTS}/test_consumer_threads.py::test_the_thread_inside_polls_as_long_as_it_is_inside",
        "a_callback_may_take_longer_than_the_poll_interval",
        in_fuzzing=True,
    ),
    Mutation(
        "an eager member that subscribes to the same topics again does not rebalance",
        f"{CONSUMER}/membership.py",
        "if not self._closing and not (again and self._cooperative):",
        "if not self._closing and not again:",
        f"{_TESTS}/test_membership_joining.py"
        "::test_the_same_subscription_again_is_another_rebalance_of_an_eager_member",
        "subscribing_to_the_same_topics_again_rebalances_an_eager_member",
        in_fuzzing=True,
    ),
    # --- Settings ---
    Mutation(
        "a heartbeat interval that is longer than the session is refused",
        f"{CONSUMER}/config.py",
        '    if reader.has("heartbeat.interval.ms") and heartbeat >= session:\n',
        '    if reader.has("heartbeat.interval.ms") and heartbeat >= session:\n'
        '        raise ConfigurationError("heartbeat.interval.ms must be less than session.timeout.ms")\n',
        f"{_TESTS}/test_config.py::test_heartbeats_are_sent_within_a_short_session",
        "the_same_configurations_are_refused",
    ),
    Mutation(
        "a number with a decimal point is refused",
        f"{CONSUMER}/config.py",
        "return int(value) if math.isfinite(value) else None",
        "return None",
        f"{_TESTS}/test_config.py::test_numbers_are_read_as_librdkafka_reads_them",
        "the_same_configurations_are_refused",
        in_fuzzing=True,
    ),
)
