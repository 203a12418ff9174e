"""Listeners with TLS and SASL, beside the plain one of a `LocalKafka`."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path

from groupwright.testing import ports
from groupwright.testing.certificates import Certificates, write_certificates
from groupwright.testing.errors import LocalKafkaError

_SCRAM = ("SCRAM-SHA-256", "SCRAM-SHA-512")
MECHANISMS = ("PLAIN", *_SCRAM, "OAUTHBEARER")
_KAFKA = "org.apache.kafka.common.security"


class Listener(Enum):
    """A listener of a secured broker, by its name there."""

    SSL = "SSL"
    """TLS; a client may show a certificate."""
    MUTUAL_TLS = "MUTUAL"
    """TLS; a client must show a certificate."""
    SASL_PLAINTEXT = "SASL_PLAINTEXT"
    SASL_SSL = "SASL_SSL"

    @property
    def protocol(self) -> str:
        """The `security.protocol` of its clients."""
        return "SSL" if self is Listener.MUTUAL_TLS else self.value


@dataclass(frozen=True)
class Security:
    """What a `LocalKafka` listens with, besides its plain listener, which stays open.

    Passwords are known to whoever sees the machine's processes: they are for tests.
    """

    users: Mapping[str, str] = field(default_factory=lambda: {"alice": "alice-secret"})
    """Passwords by name, for PLAIN and SCRAM."""
    authorize: bool = False
    """Whether ACLs are heeded (`StandardAuthorizer`). What has no ACL is open to all; the plain listener's clients,
    ``User:ANONYMOUS``, may do all. A certificate's user is ``User:CN=<user>``."""


class SecuredListeners:
    """The secured listeners of one broker: their ports, their certificates, and what their clients need."""

    def __init__(self, security: Security) -> None:
        """Describe the listeners; `prepare` makes what they need."""
        self._security = security
        self._ports: dict[Listener, int] = {}
        self._certificates: Certificates | None = None

    def prepare(self, directory: Path, taken: Collection[int]) -> None:
        """Make the certificates and choose the ports; what was made or chosen before stays."""
        if self._certificates is None:
            self._certificates = write_certificates(directory, ports.HOST, self._security.users)
        for listener in Listener:
            port = self._ports.get(listener)
            if port is None or not ports.is_free(port):
                self._ports[listener] = ports.free_port(besides={*taken, *self._ports.values()})

    @property
    def certificates(self) -> Certificates:
        """Where the certificates are.

        Raises:
            LocalKafkaError: The broker has not been started.
        """
        if self._certificates is None:
            raise LocalKafkaError("The broker has no certificates yet: start it first")
        return self._certificates

    @property
    def format_options(self) -> list[str]:
        """What the formatting of the storage needs to know: SCRAM's users are kept there."""
        return [
            option
            for name, password in self._security.users.items()
            for mechanism in _SCRAM
            for option in ("--add-scram", f"{mechanism}=[name={name},password={password}]")
        ]

    def settings(self, node: Mapping[str, str]) -> dict[str, str]:
        """Return the settings of a node that has these listeners too."""
        opened = [f"{each.value}://{ports.HOST}:{port}" for each, port in self._ports.items()]
        protocols = [f"{each.value}:{each.protocol}" for each in self._ports]
        found = {
            "listener.security.protocol.map": ",".join(
                ("CONTROLLER:PLAINTEXT", "PLAINTEXT:PLAINTEXT", *protocols)
            ),
            "inter.broker.listener.name": "PLAINTEXT",
            "ssl.keystore.type": "PEM",
            "ssl.keystore.location": str(self.certificates.broker),
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": str(self.certificates.authority),
            "listener.name.ssl.ssl.client.auth": "requested",
            "listener.name.mutual.ssl.client.auth": "required",
            "sasl.enabled.mechanisms": ",".join(MECHANISMS),
        }
        if self._security.authorize:
            found |= {
                "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
                "allow.everyone.if.no.acl.found": "true",
                "super.users": "User:ANONYMOUS",
            }
        for listener in (Listener.SASL_PLAINTEXT, Listener.SASL_SSL):
            found |= _sasl_settings(f"listener.name.{listener.value.lower()}", self._security)
        return {
            **found,
            **node,
            "listeners": ",".join((node["listeners"], *opened)),
            "advertised.listeners": ",".join((node["advertised.listeners"], *opened)),
        }

    def client_config(self, listener: Listener, mechanism: str | None, user: str | None) -> dict[str, str]:
        """Return what a client of the listener needs, in librdkafka's terms."""
        certificates = self.certificates
        name = next(iter(self._security.users)) if user is None else user
        config = {
            "bootstrap.servers": f"{ports.HOST}:{self._ports[listener]}",
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
    # Takes any token that is not signed (RFC 7515, appendix A.5).
    login = f'{_KAFKA}.oauthbearer.OAuthBearerLoginModule required unsecuredLoginStringClaim_sub="broker";'
    return found | {f"{prefix}.oauthbearer.sasl.jaas.config": login}
