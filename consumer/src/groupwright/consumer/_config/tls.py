"""librdkafka's ``ssl.*`` keys as one `ssl.SSLContext` for the membership's connections.

Python's `ssl` loads private keys and certificate chains from files only. So a PEM string is written to an
anonymous memory file on Linux (memfd), elsewhere to a temporary file that only this user can read, and that
is removed after loading.
"""

from __future__ import annotations

import contextlib
import importlib
import os
import ssl
import tempfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, TypeVar

from groupwright.consumer._config.settings import SETTINGS
from groupwright.consumer.errors import ConfigurationError
from groupwright.core.configuration import is_public

_Result = TypeVar("_Result")

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
            shows no values except paths of files that exist. It has no cause that shows others.
    """
    context = _client_context()
    # As librdkafka does: brokers close connections without a close_notify alert.
    context.options |= ssl.OP_IGNORE_UNEXPECTED_EOF
    _set_verification(context, config, verify=verify)
    _load_ca_and_crl(context, config)
    _load_client_certificate(context, config)
    ciphers = config.get("ssl.cipher.suites")
    if ciphers:
        _use("ssl.cipher.suites", config, lambda: context.set_ciphers(str(ciphers)))
    return context


def _client_context() -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    # Debian's Python 3.14 leaves the lowest version to OpenSSL's configuration, which names none.
    context.minimum_version = max(context.minimum_version, ssl.TLSVersion.TLSv1_2)
    return context


def _set_verification(context: ssl.SSLContext, config: Mapping[str, Any], *, verify: bool) -> None:
    algorithm = str(config.get("ssl.endpoint.identification.algorithm", "https")).lower()
    if algorithm not in {"none", "https"}:
        raise ConfigurationError("ssl.endpoint.identification.algorithm takes none or https: set one of them")
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
    if config.get("ssl.crl.location"):
        path = _existing_path(config, "ssl.crl.location")
        _use("ssl.crl.location", config, lambda: context.load_verify_locations(cafile=path))
        context.verify_flags |= ssl.VERIFY_CRL_CHECK_LEAF


def _load_ca(context: ssl.SSLContext, config: Mapping[str, Any], key: str) -> None:
    pem = config.get(f"{key}.pem")
    if str(config.get(f"{key}.location", "probe")) != "probe":
        path = _existing_path(config, f"{key}.location")
        argument = "capath" if Path(path).is_dir() else "cafile"
        _use(f"{key}.location", config, lambda: context.load_verify_locations(**{argument: path}))
    elif not pem:
        context.load_default_certs()
        _load_system_ca(context)
    if pem:
        _use(f"{key}.pem", config, lambda: context.load_verify_locations(cadata=str(pem)))


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
    """Load the client's certificate and key, if they are configured.

    A certificate without a key is not presented to brokers, as by librdkafka.
    """
    if config.get("ssl.keystore.location"):
        _check_no_pem_beside_keystore(config)
        with _temporary_file(_keystore_as_pem(config)) as path:
            _use("ssl.keystore.location", config, lambda: context.load_cert_chain(path))
        return
    certificate, key = _chosen(config, "ssl.certificate"), _chosen(config, "ssl.key")
    if certificate is None:
        if key is not None:
            raise ConfigurationError(
                f"{key} is set, and there is no certificate of it: set ssl.certificate.location or "
                "ssl.certificate.pem too"
            )
        return
    with _pem_file(config, certificate) as certificate_file:
        _check_certificate(config, certificate, certificate_file)
        if key is None:
            return
        password = str(config.get("ssl.key.password", ""))
        with _pem_file(config, key) as key_file:
            try:
                # Without a password, OpenSSL would ask for one on the terminal.
                context.load_cert_chain(certificate_file, key_file, password)
            except (OSError, ValueError) as error:
                reason = str(getattr(error, "reason", None))
            else:
                return
            fault = _fault_of_key(config, certificate, key, reason)
    raise ConfigurationError(fault)


def _fault_of_key(config: Mapping[str, Any], certificate: str, key: str, reason: str) -> str:
    """Return why a client's key cannot be loaded, and what to do.

    Args:
        config: The configuration.
        certificate: The property of the certificate, which can be loaded.
        key: The property of the key.
        reason: OpenSSL's reason.
    """
    named = f"{key}{_in_parentheses(config, key)}"
    if reason.endswith("_MISMATCH"):
        return f"{named} is not the key of {certificate}: set the key that belongs to the certificate"
    if b"ENCRYPTED" in _read(config, key):
        if not config.get("ssl.key.password"):
            return f"{named} is encrypted: set ssl.key.password"
        return f"ssl.key.password does not open {named}: set the password with which the key was encrypted"
    return f"{named} has no private key as PEM: set a key that begins with -----BEGIN PRIVATE KEY-----"


def _check_certificate(config: Mapping[str, Any], key: str, path: str) -> None:
    """Check that OpenSSL can load the certificate of the property `key` from a file.

    Raises:
        ConfigurationError: It cannot.
    """
    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT).load_verify_locations(cafile=path)
    except (OSError, ValueError):
        pass
    else:
        return
    raise ConfigurationError(
        f"{key}{_in_parentheses(config, key)} has no certificate as PEM: set one that begins with "
        "-----BEGIN CERTIFICATE-----"
    )


def _chosen(config: Mapping[str, Any], name: str) -> str | None:
    """Return the property that is set: that of the file, or else that of the PEM text, or None."""
    return next((key for key in (f"{name}.location", f"{name}.pem") if config.get(key)), None)


def _read(config: Mapping[str, Any], key: str) -> bytes:
    """Return the bytes of a property's file, or the property's text."""
    if not key.endswith(".location"):
        return str(config[key]).encode(errors="replace")
    return _use(key, config, Path(_existing_path(config, key)).read_bytes)


@contextlib.contextmanager
def _pem_file(config: Mapping[str, Any], key: str) -> Iterator[str]:
    """Yield the path of a file with the property's PEM text."""
    data = _read(config, key)  # OpenSSL's error would not name a file that cannot be read
    if key.endswith(".location"):
        yield str(config[key])
    else:
        with _temporary_file(data) as path:
            yield path


def _check_no_pem_beside_keystore(config: Mapping[str, Any]) -> None:
    others = ("ssl.certificate.location", "ssl.certificate.pem", "ssl.key.location", "ssl.key.pem")
    for key in others:
        if config.get(key):
            raise ConfigurationError(f"ssl.keystore.location and {key} are both set; leave one of them out")


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


def _keystore_as_pem(config: Mapping[str, Any]) -> bytes:
    """Open a PKCS#12 key store, and return its certificates and key as PEM."""
    password = config.get("ssl.keystore.password")
    if password is None:
        raise ConfigurationError("ssl.keystore.location needs ssl.keystore.password: set it")
    try:
        serialization: Any = importlib.import_module("cryptography.hazmat.primitives.serialization")
        pkcs12: Any = importlib.import_module("cryptography.hazmat.primitives.serialization.pkcs12")
    except ImportError as error:
        raise ConfigurationError(
            "ssl.keystore.location needs the package `cryptography`: install it, or turn the key store into "
            "PEM files (openssl pkcs12 -in store.p12 -out client.pem), and name them in "
            "ssl.certificate.location and ssl.key.location"
        ) from error
    data = _read(config, "ssl.keystore.location")
    named = f"ssl.keystore.location{_in_parentheses(config, 'ssl.keystore.location')}"
    key = certificate = None
    others: list[Any] = []
    is_open = True
    try:
        key, certificate, others = pkcs12.load_key_and_certificates(data, str(password).encode())
    except ValueError:
        is_open = False
    if not is_open:
        raise ConfigurationError(
            f"ssl.keystore.password does not open {named}, or this is no PKCS#12 file: correct one of them"
        )
    if key is None or certificate is None:
        raise ConfigurationError(
            f"{named} holds no key, or no certificate of it: export both into one PKCS#12 file"
        )
    pem = serialization.Encoding.PEM
    parts = [key.private_bytes(pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())]
    parts += [each.public_bytes(pem) for each in (certificate, *others)]
    return b"".join(parts)


def _existing_path(config: Mapping[str, Any], key: str) -> str:
    """Return a property's path.

    Raises:
        ConfigurationError: There is no such file or directory.
    """
    path = str(config[key])
    if os.path.exists(path):  # noqa: PTH110 - Path.exists may raise, of a text that cannot be a path
        return path
    if "-----BEGIN" in path:
        text = key.replace(".location", ".pem")
        advice = f"set {text} instead" if text in SETTINGS else "write it to a file, and set the file's path"
        raise ConfigurationError(f"{key} has PEM text where a path belongs: {advice}")
    folder = (Path.cwd() / path).parent
    while not os.path.exists(folder):  # noqa: PTH110 - as above
        folder = folder.parent
    raise ConfigurationError(
        f"{key} cannot be used: no such file or directory below {folder}. Correct the path"
    )


def _use(key: str, config: Mapping[str, Any], load: Callable[[], _Result]) -> _Result:
    """Return what `load` returns.

    Raises:
        ConfigurationError: It fails. The error has no cause, because a file's error has the "name" that was
            given: a private key, if that was put under the wrong property.
    """
    try:
        return load()
    except (OSError, TypeError, ValueError) as error:  # ssl.SSLError is an OSError
        reason = getattr(error, "reason", None) or getattr(error, "strerror", None) or error.args[0]
    raise ConfigurationError(f"{key} cannot be used{_in_parentheses(config, key)}: {reason}")


def _in_parentheses(config: Mapping[str, Any], key: str) -> str:
    """Return a property's value in parentheses, or an empty text if it is not the path of a file."""
    return f" ({config[key]})" if is_public(key, config[key]) else ""
