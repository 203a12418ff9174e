"""The files with a client's settings: librdkafka's properties, Java's, JSON and TOML."""

from pathlib import Path

import pytest

from groupwright.cli._cluster.first_messages import first_messages
from groupwright.cli._command_line.connection import client_settings, connection_settings, read_settings
from groupwright.cli._command_line.exit import CommandError, ExitStatus
from groupwright.cli.demo.cluster import Cluster
from groupwright.cli.exporter.offsets_topic_source import OffsetsLog

CONSUMERS = {
    "Java": {
        "group.id": "billing",
        "default.api.timeout.ms": "60000",
        "fetch.max.wait.ms": "500",
        "interceptor.classes": "com.example.Interceptor",
        "partition.assignment.strategy": "org.apache.kafka.clients.consumer.CooperativeStickyAssignor",
        "receive.buffer.bytes": "65536",
        "request.timeout.ms": "30000",
        "sasl.oauthbearer.scope.claim.name": "scope",
        "socket.connection.setup.timeout.max.ms": "30000",
        "ssl.enabled.protocols": "TLSv1.2,TLSv1.3",
        "ssl.provider": "SunJSSE",
    },
    "Groupwright": {
        "group.id": "billing",
        "fetch.max.bytes": "1000",
        "load.check.interval.ms": "60000",
        "partition.assignment.strategy": "load-aware",
        "session.timeout.ms": "600000",
    },
}
"""Settings of consumers that librdkafka rejects, or that contradict those of the commands' own clients."""


def written(tmp_path: Path, text: str, name: str = "client.properties") -> Path:
    path = tmp_path / name
    path.write_text(text, encoding="utf-8")
    return path


def test_properties_have_comments_both_separators_and_continued_lines(tmp_path: Path) -> None:
    path = written(
        tmp_path,
        "# of the staging cluster\n! as well\n\nbootstrap.servers = a:9092,\\\n    b:9092\n"
        "security.protocol: SASL_SSL\nsasl.password=a=b:c #d\n",
    )

    assert read_settings(path) == {
        "bootstrap.servers": "a:9092,b:9092",
        "security.protocol": "SASL_SSL",
        "sasl.password": "a=b:c #d",
    }


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("client.json", '{"bootstrap.servers": "a:9092", "socket.timeout.ms": 500}'),
        ("client.toml", '"bootstrap.servers" = "a:9092"\n[socket.timeout]\nms = 500\n'),
    ],
)
def test_json_and_toml_keep_the_types_of_values(tmp_path: Path, name: str, text: str) -> None:
    assert read_settings(written(tmp_path, text, name)) == {
        "bootstrap.servers": "a:9092",
        "socket.timeout.ms": 500,
    }


@pytest.mark.parametrize(
    ("java", "librdkafka"),
    [
        (
            (
                "sasl.mechanism=SCRAM-SHA-512\n"
                "sasl.jaas.config=org.apache.kafka.common.security.scram.ScramLoginModule required \\\n"
                '  username="alice" password="a \\\\"quoted\\\\" one; and=more";\n'
            ),
            {
                "sasl.mechanism": "SCRAM-SHA-512",
                "sasl.username": "alice",
                "sasl.password": 'a "quoted" one; and=more',
            },
        ),
        (
            (
                "sasl.jaas.config=org.apache.kafka.common.security.plain.PlainLoginModule required "
                "username=alice password=secret;\n"
            ),
            {"sasl.username": "alice", "sasl.password": "secret"},
        ),
        (
            (
                "sasl.mechanism=OAUTHBEARER\nsasl.oauthbearer.token.endpoint.url=https://login/token\n"
                "sasl.login.callback.handler.class=org.apache.kafka.OAuthBearerLoginCallbackHandler\n"
                "sasl.jaas.config=org.apache.kafka.common.security.OAuthBearerLoginModule required "
                'clientId="app" clientSecret="hidden" scope="kafka";\n'
            ),
            {
                "sasl.mechanism": "OAUTHBEARER",
                "sasl.oauthbearer.method": "oidc",
                "sasl.oauthbearer.token.endpoint.url": "https://login/token",
                "sasl.oauthbearer.client.id": "app",
                "sasl.oauthbearer.client.secret": "hidden",
                "sasl.oauthbearer.scope": "kafka",
            },
        ),
        (
            (
                "ssl.truststore.type=PEM\nssl.truststore.location=/etc/ca.pem\n"
                "ssl.endpoint.identification.algorithm=\n"
            ),
            {"ssl.ca.location": "/etc/ca.pem", "ssl.endpoint.identification.algorithm": "none"},
        ),
        (
            "ssl.keystore.type=PKCS12\nssl.keystore.location=/etc/c.p12\nssl.keystore.password=p\n",
            {"ssl.keystore.location": "/etc/c.p12", "ssl.keystore.password": "p"},
        ),
        (
            "ssl.keystore.type=PEM\nssl.keystore.location=/etc/client.pem\n",
            {"ssl.certificate.location": "/etc/client.pem", "ssl.key.location": "/etc/client.pem"},
        ),
        (
            "ssl.keystore.location=/etc/client.p12\nssl.keystore.password=p\n",
            {"ssl.keystore.location": "/etc/client.p12", "ssl.keystore.password": "p"},
        ),
    ],
)
def test_javas_settings_of_connections_are_translated(
    tmp_path: Path, java: str, librdkafka: dict[str, str]
) -> None:
    assert read_settings(written(tmp_path, java)) == librdkafka


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("ssl.truststore.location=/etc/trust.jks\n", "JKS file, which only Java reads"),
        ("ssl.keystore.type=JKS\nssl.keystore.location=/etc/key.jks\n", "keytool -importkeystore"),
        ("sasl.jaas.config=com.example.Login required;\n", "names Login, which is not supported"),
        ("sasl.jaas.config=x.PlainLoginModule required username=a;\n", "has no username and password"),
        ("bootstrap.servers a:9092\n", "cannot be read: line 1 is not a setting"),
    ],
)
def test_what_cannot_be_translated_is_refused_with_what_to_do(tmp_path: Path, text: str, words: str) -> None:
    with pytest.raises(CommandError, match=words) as caught:
        read_settings(written(tmp_path, text))

    assert caught.value.status is ExitStatus.USAGE


@pytest.mark.parametrize(("name", "text"), [("a.json", "[1]"), ("a.json", "{"), ("a.toml", "= 1")])
def test_a_malformed_file_is_refused(tmp_path: Path, name: str, text: str) -> None:
    with pytest.raises(CommandError, match=r"a\.(json|toml)"):
        read_settings(written(tmp_path, text, name))


def test_the_option_overrides_the_file_and_one_of_them_is_needed(tmp_path: Path) -> None:
    path = written(tmp_path, "bootstrap.servers=a:1\nclient.id=mine\n")

    assert connection_settings("b:2", path) == {"bootstrap.servers": "b:2", "client.id": "mine"}
    with pytest.raises(CommandError, match="no broker is set"):
        connection_settings(None, None)


def test_a_misspelt_setting_is_refused_and_those_of_java_alone_are_not(tmp_path: Path) -> None:
    path = written(tmp_path, "bootstrap.servers=a:1\nsecurty.protocol=SSL\n")
    with pytest.raises(CommandError, match=r"'securty\.protocol', did you mean 'security\.protocol'\?"):
        connection_settings(None, path)

    written(tmp_path, "bootstrap.servers=a:1\ndefault.api.timeout.ms=60000\nmax.poll.records=5\n")
    assert connection_settings(None, path)["bootstrap.servers"] == "a:1"

    classes = ("key.serializer", "value.serializer", "key.deserializer", "value.deserializer")
    written(tmp_path, "\n".join(["bootstrap.servers=a:1", *(f"{key}=a.Class" for key in classes)]))
    assert connection_settings(None, path) == {"bootstrap.servers": "a:1"}


def test_a_file_that_is_not_there_is_said_once(tmp_path: Path) -> None:
    with pytest.raises(CommandError, match=r"^\S+/none\.json cannot be read: No such file or directory$"):
        read_settings(tmp_path / "none.json")


def test_clients_of_librdkafka_get_the_settings_of_connections_alone() -> None:
    connection = {
        "bootstrap.servers": "a:9092",
        "client.id": "admin",
        "enable.ssl.certificate.verification": "false",
        "reconnect.backoff.ms": "50",
        "sasl.mechanisms": "PLAIN",
        "sasl.password": "secret",
        "security.protocol": "SASL_SSL",
        "socket.timeout.ms": 500,
        "ssl.ca.location": "/etc/ca.pem",
    }

    assert client_settings({**CONSUMERS["Java"], **CONSUMERS["Groupwright"], **connection}) == connection


@pytest.mark.parametrize("consumer", CONSUMERS)
def test_a_consumers_file_is_no_error_to_the_commands_own_clients(tmp_path: Path, consumer: str) -> None:
    lines = [f"{key}={value}" for key, value in CONSUMERS[consumer].items()]
    settings = connection_settings("127.0.0.1:9", written(tmp_path, "\n".join(lines)))

    found = first_messages(settings, {("orders", 0, 5)}, 0.01)
    OffsetsLog(settings, 0.01).close()
    Cluster(client_settings(settings))

    assert found.has_message == {}
    assert found.late == {("orders", 0, 5)}
