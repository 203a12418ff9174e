"""A broker's settings: defaults for one node, the user's own on top, in Java's file format."""

import base64
from pathlib import Path

from groupwright.testing import settings


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
    """`java.util.Properties` drops single backslashes and reads Latin-1: a Windows or a Swiss path is lost."""
    text = settings.properties({"log.dirs": "C:\\kafka\\Zürich", "num.partitions": "3"})

    assert text == "log.dirs=C:\\\\kafka\\\\Z\\u00fcrich\nnum.partitions=3\n"


def test_a_cluster_id_is_sixteen_bytes_and_never_looks_like_an_option() -> None:
    ids = {settings.new_cluster_id() for _ in range(500)}

    assert len(ids) == 500
    assert not any("-" in each for each in ids)
    assert {len(base64.urlsafe_b64decode(each + "==")) for each in ids} == {16}


def test_a_directory_is_formatted_once_kafka_has_left_its_mark(tmp_path: Path) -> None:
    both = node(log_dirs=f"{tmp_path},/elsewhere")
    assert not settings.is_formatted(both)

    (tmp_path / "meta.properties").touch()

    assert settings.is_formatted(both)
