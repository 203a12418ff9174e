"""The configuration: what is read, split and translated, and every refusal with its words."""

import math
import socket
from collections.abc import Mapping
from typing import Any

import pytest

from groupwright.assignors import (
    Assignor,
    Group,
    RangeAssignor,
    RebalanceProtocol,
    RoundRobinAssignor,
    UniformAssignor,
)
from groupwright.consumer import ConfigurationError
from groupwright.consumer._config.config import (
    ConsumerConfig,
    is_broker_assigned,
    read_config,
    read_connection,
)
from groupwright.consumer._config.network_config import Transport
from groupwright.consumer._config.strategy import read_strategy


def read(**keys: Any) -> ConsumerConfig:
    """Read a configuration with the necessary keys and these, in which underscores stand for dots."""
    config = {"bootstrap.servers": "127.0.0.1:9092", "group.id": "g"}
    callbacks = {"on_commit"}
    return read_config(
        config | {key if key in callbacks else key.replace("_", "."): value for key, value in keys.items()}
    )


class Mine(Assignor):
    name = "mine"

    def assign(self, group: Group) -> Mapping[str, Mapping[str, list[int]]]:
        return {member.id: {} for member in group.members}


class Cooperative(Mine):
    name = "only-cooperative"
    protocols = frozenset({RebalanceProtocol.COOPERATIVE})


class Nameless(Mine):
    name = ""


def test_the_defaults_are_librdkafkas() -> None:
    """With one assignor more, last, which no group chooses where librdkafka's could have been."""
    config = read()

    assert config.timing.session_timeout == 45.0
    assert config.timing.heartbeat_interval == 3.0
    assert config.timing.max_poll_interval == 300.0
    assert config.auto_commit
    assert config.auto_commit_interval == 5.0
    assert not config.store_by_hand
    assert config.offset_reset == "largest"
    assert config.on_commit is None
    assert config.rack is None
    assert list(config.assignors) == ["range", "roundrobin", "cooperative-sticky"]
    assert not config.cooperative
    assert config.network.client_id == "rdkafka"
    assert config.network.group_instance_id is None
    assert config.network.request_timeout == 60.0
    assert not config.network.allow_auto_create_topics


def test_numbers_and_booleans_may_be_strings() -> None:
    config = read(
        session_timeout_ms="6000",
        heartbeat_interval_ms="500",
        max_poll_interval_ms="10000",
        auto_commit_interval_ms="100",
        enable_auto_commit="False",
        enable_auto_offset_store="false",
        allow_auto_create_topics="t",
    )

    assert (config.timing.session_timeout, config.timing.heartbeat_interval) == (6.0, 0.5)
    assert config.timing.max_poll_interval == 10.0
    assert config.auto_commit_interval == 0.1
    assert (config.auto_commit, config.store_by_hand) == (False, True)
    assert config.network.allow_auto_create_topics


def test_membership_gets_its_timings_and_ids() -> None:
    config = read(client_id="c", client_rack="r", group_instance_id="i", max_poll_interval_ms=60_000)

    assert (config.network.client_id, config.rack) == ("c", "r")
    assert (config.network.group_id, config.network.group_instance_id) == ("g", "i")
    assert config.network.rebalance_timeout == 60.0


@pytest.mark.parametrize(
    ("keys", "longest"),
    [
        ({}, 1000),
        ({"reconnect_backoff_ms": 3000}, 3000),
        ({"reconnect_backoff_max_ms": 10_000}, 10_000),
        ({"reconnect_backoff_max_ms": 50}, 50),
    ],
)
def test_librdkafka_waits_a_second_before_it_connects_anew_unless_told_otherwise(
    keys: dict[str, int], longest: int
) -> None:
    """With its own default of 10 s, one consumer in twelve fetched again only 6 s after an outage."""
    assert read(**keys).native["reconnect.backoff.max.ms"] == longest


def test_librdkafka_never_commits_and_knows_nothing_of_assignors() -> None:
    """In no group, its commits would be refused; and every other key is its own to check."""

    def on_commit(error: object, partitions: object) -> None: ...

    config = read(
        enable_auto_commit=True,
        on_commit=on_commit,
        partition_assignment_strategy=[Mine()],
        fetch_min_bytes=7,
        no_such_key="kept",
    )

    assert config.native == {
        "bootstrap.servers": "127.0.0.1:9092",
        "group.id": "g",
        "reconnect.backoff.max.ms": 1000,
        "enable.auto.commit": False,
        "fetch.min.bytes": 7,
        "no.such.key": "kept",
    }
    assert config.on_commit is on_commit


def test_a_topic_setting_may_stand_in_the_old_topic_configuration() -> None:
    config = read_config(
        {
            "metadata.broker.list": "127.0.0.1:9092",
            "group.id": "g",
            "default.topic.config": {"auto.offset.reset": "Earliest"},
        }
    )

    assert config.offset_reset == "earliest"
    assert config.network.bootstrap_servers == "127.0.0.1:9092"


@pytest.mark.parametrize(
    ("value", "names"),
    [
        pytest.param("range", ["range"], id="a name"),
        pytest.param(" roundrobin , range,", ["roundrobin", "range"], id="names"),
        pytest.param(Mine(), ["mine"], id="an object"),
        pytest.param([Mine(), "range"], ["mine", "range"], id="both"),
        pytest.param((RoundRobinAssignor(), RangeAssignor()), ["roundrobin", "range"], id="a tuple"),
        # The first bounce of Kafka's way from eager to cooperative rebalances: still eager.
        pytest.param("cooperative-sticky,range", ["cooperative-sticky", "range"], id="on the way"),
    ],
)
def test_a_strategy_is_names_and_objects_by_preference(value: object, names: list[str]) -> None:
    assert list(read_strategy(value)) == names


@pytest.mark.parametrize(
    ("value", "cooperative"),
    [
        ("range", False),
        ("sticky", False),
        ("cooperative-sticky", True),
        ([Cooperative()], True),
        ([Cooperative(), "cooperative-sticky"], True),
        # The first bounce of Kafka's way from eager to cooperative rebalances; the second leaves range out.
        ("cooperative-sticky,range", False),
        ("range,cooperative-sticky", False),
    ],
)
def test_a_member_is_cooperative_if_all_its_assignors_are(value: object, *, cooperative: bool) -> None:
    """As in Java: the highest protocol that all support."""
    assert read(partition_assignment_strategy=value).cooperative is cooperative


@pytest.mark.parametrize(
    ("value", "seconds"), [(-1, math.inf), (0, math.inf), ("60000", 60.0), (None, 300.0)]
)
def test_how_often_topics_are_looked_at(value: object, seconds: float) -> None:
    keys = {} if value is None else {"topic_metadata_refresh_interval_ms": value}
    assert read(**keys).timing.metadata_refresh == seconds


def test_texts_are_read_without_white_space_before_them() -> None:
    """As librdkafka does: the member would commit to another group than the application's former one."""
    config = read(group_id=" \tg", client_id=" c", group_instance_id="\n i", client_rack=" r")

    network = config.network
    assert (network.group_id, network.client_id, network.group_instance_id) == ("g", "c", "i")
    assert config.rack == " r", "librdkafka keeps this one's"


def test_topics_that_are_ignored_are_expressions() -> None:
    ignored = read(topic_blacklist=" ^test, -tmp$,").ignored_topics
    assert [pattern.pattern for pattern in ignored] == ["^test", "-tmp$"]

    with pytest.raises(ConfigurationError, match=r"topic.blacklist: '\^\(' is no regular expression"):
        read(topic_blacklist="^(")


def test_an_object_is_taken_as_it_is() -> None:
    mine = Mine()

    assert read_strategy([mine])["mine"] is mine


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ("nosuch", "partition.assignment.strategy: no assignor is named 'nosuch'; there are: "),
        (
            "",
            "partition.assignment.strategy is empty; leave it out for 'range,roundrobin,cooperative-sticky'",
        ),
        ([], "partition.assignment.strategy is empty"),
        (Mine, "partition.assignment.strategy has the class Mine; give an object: Mine()"),
        ([Mine], "partition.assignment.strategy has the class Mine; give an object: Mine()"),
        (
            7,
            (
                "partition.assignment.strategy takes names, assignors or a list of them, "
                "in order of preference; not 7"
            ),
        ),
        (
            "range,uniform",
            (
                "partition.assignment.strategy: assignor 'broker:uniform' runs in the broker and not in "
                "members; to have it, set group.protocol=consumer and group.remote.assignor=uniform"
            ),
        ),
        ("broker:range", "partition.assignment.strategy: assignor 'broker:range' runs in the broker"),
        ([UniformAssignor()], "partition.assignment.strategy: assignor 'broker:uniform' runs in the"),
        ([7], "partition.assignment.strategy has 7, which is neither a name nor an Assignor"),
        (
            Nameless(),
            "partition.assignment.strategy: Nameless.name must be a string that is not empty, not ''",
        ),
        (
            [Cooperative(), "range"],
            "partition.assignment.strategy mixes assignors without a rebalance protocol in common: ",
        ),
    ],
)
def test_a_strategy_that_cannot_be_used_is_refused(value: object, words: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        read(partition_assignment_strategy=value)

    assert str(caught.value).startswith(words)


@pytest.mark.parametrize(
    ("keys", "words"),
    [
        ({"bootstrap_servers": "a:1,b:x"}, "bootstrap.servers has 'b:x'; the form is \"host:port\""),
        ({"bootstrap_servers": b"a:1"}, "bootstrap.servers has \"b'a:1'\"; the form is "),
        ({"group_protocol": "share"}, "group.protocol takes classic, consumer, not 'share'"),
        ({"session_timeout_ms": "soon"}, "session.timeout.ms takes a whole number, not 'soon'"),
        ({"session_timeout_ms": True}, "session.timeout.ms takes a whole number, not True"),
        ({"session_timeout_ms": float("nan")}, "session.timeout.ms takes a whole number, not nan"),
        ({"session_timeout_ms": 0.5}, "session.timeout.ms takes 1 to 3600000, not 0"),
        ({"enable_auto_commit": "maybe"}, "enable.auto.commit takes true or false, not 'maybe'"),
        (
            {"session_timeout_ms": 6000, "max_poll_interval_ms": 5999},
            "max.poll.interval.ms (5999) must not be less than session.timeout.ms (6000)",
        ),
        ({"on_commit": "print"}, "on_commit takes a function, not 'print'"),
        ({"broker_address_family": "v5"}, "broker.address.family takes any, v4, v6, not 'v5'"),
        (
            {"client_dns_lookup": "once"},
            "client.dns.lookup takes use_all_dns_ips, resolve_canonical_bootstrap",
        ),
        (
            {"security_protocol": "tls"},
            "security.protocol takes PLAINTEXT, SSL, SASL_PLAINTEXT, SASL_SSL",
        ),
    ],
)
def test_a_configuration_that_cannot_be_honoured_is_refused(keys: dict[str, Any], words: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        read(**keys)

    assert str(caught.value).startswith(words)


@pytest.mark.parametrize("config", [{}, {"bootstrap.servers": "127.0.0.1:9092"}, {"group.id": ""}])
def test_a_consumer_needs_a_group(config: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"group\.id must be set"):
        read_config(config)


@pytest.mark.parametrize(
    ("written", "read_as"),
    [
        ("a:1, b:2,", "a:1,b:2"),
        ("a", "a"),
        ("SASL_SSL://a:1", "SASL_SSL://a:1"),
        ("[::1]:9092,[::1]", "[::1]:9092,[::1]"),
        ("::1,fe80::2", "[::1],[fe80::2]"),
        ("", ""),
        (" , ", ""),
    ],
)
def test_servers_are_read_without_what_is_empty(written: str, read_as: str) -> None:
    """An empty name would resolve to this very machine."""
    assert read(bootstrap_servers=written).network.bootstrap_servers == read_as


def test_settings_of_connections_are_translated_for_the_coordinators() -> None:
    config = read(
        reconnect_backoff_ms=50,
        reconnect_backoff_max_ms=500,
        receive_message_max_bytes=1_000_000,
        socket_connection_setup_timeout_ms=5_000,
        socket_keepalive_enable=True,
        socket_nagle_disable=False,
        socket_send_buffer_bytes=4096,
        socket_receive_buffer_bytes="8192",
        connections_max_idle_ms=60_000,
        broker_address_family="V4",
        client_dns_lookup="use_all_dns_ips",
    )

    assert config.network.transport == Transport(
        address_family=socket.AF_INET,
        rebootstraps=True,
        resolves_canonical_names=False,
        max_idle=60.0,
        max_bytes=1_000_000,
        reconnect_backoff=0.05,
        reconnect_backoff_max=0.5,
        setup_timeout=5.0,
        socket_options=[
            (socket.IPPROTO_TCP, socket.TCP_NODELAY, 0),
            (socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1),
            (socket.SOL_SOCKET, socket.SO_SNDBUF, 4096),
            (socket.SOL_SOCKET, socket.SO_RCVBUF, 8192),
        ],
    )


@pytest.mark.parametrize(("timeout", "setup"), [(3.0, 3.0), (60.0, 30.0)])
def test_a_request_does_not_wait_longer_for_its_connection_than_for_its_response(
    timeout: float, setup: float
) -> None:
    """A broker that hangs accepts connections, and answers nothing."""
    assert read_connection({"bootstrap.servers": "b"}, timeout=timeout).transport.setup_timeout == setup


def test_idle_connections_stay_by_default() -> None:
    """As with librdkafka, where 0 turns their closing off."""
    assert read().network.transport.max_idle == 0


def test_an_interval_of_zero_turns_automatic_commits_off() -> None:
    assert not read(auto_commit_interval_ms=0).auto_commit


def test_a_value_of_none_is_librdkafkas_to_judge() -> None:
    """It refuses None for numbers, choices and callbacks, and takes it as "not set" for texts."""
    config = read(session_timeout_ms=None, enable_auto_commit=None, client_rack=None)

    assert config.timing.session_timeout == 45.0
    assert config.auto_commit
    assert [config.native[key] for key in ("session.timeout.ms", "enable.auto.commit", "client.rack")] == [
        None
    ] * 3
    with pytest.raises(ConfigurationError, match="on_commit takes a function, not None"):
        read(on_commit=None)


@pytest.mark.parametrize(
    ("value", "milliseconds"),
    [
        (6000.0, 6000),
        (6000.9, 6000),
        ("6000.9", 6000),
        (" 6000 ", 6000),
        ("0x10", 16),
        ("010", 8),
        ("7s", 7),
        (b"7", None),
    ],
)
def test_numbers_are_read_as_librdkafka_reads_them(value: object, milliseconds: int | None) -> None:
    """C's strtol, of the value as a text."""
    if milliseconds is None:
        with pytest.raises(ConfigurationError):
            read(session_timeout_ms=value)
    else:
        assert read(session_timeout_ms=value).timing.session_timeout == milliseconds / 1000


def test_heartbeats_are_sent_within_a_short_session(caplog: pytest.LogCaptureFixture) -> None:
    assert read(session_timeout_ms=100).timing.heartbeat_interval == pytest.approx(0.1 / 3)
    assert not caplog.records

    config = read(session_timeout_ms=6000, heartbeat_interval_ms=9000)

    assert config.timing.heartbeat_interval == 2.0
    assert "heartbeat.interval.ms (9000) is not less than session.timeout.ms (6000)" in caplog.text


def test_a_name_that_is_there_twice_counts_once() -> None:
    assert list(read(partition_assignment_strategy="range,roundrobin,range").assignors) == [
        "range",
        "roundrobin",
    ]


def test_nothing_turns_librdkafkas_own_commits_on() -> None:
    """confluent-kafka puts topic settings over the others."""
    config = read(default_topic_config={"enable.auto.commit": True})

    assert config.native["enable.auto.commit"] is False


# --- Where the broker assigns ---------------------------------------------------------------------------


def test_where_the_broker_assigns_all_keys_are_librdkafkas() -> None:
    def on_commit(error: object, partitions: object) -> None: ...

    keys = {"group.protocol": "Consumer", "enable.auto.commit": True, "group.remote.assignor": "uniform"}
    given = {"bootstrap.servers": "127.0.0.1:9092", "group.id": "g", "on_commit": on_commit, **keys}
    unserved_otherwise = {"security.protocol": "SASL_SSL", "sasl.oauthbearer.method": "oidc"}
    config = read_config(given | unserved_otherwise)

    assert is_broker_assigned(given)
    assert config.broker_assigned
    assert config.native == given | unserved_otherwise
    assert config.assignors == {}


def test_the_classic_protocol_is_not_the_brokers() -> None:
    assert not is_broker_assigned({"group.protocol": "classic"})
    assert not is_broker_assigned({"partition.assignment.strategy": [Mine()]})
    assert not read().broker_assigned


@pytest.mark.parametrize(
    ("key", "value", "words"),
    [
        ("partition.assignment.strategy", "range", "set group.remote.assignor to one of the broker's own"),
        (
            "partition.assignment.strategy",
            [Mine()],
            "for an assignor of your choice, leave group.protocol out",
        ),
        ("session.timeout.ms", 6000, "the broker's to set (group.consumer.session.timeout.ms)"),
        ("heartbeat.interval.ms", 3000, "the broker's to set (group.consumer.heartbeat.interval.ms)"),
        ("group.protocol.type", "consumer", "where there is no choice of it: leave group.protocol.type out"),
        ("load.check.max.moves", 5, "where no member checks the load: leave load.check.max.moves out"),
    ],
)
def test_what_does_not_go_with_a_broker_that_assigns_is_refused(key: str, value: object, words: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        read_config({"bootstrap.servers": "a:1", "group.id": "g", "group.protocol": "consumer", key: value})

    assert str(caught.value).startswith(f"{key} does not go with group.protocol=consumer, where ")
    assert words in str(caught.value)
