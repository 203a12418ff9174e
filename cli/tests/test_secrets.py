"""No command shows a secret of its settings, whatever their names, and however they are written."""

import itertools
import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from groupwright.cli._cluster.client import Cluster
from groupwright.cli._command_line.connection import read_settings
from groupwright.cli._command_line.exit import CommandError
from groupwright.cli.app import app
from groupwright.cli.doctor.validation import on_settings
from groupwright.consumer.configuration import known_properties
from groupwright.testing._kafka.certificates import write_certificates
from integration_tests.harness.secrets import SECRETS, leaks, texts_of

KEYS = (
    *sorted(key for key in known_properties() if key.startswith(("ssl.", "sasl.", "security."))),
    *(
        "sasl.jaas.config",
        "sasl.pasword",
        "ssl.truststore.location",
        "ssl.truststore.type",
        "ssl.keystore.type",
    ),
    *("ssl.truststore.certificates", "ssl.keystore.certificate.chain", "ssl.keystore.key"),
)
BASE = {
    "bootstrap.servers": "127.0.0.1:1",
    "security.protocol": "SASL_SSL",
    "ssl.keystore.location": __file__,
}


def written(tmp_path: Path, name: str, text: str) -> Path:
    path = tmp_path / name
    path.write_text(text, encoding="utf-8")
    return path


@pytest.mark.medium
def test_settings_of_a_file_are_not_shown(tmp_path: Path) -> None:
    certificates = write_certificates(tmp_path / "certificates", "127.0.0.1", [])
    base = {**BASE, "ssl.ca.location": str(certificates.authority)}
    others = itertools.cycle(("password", "list", "table", "URL"))
    for key in KEYS:
        for kind in ("PEM", next(others)):
            path = written(tmp_path, "client.json", json.dumps({**base, key: SECRETS[kind]}))
            try:
                given = read_settings(path)
                shown = [repr(finding) for finding in on_settings(given)]
                Cluster(given).close()
            except CommandError as error:
                shown = texts_of(error)
            assert not leaks(shown), (key, kind)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("client.properties", f"security.protocol=SSL\nssl.key.pem={SECRETS['PEM']}"),
        ("client.properties", f"sasl.password {SECRETS['password']}"),
        ("client.json", f'{{"ssl.key.pem": "{SECRETS["PEM"]}"}}'),
        ("client.json", json.dumps(SECRETS["PEM"])),
        ("client.toml", f'"ssl.key.pem" = "{SECRETS["PEM"]}"'),
        ("client.toml", f'"sasl.password" = {SECRETS["password"]}'),
    ],
)
def test_a_file_that_cannot_be_read_is_not_shown(tmp_path: Path, name: str, text: str) -> None:
    with pytest.raises(CommandError) as caught:
        read_settings(written(tmp_path, name, text))

    assert not leaks(texts_of(caught.value))


@pytest.mark.parametrize("command", ["groups", "lag", "exporter", "doctor"])
def test_commands_show_no_private_key(tmp_path: Path, command: str) -> None:
    settings = {**BASE, "security.protocol": "SSL", "ssl.ca.location": SECRETS["PEM"]}
    path = written(tmp_path, "client.json", json.dumps(settings))

    result = CliRunner().invoke(app, [command, "--config", str(path), *(["g"] if command == "lag" else [])])

    assert result.exit_code != 0
    assert "ssl.ca.location has PEM text where a path belongs: set ssl.ca.pem" in " ".join(
        result.output.split()
    )
    assert not leaks([result.output])


def test_an_argument_without_its_key_is_not_shown() -> None:
    result = CliRunner().invoke(app, ["doctor", "group.id=g", SECRETS["password"]])

    assert "setting 2 is not of the form KEY=VALUE" in result.output
    assert not leaks([result.output])
