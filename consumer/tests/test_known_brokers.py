"""Which broker is asked next, and how each has failed."""

import random
from collections.abc import Mapping

import pytest

from groupwright.consumer._protocol.known_brokers import (
    Address,
    ConnectionBackoff,
    KnownBrokers,
    describe,
    parse_addresses,
    stagger,
)

BOOT, A, B, C, D = (Address(name, 9092) for name in ("boot", "a", "b", "c", "d"))


class _Unshuffled(random.Random):
    """Leaves lists as they are, and takes the middle of every range."""

    def shuffle(self, x: object) -> None:
        """Do not shuffle."""

    def random(self) -> float:
        return 0.5


def known(*bootstrap: Address, rebootstraps: bool = True) -> KnownBrokers:
    return KnownBrokers(bootstrap, rebootstraps=rebootstraps, chance=_Unshuffled())


def named(brokers: Mapping[int, Address], *bootstrap: Address, rebootstraps: bool = True) -> KnownBrokers:
    found = known(*(bootstrap or (BOOT,)), rebootstraps=rebootstraps)
    assert found.learn(brokers, "cluster", BOOT)
    return found


@pytest.mark.parametrize(
    ("servers", "addresses"),
    [
        ("", []),
        ("a", [("a", 9092)]),
        ("a:1,b:2", [("a", 1), ("b", 2)]),
        (" a:1 , ,a:1", [("a", 1)]),
        ("SASL_SSL://a:1", [("a", 1)]),
        ("10.0.0.1:1", [("10.0.0.1", 1)]),
        ("[::1]:1", [("::1", 1)]),
        ("[::1]", [("::1", 9092)]),
        ("::1", [("::1", 9092)]),
    ],
)
def test_bootstrap_servers_are_parsed(servers: str, addresses: list[tuple[str, int]]) -> None:
    assert parse_addresses(servers) == addresses


@pytest.mark.parametrize("servers", ["a:b", "a:65536", "a:-1"])
def test_an_impossible_port_is_an_error(servers: str) -> None:
    with pytest.raises(ValueError, match=r"port|int"):
        parse_addresses(servers)


def test_an_address_is_written_as_bootstrap_servers_have_it() -> None:
    assert [str(Address("::1", 1)), str(Address("a", 1))] == ["[::1]:1", "a:1"]


# --- The list ---------------------------------------------------------------------------------------------


def test_brokers_and_bootstrap_servers_are_one_list() -> None:
    """The bootstrap server is not last: a hundred brokers that drop packets would take minutes before it."""
    assert named({1: A, 2: B, 3: C}).order(0.0) == [A, BOOT, B, C]


@pytest.mark.parametrize("failures", [1, 5])
def test_no_failure_removes_an_address(failures: int) -> None:
    found = named({1: A, 2: B, 3: C})
    for now in range(failures):
        for address in (A, B, C, BOOT):
            found.not_connected(address, float(now))
            found.failed(address, "refused", float(now), timed_out=True)

    assert set(found.order(10.0)) == {A, B, C, BOOT}


@pytest.mark.parametrize(
    ("metadata", "order"),
    [
        ({}, [A, BOOT, B, C]),  # of a broker that starts or is fenced
        ({2: B}, [B, BOOT, C, A]),  # of a broker that does not see the others
        ({1: D, 2: B, 3: C}, [D, BOOT, B, C, A]),  # broker 1 has moved
        ({1: A, 2: B, 3: C, 4: D}, [D, BOOT, A, B, C]),
        ({3: A, 1: B, 2: C}, [A, BOOT, B, C]),  # the same addresses, given to other brokers
    ],
)
def test_what_metadata_leaves_out_is_asked_last(metadata: dict[int, Address], order: list[Address]) -> None:
    found = named({1: A, 2: B, 3: C})

    assert found.learn(metadata, "cluster", A)
    assert found.order(0.0) == order


def test_former_brokers_are_asked_newest_first_and_come_back() -> None:
    found = named({1: A})
    for address in (B, C):
        found.learn({1: address}, "cluster", BOOT)
    assert found.order(0.0) == [C, BOOT, B, A]

    found.learn({1: A}, "cluster", BOOT)
    assert found.order(0.0) == [A, BOOT, C, B]


def test_former_brokers_are_not_kept_without_limit() -> None:
    found = named({1: Address("h", 0)})
    for port in range(1, 1000):
        found.learn({1: Address("h", port)}, "cluster", BOOT)
        found.failed(Address("h", port), "refused", 0.0)

    assert len(found.order(0.0)) == 102
    assert found.describe_failures().count(";") <= 8


def test_the_coordinators_address_is_learned_where_the_coordinator_is_named() -> None:
    found = named({1: A, 2: B})

    found.learn_one(1, D)

    assert found.address_of(1) == D
    assert set(found.order(0.0)) == {D, B, BOOT, A}


def test_without_recovery_bootstrap_servers_are_asked_before_the_first_metadata_alone() -> None:
    found = known(BOOT, rebootstraps=False)
    assert found.order(0.0) == [BOOT]

    found.learn({1: A}, "cluster", BOOT)
    assert found.order(0.0) == [A]


# --- Another cluster --------------------------------------------------------------------------------------


def test_a_brokers_address_that_another_cluster_has_now_is_not_believed() -> None:
    """Container platforms give addresses to others within minutes."""
    found = named({1: A, 2: B})

    assert not found.learn({1: C}, "other", A)
    assert set(found.order(0.0)) == {A, B, BOOT}


def test_a_bootstrap_server_may_lead_to_another_cluster() -> None:
    found = named({1: A, 2: B})

    assert found.learn({1: C}, "other", BOOT)
    assert set(found.order(0.0)) == {C, BOOT}


def test_a_broker_that_does_not_say_its_cluster_is_believed() -> None:
    found = named({1: A})

    assert found.learn({1: B}, None, A)
    assert found.cluster_id == "cluster"


# --- The order --------------------------------------------------------------------------------------------


def test_connected_brokers_are_asked_first() -> None:
    assert named({1: A, 2: B, 3: C}).order(0.0, {C}) == [C, A, BOOT, B]


def test_brokers_that_failed_take_turns_behind_the_others() -> None:
    found = named({1: A, 2: B, 3: C})
    found.failed(B, "refused", 1.0)
    found.failed(A, "refused", 2.0)
    assert found.order(3.0, {A}) == [BOOT, C, B, A]

    found.failed(BOOT, "refused", 3.0)
    found.failed(C, "refused", 4.0)
    found.failed(B, "refused", 5.0)
    assert found.order(6.0) == [A, BOOT, C, B]

    found.answered(B)
    assert found.order(6.0) == [B, A, BOOT, C]


def test_a_broker_that_may_not_be_connected_yet_is_asked_last() -> None:
    found = named({1: A, 2: B})
    found.not_connected(A, 0.0)

    assert found.order(0.05) == [BOOT, B, A]
    assert found.order(0.2) == [A, BOOT, B]


def test_a_broker_that_keeps_others_waiting_is_asked_last() -> None:
    found = named({1: A, 2: B})
    found.begins(A, 0.0)
    found.begins(A, 1.0)
    assert found.order(0.1) == [A, BOOT, B], "it has not taken long yet"
    assert found.order(1.0) == [BOOT, B, A]

    found.ends(A)
    assert found.order(1.0) == [BOOT, B, A], "the other attempt waits"
    found.ends(A)
    assert found.order(1.0) == [A, BOOT, B]


# --- Times ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("first", "longest", "pauses"),
    [
        (0.1, 0.25, [0.1, 0.2, 0.25, 0.25]),
        (2.0, 2.0, [2.0, 2.0]),
        (0.0, 0.0, [0.0, 0.0]),
    ],
)
def test_connections_that_fail_are_made_less_often(first: float, longest: float, pauses: list[float]) -> None:
    found = KnownBrokers([A], ConnectionBackoff(first, longest), chance=_Unshuffled())

    assert [found.not_connected(A, 10.0) for _ in pauses] == pytest.approx(pauses)
    assert found.delay(A, 10.0) == pytest.approx(pauses[-1])
    assert found.delay(A, 20.0) == 0
    found.connected(A)
    assert found.delay(A, 10.0) == 0
    assert found.not_connected(A, 10.0) == pytest.approx(pauses[0])


def test_each_connection_that_failed_is_counted_and_none_is_forgotten() -> None:
    """The next one begins at another address of the name, and at the one that was opened last."""
    known = KnownBrokers([A])
    counts = [known.failed_connections(A)]
    for _ in range(2):
        known.not_connected(A, 0.0)
        counts.append(known.failed_connections(A))
    known.connected(A)
    assert [*counts, known.failed_connections(A)] == [0, 1, 2, 2]


def test_pauses_are_random() -> None:
    found = KnownBrokers([A])
    pauses = [found.not_connected(A, 0.0) for _ in range(100)][2:]

    assert all(0.2 <= pause <= 0.3 for pause in pauses)
    assert len(set(pauses)) > 1


def test_new_credentials_are_tried_at_once() -> None:
    found = known(A, B)
    found.not_connected(A, 0.0)
    found.not_connected(B, 0.0)

    found.retry_now()

    assert [found.delay(A, 0.0), found.delay(B, 0.0)] == [0, 0]


def test_a_slow_network_gets_more_time_with_each_timeout() -> None:
    found = known(A)
    timeouts = []
    for _ in range(5):
        timeouts.append(found.timeout(A, 2.0, 20.0))
        found.failed(A, "no response", 0.0, timed_out=True)
    assert timeouts == [2, 4, 8, 16, 20]

    found.failed(A, "refused", 0.0)
    assert found.timeout(A, 2.0, 20.0) == 20, "a refusal says nothing of the network"
    found.answered(A)
    assert found.timeout(A, 2.0, 20.0) == 2


def test_more_brokers_are_asked_at_longer_and_longer_intervals() -> None:
    assert [stagger(asked) for asked in (1, 2, 3, 4, 100)] == [0.25, 0.5, 1, 1, 1]


# --- Reasons ----------------------------------------------------------------------------------------------


def test_each_broker_is_named_with_its_newest_failure_until_the_coordinator_is_found() -> None:
    found = named({1: A, 2: B})
    found.failed(A, "a:9092 cannot be reached", 0.0)
    found.failed(B, "refused", 0.0)
    assert not found.all_failed

    found.failed(B, "it names a:9092 as the coordinator", 1.0)
    found.failed(BOOT, "no response", 1.0)
    assert found.all_failed
    assert found.describe_failures() == (
        "a:9092 cannot be reached; b:9092: it names a:9092 as the coordinator; boot:9092: no response"
    )

    found.found()
    assert found.describe_failures() == ""


def test_a_message_about_many_brokers_is_short() -> None:
    failures = {Address("h", port): "refused" for port in range(20)}

    assert describe(failures).endswith("h:7: refused; and 12 more brokers")
