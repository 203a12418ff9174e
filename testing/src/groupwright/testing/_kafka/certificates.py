"""Certificates for tests: a certificate authority, and the certificates of brokers and users."""

import datetime as dt
import ipaddress
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

try:
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec
except ImportError as error:
    raise ImportError(
        "a Kafka with TLS needs the testing extra; install it with: pip install 'groupwright[testing]'"
    ) from error

_VALID = dt.timedelta(days=2)
_EXPIRED = "expired"
_Key = ec.EllipticCurvePrivateKey


@dataclass(frozen=True)
class Certificates:
    """Paths of the certificates, which are PEM files."""

    directory: Path

    @property
    def authority(self) -> Path:
        """The certificate of the authority that signed the others."""
        return self.directory / "ca.pem"

    @property
    def other_authority(self) -> Path:
        """The certificate of an authority that has signed none of the others."""
        return self.directory / "other-ca.pem"

    @property
    def broker(self) -> Path:
        """The brokers' key and certificate."""
        return self.directory / "broker.pem"

    def of(self, user: str) -> tuple[Path, Path]:
        """Return the paths of a user's certificate and key."""
        return self.directory / f"{user}.pem", self.directory / f"{user}.key"

    @property
    def expired(self) -> tuple[Path, Path]:
        """The paths of an expired certificate, signed by the authority, and of its key."""
        return self.of(_EXPIRED)


def write_certificates(
    directory: Path, host: str, users: Iterable[str], *, broker_expired: bool = False
) -> Certificates:
    """Create an authority and certificates for brokers on `host` (and ``localhost``) and for each user.

    Args:
        directory: Folder for the files; created if it does not exist.
        host: The brokers' IP address.
        users: The users' names.
        broker_expired: Whether the brokers' certificate is no longer valid.
    """
    directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    certificates = Certificates(directory)
    authority = _Authority("Groupwright tests")
    certificates.authority.write_bytes(authority.pem)
    certificates.other_authority.write_bytes(_Authority("another authority").pem)
    names = [x509.DNSName("localhost"), x509.IPAddress(ipaddress.ip_address(host))]
    certificate, key = authority.sign(host, names, expired=broker_expired)
    certificates.broker.write_bytes(key + certificate)
    for user in (*users, _EXPIRED):
        certificate, key = authority.sign(user, [], expired=user == _EXPIRED)
        for path, data in zip(certificates.of(user), (certificate, key), strict=True):
            path.write_bytes(data)
    return certificates


class _Authority:
    def __init__(self, name: str) -> None:
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = _name(name)
        constraints = x509.BasicConstraints(ca=True, path_length=0)
        builder = self._builder(self._name, self._key, ends_in=_VALID).add_extension(
            constraints, critical=True
        )
        self.pem = builder.sign(self._key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)

    def sign(self, name: str, hosts: list[x509.GeneralName], *, expired: bool) -> tuple[bytes, bytes]:
        """Return a certificate and its key (PKCS#8, not encrypted)."""
        key = ec.generate_private_key(ec.SECP256R1())
        builder = self._builder(_name(name), key, ends_in=-_VALID / 2 if expired else _VALID)
        if hosts:
            builder = builder.add_extension(x509.SubjectAlternativeName(hosts), critical=False)
        pem = serialization.Encoding.PEM
        return (
            builder.sign(self._key, hashes.SHA256()).public_bytes(pem),
            key.private_bytes(pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()),
        )

    def _builder(self, subject: x509.Name, key: _Key, ends_in: dt.timedelta) -> x509.CertificateBuilder:
        now = dt.datetime.now(dt.UTC)
        return (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(self._name)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - _VALID)
            .not_valid_after(now + ends_in)
        )


def _name(common_name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, common_name)])
