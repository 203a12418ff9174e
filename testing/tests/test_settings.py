"""A broker's settings: defaults for one node, the user's own on top, in Java's file format."""

from pathlib import Path

from groupwright.testing._kafka import settings


def node(**overrides: settings.Setting) -> dict[str, str]:
    return settings.single_node(
        port=9092,
        controller_port=9093,
        log_dir=Path("/data"),
        overrides={name.replace("_", "."): value for name, value in overrides.items()},
    )


def test_a_node_is_broker_and_controller_on_loopback_alone() -> None:
    assert node()["process.roles"] == "broker,controller"
    assert node()["listeners"] == "PLAINTEXT://127.0.0.1:9092,CONTROLLER://127.0.0.1:9093"
    assert node()["controller.quorum.voters"] == "1@127.0.0.1:9093"
    assert node()["log.dirs"] == "/data"


def test_a_setting_of_the_user_wins_over_the_default() -> None:
    changed = node(group_initial_rebalance_delay_ms=3000, auto_create_topics_enable=True, num_partitions="5")

    assert changed["group.initial.rebalance.delay.ms"] == "3000"
    assert changed["auto.create.topics.enable"] == "true"
    assert changed["num.partitions"] == "5"


def test_the_file_escapes_what_java_would_read_as_an_escape() -> None:
    """`java.util.Properties` drops single backslashes and reads Latin-1, which breaks some paths."""
    text = settings.properties({"log.dirs": "C:\\kafka\\Zürich", "num.partitions": "3"})

    assert text == "log.dirs=C:\\\\kafka\\\\Z\\u00fcrich\nnum.partitions=3\n"


def test_nodes_of_a_cluster_know_each_other_by_name_and_send_clients_to_loopback() -> None:
    hosts = {1: "kafka-1", 2: "kafka-2"}

    second = settings.cluster_node(2, hosts=hosts, port=20_002, overrides={"num.partitions": 5})

    assert second["node.id"] == "2"
    assert second["controller.quorum.voters"] == "1@kafka-1:19093,2@kafka-2:19093"
    assert second["advertised.listeners"] == "CLIENT://127.0.0.1:20002,BROKER://kafka-2:19092"
    assert second["offsets.topic.replication.factor"] == "2"
    assert second["num.partitions"] == "5"


def test_a_listener_more_keeps_those_there_are_and_may_be_reached_through_a_proxy() -> None:
    tls = settings.AdditionalListener("TLS", 9094, "SSL")
    proxied = settings.AdditionalListener("PROXIED", 9095, advertised_port=40_000)

    opened = settings.with_listeners(node(), [tls, proxied], bound_to="127.0.0.1")

    assert opened["listeners"] == f"{node()['listeners']},TLS://127.0.0.1:9094,PROXIED://127.0.0.1:9095"
    assert opened["advertised.listeners"] == (
        "PLAINTEXT://127.0.0.1:9092,TLS://127.0.0.1:9094,PROXIED://127.0.0.1:40000"
    )
    assert opened["listener.security.protocol.map"] == (
        "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,TLS:SSL,PROXIED:PLAINTEXT"
    )


def test_a_setting_is_a_variable_of_the_image_and_can_be_told_back() -> None:
    """`KafkaDockerWrapper` reads three underscores as a dash, two as one, and one as a dot."""
    names = {"num.partitions": "3", "listener.name.a_b.scram-sha-256.sasl.jaas.config": "x"}

    assert settings.environment(names) == {
        "KAFKA_NUM_PARTITIONS": "3",
        "KAFKA_LISTENER_NAME_A__B_SCRAM___SHA___256_SASL_JAAS_CONFIG": "x",
    }
