"""Options of commands that connect to a cluster, and the files that hold a client's settings.

A file is read by its suffix: `.json`, `.toml`, or else properties, as librdkafka's tools and Java's clients
write them. Java's settings of connections are translated to librdkafka's.
"""

import json
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from groupwright.cli._command_line.exit import CommandError, ExitStatus, unusable_file
from groupwright.cli._command_line.suggest import SPELLING
from groupwright.core.spelling import did_you_mean

_JAAS = "sasl.jaas.config"
_JAVA_ALONE = frozenset(
    {
        "sasl.oauthbearer.scope.claim.name",
        "socket.connection.setup.timeout.max.ms",
        "ssl.provider",
    }
)
"""Settings of Java whose names are so close to librdkafka's that they look misspelt."""
_CONNECTIONS = (
    *("bootstrap.servers", "client.id", "client.dns.lookup", "connections.max.idle.ms"),
    *("security.protocol", "ssl.", "sasl.", "https.", "enable.ssl.", "enable.sasl."),
    *("socket.", "broker.", "api.version.", "reconnect.backoff.", "retry.backoff.", "metadata.recovery."),
)
"""Beginnings of librdkafka's settings of connections."""

BootstrapServers = Annotated[
    str | None,
    typer.Option(
        metavar="HOST:PORT,...",
        envvar="GROUPWRIGHT_BOOTSTRAP_SERVERS",
        show_envvar=False,  # the name is too long for the table of options
        help="Brokers to connect to first; overrides the file's.",
        show_default=False,
    ),
]
ConfigFile = Annotated[
    Path | None,
    typer.Option(
        "--config",
        metavar="FILE",
        envvar="GROUPWRIGHT_CONFIG",
        show_envvar=False,  # as above
        help="Settings of the client, such as security: .properties (Java's too), .json or .toml.",
        show_default=False,
    ),
]
Timeout = Annotated[
    float, typer.Option(metavar="SECONDS", min=1, help="Timeout of each request to a broker.")
]


def connection_settings(bootstrap_servers: str | None, config: Path | None) -> dict[str, Any]:
    """Return the settings of the options `BootstrapServers` and `ConfigFile`.

    Raises:
        CommandError: No bootstrap servers are set, the file cannot be read, or a setting in it is misspelt.
            Settings that only other clients know, such as Java's, are no error.
    """
    settings = read_settings(config) if config is not None else {}
    _check_spelling(config, settings)
    if bootstrap_servers:
        settings["bootstrap.servers"] = bootstrap_servers
    if not settings.get("bootstrap.servers"):
        raise CommandError(
            "no broker is set: pass --bootstrap-servers HOST:PORT or --config FILE, or set "
            "GROUPWRIGHT_BOOTSTRAP_SERVERS or GROUPWRIGHT_CONFIG",
            ExitStatus.USAGE,
        )
    return settings


def client_settings(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings with which librdkafka's clients connect, for the commands' own clients.

    Those of a file's consumer, such as its assignors, do not apply to them, and librdkafka rejects those that
    only other clients know.

    Args:
        settings: Settings in a file; see `connection_settings` and `read_settings`.
    """
    from groupwright.consumer.configuration import known_properties

    known = known_properties()
    return {key: value for key, value in settings.items() if key in known and key.startswith(_CONNECTIONS)}


def _check_spelling(path: Path | None, settings: Mapping[str, Any]) -> None:
    from groupwright.consumer.configuration import known_properties

    known = known_properties() if settings else frozenset()
    for key in settings:
        if key not in known | _JAVA_ALONE and (hint := did_you_mean(key, known, SPELLING)):
            raise CommandError(f"{path}: there is no setting {key!r}{hint}", ExitStatus.USAGE)


def read_settings(path: Path) -> dict[str, Any]:
    """Return the settings in a file, with Java's settings of connections translated.

    Raises:
        CommandError: The file cannot be read, or has a setting that cannot be translated.
    """
    # Raised outside of `except`: the context, such as a JSONDecodeError, would hold the whole file.
    try:
        text = path.read_text(encoding="utf-8")
        match path.suffix:
            case ".json":
                loaded = json.loads(text)
            case ".toml":
                import tomllib

                loaded = _flat(tomllib.loads(text))
            case _:
                loaded = _properties(text)
    except (OSError, ValueError) as error:
        failure = unusable_file(path, "read", error)
    else:
        return _settings(path, loaded)
    raise failure


def _settings(path: Path, loaded: Any) -> dict[str, Any]:
    if not isinstance(loaded, dict):
        raise CommandError(f"{path} has no settings: write an object of keys and values", ExitStatus.USAGE)
    try:
        return _translated(loaded)
    except ValueError as error:
        raise CommandError(f"{path}: {error}", ExitStatus.USAGE) from None


def _flat(table: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Flatten nested tables to dotted keys, which TOML parses as tables unless they are quoted."""
    flat: dict[str, Any] = {}
    for key, value in table.items():
        flat |= _flat(value, f"{prefix}{key}.") if isinstance(value, dict) else {prefix + key: value}
    return flat


def _properties(text: str) -> dict[str, str]:
    """Parse properties: `key=value` or `key: value`, comments, and lines continued with a backslash."""
    settings: dict[str, str] = {}
    for number, line in _logical_lines(text):
        found = re.match(r"([^=:\s]+)\s*[=:]\s*(.*)", line)
        if found is None:
            # The line is not shown: it may be one of a private key.
            raise ValueError(f"line {number} is not a setting: write key=value")
        settings[found[1]] = found[2].strip()
    if _JAAS in settings:  # Java's properties have escapes, which librdkafka's do not
        settings[_JAAS] = re.sub(r"\\(.)", r"\1", settings[_JAAS])
    return settings


def _logical_lines(text: str) -> list[tuple[int, str]]:
    lines: list[tuple[int, str]] = []
    continued = False
    for number, line in enumerate(text.splitlines(), start=1):
        stripped = line.strip()
        if not continued and (not stripped or stripped[0] in "#!"):
            continue
        text_of_line = stripped.removesuffix("\\")
        if continued:
            lines[-1] = (lines[-1][0], lines[-1][1] + text_of_line)
        else:
            lines.append((number, text_of_line))
        continued = stripped.endswith("\\")
    return lines


# --- Java's settings --------------------------------------------------------------------------------

_JAAS_OPTION = re.compile(r'(\w+)\s*=\s*(?:"((?:[^"\\]|\\.)*)"|([^\s;"]+))')


def _translated(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Translate Java's settings of connections to librdkafka's; other settings stay as they are."""
    translated = dict(settings)
    java = dict(_JAVA)
    if "ssl.keystore.type" in settings:  # else librdkafka's setting of the same name, a PKCS#12 file
        java["ssl.keystore.location"] = _key_store
    for key, translate in java.items():
        value = translated.pop(key, None)
        if value not in (None, ""):
            translated |= translate(str(value), settings)
    for key in _JAVA_COMPANIONS:
        translated.pop(key, None)
    if translated.get("ssl.endpoint.identification.algorithm") == "":
        translated["ssl.endpoint.identification.algorithm"] = "none"
    return translated


def _jaas(value: str, _: Mapping[str, Any]) -> dict[str, Any]:
    module = value.strip().partition(" ")[0].rpartition(".")[2]
    options = {
        name: re.sub(r"\\(.)", r"\1", quoted) if quoted else bare
        for name, quoted, bare in _JAAS_OPTION.findall(value)
    }
    if module in {"PlainLoginModule", "ScramLoginModule"}:
        if "username" not in options or "password" not in options:
            raise ValueError("sasl.jaas.config has no username and password")
        return {"sasl.username": options["username"], "sasl.password": options["password"]}
    if module == "Krb5LoginModule":
        keys = {"keyTab": "sasl.kerberos.keytab", "principal": "sasl.kerberos.principal"}
        return {key: options[name] for name, key in keys.items() if name in options}
    if module == "OAuthBearerLoginModule":
        keys = {
            "clientId": "sasl.oauthbearer.client.id",
            "clientSecret": "sasl.oauthbearer.client.secret",
            "scope": "sasl.oauthbearer.scope",
        }
        return {"sasl.oauthbearer.method": "oidc"} | {
            key: options[name] for name, key in keys.items() if name in options
        }
    named = module if module.isidentifier() and module.endswith(("Module", "Login")) else "no login module"
    raise ValueError(
        f"sasl.jaas.config names {named}, which is not supported; set sasl.mechanism and sasl.username"
    )


def _trust_store(value: str, settings: Mapping[str, Any]) -> dict[str, Any]:
    kind = str(settings.get("ssl.truststore.type", "JKS")).upper()
    if kind == "PEM":
        return {"ssl.ca.location": value}
    raise ValueError(
        f"ssl.truststore.location is {_file_of(kind)}, which only Java reads. Export its certificates, with "
        "`keytool -exportcert -rfc`, to a PEM file, and set ssl.ca.location"
    )


def _key_store(value: str, settings: Mapping[str, Any]) -> dict[str, Any]:
    match str(settings["ssl.keystore.type"]).upper():
        case "PKCS12":
            return {"ssl.keystore.location": value}
        case "PEM":
            return {"ssl.certificate.location": value, "ssl.key.location": value}
        case kind:
            raise ValueError(
                f"ssl.keystore.location is {_file_of(kind)}, which only Java reads. Convert it, with "
                "`keytool -importkeystore -deststoretype pkcs12`, and set ssl.keystore.type=PKCS12"
            )


def _file_of(kind: str) -> str:
    """Return a type of key stores in words, or `a file` if there is no such type: it may be a secret."""
    return f"a {kind} file" if kind in {"BCFKS", "JKS", "PKCS12"} else "a file"


_JAVA: Mapping[str, Callable[[str, Mapping[str, Any]], dict[str, Any]]] = {
    _JAAS: _jaas,
    "ssl.truststore.location": _trust_store,
    "ssl.truststore.certificates": lambda value, _: {"ssl.ca.pem": value},
    "ssl.keystore.certificate.chain": lambda value, _: {"ssl.certificate.pem": value},
    "ssl.keystore.key": lambda value, _: {"ssl.key.pem": value},
    "sasl.oauthbearer.token.endpoint.url": lambda value, _: {
        "sasl.oauthbearer.token.endpoint.url": value,
        "sasl.oauthbearer.method": "oidc",
    },
}
_JAVA_COMPANIONS = (
    "ssl.truststore.type",
    "ssl.truststore.password",
    "ssl.keystore.type",
    "sasl.login.callback.handler.class",
    "sasl.client.callback.handler.class",
    *("key.deserializer", "value.deserializer", "key.serializer", "value.serializer"),
)
"""Settings of Java without a counterpart: they go with those above, or name Java's classes."""
