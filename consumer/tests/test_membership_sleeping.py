"""A process that did not run for a while: stopped by a signal, frozen in a container, or suspended.

When it resumes, responses of any age wait in its sockets, and its clock has advanced. Only the coordinator
knows whether it is still a member; until it answers, no partition is assigned or served that others may own.
"""

import math
from collections.abc import Callable
from typing import TYPE_CHECKING

from groupwright.consumer._protocol import actions as act
from groupwright.consumer._protocol.events import Assign, Revoke

if TYPE_CHECKING:
    from consumer.tests.conftest import Player


def sleep(player: "Player", seconds: float) -> None:
    """Let time pass in which nothing runs; the driver detects it when it resumes."""
    player.member.runs(player.now)
    player.now += seconds
    player.polled = player.now


def test_an_assignment_that_is_older_than_the_session_is_not_applied(player: "Player") -> None:
    """Seen under chaos: a stopped process resumed with an assignment that others had by then."""
    player.subscribe("t")
    player.find()
    player.answer_join()
    sleep(player, player.timing.session_timeout)

    player.answer_sync({"t": (0, 1)})

    assert not player.asks(act.FetchOffsets)
    assert not player.inbox
    assert player.member.owned == {}
    player.find()
    player.wait(player.timing.retry_backoff)
    assert player.asks(act.SendJoinGroup)


def test_an_assignment_whose_offsets_were_slept_over_is_not_delivered(player: "Player") -> None:
    player.subscribe("t")
    player.find()
    player.answer_join()
    player.answer_sync({"t": (0,)})
    assert player.asks(act.FetchOffsets)
    sleep(player, player.timing.session_timeout)

    player.answer_offsets()

    assert not any(isinstance(event, Assign) for event in player.inbox)
    assert player.member.owned == {}


def test_an_assignment_that_waits_for_the_application_is_taken_back(player: "Player") -> None:
    """It was in the inbox when the process was stopped: no callback was called, so none is needed."""
    player.subscribe("t")
    player.find()
    player.answer_join()
    player.answer_sync({"t": (0,)})
    player.answer_offsets()
    assert isinstance(player.inbox[0], Assign)
    sleep(player, player.timing.session_timeout)
    assert player.now >= player.member.session_until

    player.wait(0)

    assert not player.inbox
    assert player.served == []
    assert player.member.owned == {}


def test_a_sleep_within_the_session_costs_no_more_than_its_time(player: "Player") -> None:
    """The answer may be of its very beginning: from then the session is counted."""
    player.subscribe("t")
    player.find()
    player.answer_join()
    began = player.now
    sleep(player, player.timing.session_timeout - 1)

    player.answer_sync({"t": (0,)})
    player.answer_offsets()

    assert player.member.session_until == began + player.timing.session_timeout
    assert isinstance(player.serve(), Assign)
    assert player.member.owned_until == began + player.timing.session_timeout


def test_what_was_asked_after_waking_is_of_its_own_time(player: "Player") -> None:
    player.subscribe("t")
    player.find()
    sleep(player, player.timing.session_timeout)
    player.answer_join()

    player.answer_sync({"t": (0,)})

    assert player.member.session_until == player.now + player.timing.session_timeout


def test_a_stable_member_that_slept_beyond_its_session_has_lost_all(stable: "Player") -> None:
    """And messages stop with the session, not with the news of its end: others consume them already."""
    until = stable.member.owned_until
    assert until == stable.member.session_until
    sleep(stable, stable.timing.session_timeout)
    assert stable.now >= until

    stable.wait(0)

    event = stable.serve()
    assert isinstance(event, Revoke)
    assert (event.partitions, event.lost) == ({"t": (0, 1)}, True)
    assert stable.member.owned_until == math.inf  # it owns nothing that could end


def test_what_is_lost_and_not_told_yet_is_owned_no_longer(stable: "Player") -> None:
    stable.beat()
    stable.answer_heartbeat(25)

    assert stable.inbox
    assert stable.member.owned_until == 0.0


def test_partitions_kept_in_a_rebalance_are_not_served_after_a_session_of_sleep(
    new_player: Callable[..., "Player"],
) -> None:
    """Seen under chaos: the coordinator answered JoinGroup while its member was stopped.

    It expelled the member a session later and reassigned the partitions. The member resumed, and returned one
    more message before it read the response.
    """
    player = new_player(cooperative=True)
    player.join({"t": (0, 1)})
    player.beat()
    player.answer_heartbeat(27)
    assert player.asks(act.SendJoinGroup)
    assert player.member.owned == {"t": (0, 1)}
    player.wait(player.timing.session_timeout * 3)
    assert player.now < player.member.owned_until  # awake, and nothing has been answered
    fell_asleep = player.now
    sleep(player, player.timing.session_timeout * 2)

    assert player.member.owned_until == fell_asleep + player.timing.session_timeout

    player.wait(0)  # whatever comes first, that answer is still to be read
    assert player.member.owned_until == fell_asleep + player.timing.session_timeout

    player.answer_join()
    event = player.serve()
    assert isinstance(event, Revoke)
    assert (event.partitions, event.lost) == ({"t": (0, 1)}, True)
