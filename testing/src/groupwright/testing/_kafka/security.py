"""Listeners with TLS and SASL, besides the plain one."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path

from confluent_kafka.admin import AdminClient
from confluent_kafka.admin._scram import (
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialAlteration,
    UserScramCredentialUpsertion,
)

from groupwright.testing._kafka import ports
from groupwright.testing._kafka.certificates import Certificates, write_certificates
from groupwright.testing._kafka.readiness import CLIENT_DEFAULTS
from groupwright.testing._kafka.settings import AdditionalListener
from groupwright.testing.errors import SecurityError

_SCRAM = ("SCRAM-SHA-256", "SCRAM-SHA-512")
_SCRAM_ITERATIONS = 4096
MECHANISMS = ("PLAIN", *_SCRAM, "OAUTHBEARER")
_USER = re.compile(r"[a-zA-Z0-9._-]{1,64}")
"""Names that are an option's name in JAAS, a certificate's common name, and a file's name."""
_FILES = frozenset({"broker", "ca", "expired", "other-ca"})
"""Names of files in the directory of the certificates."""
_REFUSED_IN_PASSWORDS = re.compile(r'[",\\\x00-\x1f\x7f]|^\s|\s$')
_KAFKA = "org.apache.kafka.common.security"


class Listener(Enum):
    """A listener of a secured broker; the value is its name in the broker's settings.

    They are not the protocols' names, because the image `apache/kafka` configures listeners of those names.
    """

    SSL = "TLS"
    """TLS; a client may send a certificate."""
    MUTUAL_TLS = "MUTUAL"
    """TLS; a client must send a certificate."""
    SASL_PLAINTEXT = "SASL"
    SASL_SSL = "SASLTLS"

    @property
    def protocol(self) -> str:
        """The `security.protocol` of its clients."""
        return "SSL" if self is Listener.MUTUAL_TLS else self.name


@dataclass(frozen=True)
class Security:
    """Secured listeners of a Kafka, besides the plain one.

    Passwords are for tests: they are visible in the machine's process list.
    """

    users: Mapping[str, str] = field(default_factory=lambda: {"alice": "alice-secret"})
    """Passwords by name, for PLAIN and SCRAM. Names have letters, digits, dots, underscores and dashes.
    Passwords have no comma, quote, backslash or control character, and no space at their begin or end."""
    authorize: bool = False
    """True if the brokers enforce ACLs (`StandardAuthorizer`). Resources without an ACL are open to all.
    Clients of the plain listener are ``User:ANONYMOUS``, a super user. A certificate's user is
    ``User:CN=<user>``."""
    expired: bool = False
    """True if the brokers' certificate has expired."""

    def __post_init__(self) -> None:
        """Check the users.

        Raises:
            SecurityError: There are no users, or JAAS, SCRAM or a file cannot have a name or password.
        """
        if not self.users:
            raise SecurityError("Security has no users: give one, such as {'alice': 'alice-secret'}")
        for name, password in self.users.items():
            if not _USER.fullmatch(name) or name in _FILES:
                raise SecurityError(
                    f"The user {name!r} cannot be created: use 1 to 64 letters, digits, dots, underscores "
                    f"and dashes, and none of {', '.join(sorted(_FILES))}"
                )
            if not password or _REFUSED_IN_PASSWORDS.search(password):
                raise SecurityError(
                    f"The password of {name!r} cannot be stored: use 1 or more characters, without commas, "
                    "double quotes, backslashes, control characters, and spaces at its begin or end"
                )


class SecuredListeners:
    """The secured listeners of a Kafka's nodes: ports, certificates, and settings for clients."""

    def __init__(self, security: Security) -> None:
        """Describe the listeners; `prepare` and `choose_ports` create certificates and reserve ports."""
        self._security = security
        self._ports: dict[int, dict[Listener, int]] = {}
        self._certificates: Certificates | None = None

    def prepare(self, directory: Path) -> None:
        """Create the certificates, unless they exist."""
        if self._certificates is None:
            self._certificates = write_certificates(
                directory, ports.HOST, self._security.users, broker_expired=self._security.expired
            )

    def choose_ports(self, node: int, reserved: ports.ReservedPorts) -> None:
        """Reserve a node's ports; it keeps earlier ones while they are free."""
        chosen = self._ports.setdefault(node, {})
        for listener in Listener:
            port = chosen.get(listener)
            if port is None or not ports.is_free(port):
                chosen[listener] = reserved.choose()

    @property
    def certificates(self) -> Certificates:
        """Paths of the certificates of the authority, the brokers and the users.

        Raises:
            SecurityError: The Kafka has not been started.
        """
        if self._certificates is None:
            raise SecurityError("There are no certificates yet: start the Kafka first")
        return self._certificates

    @property
    def format_options(self) -> list[str]:
        """Options of `kafka-storage format`: it stores the SCRAM credentials."""
        return [
            option
            for name, password in self._security.users.items()
            for mechanism in _SCRAM
            for option in ("--add-scram", f"{mechanism}=[name={name},password={password}]")
        ]

    def add_scram_users(self, admin: AdminClient, timeout: float) -> None:
        """Add SCRAM credentials to a running Kafka, whose storage was formatted by the image."""
        for mechanism in _SCRAM:  # a request may contain a user only once
            info = ScramCredentialInfo(ScramMechanism[mechanism.replace("-", "_")], _SCRAM_ITERATIONS)
            upserted: list[UserScramCredentialAlteration] = [
                UserScramCredentialUpsertion(name, info, password.encode())
                for name, password in self._security.users.items()
            ]
            for done in admin.alter_user_scram_credentials(upserted, request_timeout=timeout).values():
                done.result(timeout)

    def check_scram_users(self, timeout: float) -> None:
        """Authenticate at each node as the last user, by the mechanism that was added last.

        Raises:
            KafkaException: A node does not have the credentials yet.
        """
        *_, user = self._security.users
        config = self.client_config(Listener.SASL_PLAINTEXT, _SCRAM[-1], user)
        for server in config["bootstrap.servers"].split(","):
            AdminClient({**CLIENT_DEFAULTS, **config, "bootstrap.servers": server}).list_topics(
                timeout=timeout
            )

    def listeners(self, node: int) -> Iterator[AdditionalListener]:
        """Yield a node's secured listeners."""
        for listener, port in self._ports[node].items():
            yield AdditionalListener(listener.value, port, listener.protocol)

    def settings(self, directory: Path | None = None) -> dict[str, str]:
        """Return the settings of every node.

        Args:
            directory: Folder of the certificates in a node's container; by default the one on this machine.
        """
        found = self.certificates if directory is None else Certificates(directory)
        settings = {
            "ssl.keystore.type": "PEM",
            "ssl.keystore.location": str(found.broker),
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": str(found.authority),
            "listener.name.tls.ssl.client.auth": "requested",
            "listener.name.mutual.ssl.client.auth": "required",
            "sasl.enabled.mechanisms": ",".join(MECHANISMS),
        }
        if self._security.authorize:
            settings |= {
                "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
                "allow.everyone.if.no.acl.found": "true",
                "super.users": "User:ANONYMOUS",
            }
        for listener in (Listener.SASL_PLAINTEXT, Listener.SASL_SSL):
            settings |= _sasl_settings(f"listener.name.{listener.value.lower()}", self._security)
        return settings

    def client_config(self, listener: Listener, mechanism: str | None, user: str | None) -> dict[str, str]:
        """Return the librdkafka configuration of the listener's clients (see `Kafka.secure_config`)."""
        certificates = self.certificates
        if user is not None and user not in self._security.users:
            raise SecurityError(f"There is no user {user!r}; there are: {', '.join(self._security.users)}")
        name = next(iter(self._security.users)) if user is None else user
        config = {
            "bootstrap.servers": ",".join(
                f"{ports.HOST}:{chosen[listener]}" for chosen in self._ports.values()
            ),
            "security.protocol": listener.protocol,
        }
        if listener is not Listener.SASL_PLAINTEXT:
            config["ssl.ca.location"] = str(certificates.authority)
        if listener is Listener.MUTUAL_TLS or (listener is Listener.SSL and user is not None):
            certificate, key = certificates.of(name)
            config |= {"ssl.certificate.location": str(certificate), "ssl.key.location": str(key)}
        if listener.protocol.startswith("SASL"):
            config["sasl.mechanism"] = mechanism or MECHANISMS[0]
            if mechanism != "OAUTHBEARER":
                config |= {"sasl.username": name, "sasl.password": self._security.users[name]}
        return config


def _sasl_settings(prefix: str, security: Security) -> dict[str, str]:
    users = " ".join(f'user_{name}="{password}"' for name, password in security.users.items())
    found = {f"{prefix}.plain.sasl.jaas.config": f"{_KAFKA}.plain.PlainLoginModule required {users};"}
    for mechanism in _SCRAM:
        login = f"{_KAFKA}.scram.ScramLoginModule required;"
        found[f"{prefix}.{mechanism.lower()}.sasl.jaas.config"] = login
    # Accepts any unsecured token (RFC 7515, appendix A.5).
    login = f'{_KAFKA}.oauthbearer.OAuthBearerLoginModule required unsecuredLoginStringClaim_sub="broker";'
    return found | {f"{prefix}.oauthbearer.sasl.jaas.config": login}
