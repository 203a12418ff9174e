"""librdkafka's ``ssl.*`` keys as one `ssl.SSLContext` for the membership's connections.

Python's `ssl` loads private keys and certificate chains from files only. So a PEM string is written to an
anonymous memory file on Linux (memfd), elsewhere to a temporary file that only this user can read, and that
is removed after loading.
"""

import contextlib
import importlib
import os
import ssl
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from groupwright.consumer.errors import ConfigurationError

CA_PATHS = (
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/ssl/certs/ca-bundle.crt",
    "/etc/pki/tls/certs/ca-bundle.trust.crt",
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/ssl/ca-bundle.pem",
    "/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem",
    "/etc/ssl/cert.pem",
    "/etc/ssl/certs",
    "/usr/local/etc/openssl/cert.pem",
    "/opt/homebrew/etc/openssl@3/cert.pem",
)
"""Paths of the system's CA certificates, as in `rd_kafka_ssl_probe_and_set_default_ca_location`."""


def ssl_context(config: Mapping[str, Any], *, verify: bool) -> ssl.SSLContext:
    """Return the context for the ``ssl.*`` properties of a flattened configuration.

    Args:
        config: The configuration; other properties are ignored.
        verify: ``enable.ssl.certificate.verification``.

    Raises:
        ConfigurationError: A file cannot be read, or a value is invalid. The message names the property, and
            shows no values except paths.
    """
    context = _client_context()
    # As librdkafka does: brokers close connections without a close_notify alert.
    context.options |= ssl.OP_IGNORE_UNEXPECTED_EOF
    _set_verification(context, config, verify=verify)
    _load_ca_and_crl(context, config)
    _load_client_certificate(context, config)
    ciphers = config.get("ssl.cipher.suites")
    if ciphers:
        with _naming_property("ssl.cipher.suites", str(ciphers)):
            context.set_ciphers(str(ciphers))
    return context


def _client_context() -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    # Debian's Python 3.14 leaves the lowest version to OpenSSL's configuration, which names none.
    context.minimum_version = max(context.minimum_version, ssl.TLSVersion.TLSv1_2)
    return context


def _set_verification(context: ssl.SSLContext, config: Mapping[str, Any], *, verify: bool) -> None:
    algorithm = str(config.get("ssl.endpoint.identification.algorithm", "https")).lower()
    if algorithm not in {"none", "https"}:
        raise ConfigurationError(
            f"ssl.endpoint.identification.algorithm takes none or https, not {algorithm!r}"
        )
    context.check_hostname = verify and algorithm == "https"
    context.verify_mode = ssl.CERT_REQUIRED if verify else ssl.CERT_NONE


def https_context(config: Mapping[str, Any]) -> ssl.SSLContext:
    """Return the TLS context for ``https.ca.location`` or ``https.ca.pem`` of a flattened configuration.

    Raises:
        ConfigurationError: The CA certificates cannot be read, or both properties are set.
    """
    if config.get("https.ca.location") and config.get("https.ca.pem"):
        raise ConfigurationError("https.ca.location and https.ca.pem are both set; leave one of them out")
    context = _client_context()
    _load_ca(context, config, "https.ca")
    return context


def _load_ca_and_crl(context: ssl.SSLContext, config: Mapping[str, Any]) -> None:
    """Load the CA certificates and the certificate revocation list."""
    _load_ca(context, config, "ssl.ca")
    revoked = config.get("ssl.crl.location")
    if revoked:
        with _naming_property("ssl.crl.location", str(revoked)):
            context.load_verify_locations(cafile=str(revoked))
        context.verify_flags |= ssl.VERIFY_CRL_CHECK_LEAF


def _load_ca(context: ssl.SSLContext, config: Mapping[str, Any], key: str) -> None:
    location = str(config.get(f"{key}.location", "probe"))
    pem = config.get(f"{key}.pem")
    if location != "probe":
        with _naming_property(f"{key}.location", location):
            is_directory = Path(location).is_dir()
            context.load_verify_locations(**{"capath" if is_directory else "cafile": location})
    elif not pem:
        context.load_default_certs()
        _load_system_ca(context)
    if pem:
        with _naming_property(f"{key}.pem"):
            context.load_verify_locations(cadata=str(pem))


def _load_system_ca(context: ssl.SSLContext) -> None:
    """Load the system's CA certificates, if the default paths of Python's OpenSSL have none."""
    if context.cert_store_stats()["x509_ca"] or ssl.get_default_verify_paths().capath:
        return
    for path in map(Path, CA_PATHS):
        if path.exists():
            with contextlib.suppress(OSError):
                context.load_verify_locations(**{"capath" if path.is_dir() else "cafile": str(path)})
                return


def _load_client_certificate(context: ssl.SSLContext, config: Mapping[str, Any]) -> None:
    """Load the client's certificate and key, if they are configured."""
    password = str(config.get("ssl.key.password", ""))
    if keystore := config.get("ssl.keystore.location"):
        _check_no_pem_beside_keystore(config)
        with _naming_property("ssl.keystore.location", str(keystore)), _keystore_as_pem(config) as pem_file:
            context.load_cert_chain(pem_file)
        return
    certificate = config.get("ssl.certificate.location") or config.get("ssl.certificate.pem")
    key = config.get("ssl.key.location") or config.get("ssl.key.pem")
    if not certificate and not key:
        return
    if not certificate or not key:
        raise ConfigurationError(
            "a client's certificate needs its key, and the other way round: set one of "
            "ssl.certificate.location and ssl.certificate.pem, and one of ssl.key.location and ssl.key.pem"
        )
    with (
        _naming_property(
            "ssl.certificate.* and ssl.key.*", "if the key is encrypted, ssl.key.password opens it"
        ),
        _pem_file(config, "ssl.certificate") as certificate_file,
        _pem_file(config, "ssl.key") as key_file,
    ):
        # Without a password, OpenSSL would ask for one on the terminal.
        context.load_cert_chain(certificate_file, key_file, password)


def _check_no_pem_beside_keystore(config: Mapping[str, Any]) -> None:
    others = ("ssl.certificate.location", "ssl.certificate.pem", "ssl.key.location", "ssl.key.pem")
    for key in others:
        if config.get(key):
            raise ConfigurationError(f"ssl.keystore.location and {key} are both set; leave one of them out")


@contextlib.contextmanager
def _pem_file(config: Mapping[str, Any], key: str) -> Iterator[str]:
    location = config.get(f"{key}.location")
    if location:
        Path(location).stat()  # OpenSSL's error does not name the file
        yield str(location)
    else:
        with _temporary_file(str(config[f"{key}.pem"]).encode()) as path:
            yield path


@contextlib.contextmanager
def _temporary_file(data: bytes) -> Iterator[str]:
    """Yield the path of a file with these bytes, which exists within the block only."""
    if hasattr(os, "memfd_create") and Path("/proc/self/fd").exists():
        descriptor = os.memfd_create("groupwright")
        try:
            os.write(descriptor, data)
            yield f"/proc/self/fd/{descriptor}"
        finally:
            os.close(descriptor)
        return
    with tempfile.TemporaryDirectory(prefix="groupwright-") as directory:  # which only this user may enter
        path = Path(directory, "key")
        path.write_bytes(data)
        yield str(path)


@contextlib.contextmanager
def _keystore_as_pem(config: Mapping[str, Any]) -> Iterator[str]:
    """Open a PKCS#12 key store, and yield the path of its certificates and key as PEM."""
    location, password = str(config["ssl.keystore.location"]), config.get("ssl.keystore.password")
    if password is None:
        raise ConfigurationError("ssl.keystore.location needs ssl.keystore.password")
    try:
        serialization: Any = importlib.import_module("cryptography.hazmat.primitives.serialization")
        pkcs12: Any = importlib.import_module("cryptography.hazmat.primitives.serialization.pkcs12")
    except ImportError as error:
        raise ConfigurationError(
            "ssl.keystore.location needs the package `cryptography`: install it, or turn the key store into "
            "PEM files (openssl pkcs12 -in store.p12 -out client.pem), and name them in "
            "ssl.certificate.location and ssl.key.location"
        ) from error
    key, certificate, others = pkcs12.load_key_and_certificates(
        Path(location).read_bytes(), str(password).encode()
    )
    if key is None or certificate is None:
        raise ValueError("it holds no key, or no certificate of it")
    pem = serialization.Encoding.PEM
    parts = [key.private_bytes(pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())]
    parts += [each.public_bytes(pem) for each in (certificate, *others)]
    with _temporary_file(b"".join(parts)) as path:
        yield path


@contextlib.contextmanager
def _naming_property(key: str, value: str = "") -> Iterator[None]:
    """Raise errors of files and OpenSSL as a `ConfigurationError` that names the property and its value."""
    try:
        yield
    except ConfigurationError:
        raise
    except OSError as error:  # ssl.SSLError is one
        reason = getattr(error, "reason", None) or error.strerror or error.args[0]
        raise ConfigurationError(
            f"{key} cannot be used{_in_parentheses(value)}: {reason}{_after_colon(error)}"
        ) from error
    except ValueError as error:
        raise ConfigurationError(f"{key} cannot be used{_in_parentheses(value)}: {error}") from error


def _in_parentheses(value: str) -> str:
    return f" ({value})" if value else ""


def _after_colon(error: OSError) -> str:
    return f": {error.filename}" if error.filename else ""
