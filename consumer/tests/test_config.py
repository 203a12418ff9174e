"""The configuration: what is read, split and translated, and every refusal with its words."""

from collections.abc import Mapping
from typing import Any

import pytest

from groupwright.assignors import Assignor, Group, RangeAssignor, RebalanceProtocol, RoundRobinAssignor
from groupwright.consumer import ConfigurationError
from groupwright.consumer.config import ConsumerConfig, read_config, read_strategy


def read(**keys: Any) -> ConsumerConfig:
    """Read a configuration with these keys (underscores for dots, but in callbacks) besides the necessary ones."""
    config = {"bootstrap.servers": "127.0.0.1:9092", "group.id": "g"}
    callbacks = {"on_commit", "oauth_cb"}
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
    assert list(config.assignors) == ["range", "roundrobin"]
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


def test_an_object_is_taken_as_it_is() -> None:
    mine = Mine()

    assert read_strategy([mine])["mine"] is mine


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ("nosuch", "partition.assignment.strategy: no assignor is named 'nosuch'; there are: "),
        ("range,range", "partition.assignment.strategy has two assignors of the name 'range'"),
        ("", "partition.assignment.strategy is empty; leave it out for 'range,roundrobin'"),
        ([], "partition.assignment.strategy is empty"),
        (Mine, "partition.assignment.strategy has the class Mine; give an object: Mine()"),
        ([Mine], "partition.assignment.strategy has the class Mine; give an object: Mine()"),
        (
            7,
            "partition.assignment.strategy takes names, assignors or a list of them, in order of preference; not 7",
        ),
        ([7], "partition.assignment.strategy has 7, which is neither a name nor an Assignor"),
        (
            Nameless(),
            "partition.assignment.strategy: Nameless.name must be a string that is not empty, not ''",
        ),
        (
            Cooperative(),
            "the assignor 'only-cooperative' is cooperative only, and this consumer rebalances eagerly",
        ),
        (
            "cooperative-sticky",
            "partition.assignment.strategy 'cooperative-sticky' asks for cooperative rebalances, and this consumer",
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
        (
            {"bootstrap_servers": ""},
            'bootstrap.servers must be set, to "host:port" or a comma-separated list',
        ),
        ({"bootstrap_servers": " , "}, "bootstrap.servers must be set"),
        ({"bootstrap_servers": "a:1,b:x"}, "bootstrap.servers has 'b:x'; the form is \"host:port\""),
        ({"bootstrap_servers": "::1:9092"}, "bootstrap.servers has '::1:9092'; the form is "),
        ({"group_protocol": "Consumer"}, "group.protocol=consumer lets the broker assign partitions"),
        ({"session_timeout_ms": "soon"}, "session.timeout.ms takes a whole number, not 'soon'"),
        ({"session_timeout_ms": None}, "session.timeout.ms takes a whole number, not None"),
        ({"enable_auto_commit": "maybe"}, "enable.auto.commit takes true or false, not 'maybe'"),
        (
            {"session_timeout_ms": 6000, "heartbeat_interval_ms": 6000},
            "heartbeat.interval.ms (6000) must be less than session.timeout.ms (6000)",
        ),
        (
            {"session_timeout_ms": 6000, "max_poll_interval_ms": 5999},
            "max.poll.interval.ms (5999) must not be less than session.timeout.ms (6000)",
        ),
        ({"on_commit": "print"}, "on_commit takes a function, not 'print'"),
        ({"oauth_cb": print}, "oauth_cb cannot be served by the connection to the coordinator yet"),
        ({"ssl_ca_pem": "-"}, "ssl.ca.pem cannot be served by the connection to the coordinator yet"),
        ({"sasl_kerberos_keytab": "k"}, "sasl.kerberos.keytab cannot be served by the connection"),
        (
            {"enable_ssl_certificate_verification": False},
            "enable.ssl.certificate.verification cannot be served",
        ),
        ({"security_protocol": "sasl_ssl"}, "security.protocol=SASL_SSL needs sasl.mechanism"),
        (
            {"security_protocol": "SASL_SSL", "sasl_mechanism": "gssapi"},
            "sasl.mechanism GSSAPI cannot be served yet; PLAIN, SCRAM-SHA-256, SCRAM-SHA-512 can",
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
    ],
)
def test_servers_are_read_without_what_is_empty(written: str, read_as: str) -> None:
    """An empty name would resolve to this very machine."""
    assert read(bootstrap_servers=written).network.bootstrap_servers == read_as


def test_security_keys_are_translated_for_the_coordinators_connection() -> None:
    config = read(
        security_protocol="sasl_ssl",
        sasl_mechanisms="scram-sha-256",
        sasl_username="me",
        sasl_password="secret-1",  # noqa: S106 - what must not show
        ssl_ca_location="/ca",
        ssl_certificate_location="/cert",
        ssl_key_location="/key",
        ssl_key_password="secret-2",  # noqa: S106 - as above
        reconnect_backoff_ms=50,
        reconnect_backoff_max_ms=500,
        receive_message_max_bytes=1_000_000,
    )

    assert config.network.transport == {
        "security_protocol": "SASL_SSL",
        "sasl_mechanism": "SCRAM-SHA-256",
        "sasl_plain_username": "me",
        "sasl_plain_password": "secret-1",
        "ssl_cafile": "/ca",
        "ssl_certfile": "/cert",
        "ssl_keyfile": "/key",
        "ssl_password": "secret-2",
        "reconnect_backoff_ms": 50,
        "reconnect_backoff_max_ms": 500,
        "receive_message_max_bytes": 1_000_000,
    }
    assert config.native["sasl.password"] == "secret-1"


def test_no_secret_is_shown() -> None:
    config = read(
        security_protocol="SASL_SSL",
        sasl_mechanism="PLAIN",
        sasl_username="me",
        sasl_password="secret-1",  # noqa: S106 - what must not show
        ssl_key_password="secret-2",  # noqa: S106 - as above
    )
    with pytest.raises(ConfigurationError) as caught:
        read(ssl_keystore_password="secret-3")  # noqa: S106 - as above

    assert "secret" not in repr(config) + repr(caught.value) + str(caught.value)
