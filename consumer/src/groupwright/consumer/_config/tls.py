"""librdkafka's ``ssl.*`` keys as one `ssl.SSLContext` for the membership's connections.

Keys that are given as strings reach OpenSSL through a file, as Python's `ssl` has no other way: one in memory
where the system has those (Linux), elsewhere one that only this user can read, and that is gone at once.
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

PROBED = (
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
"""Where systems keep the authorities they trust."""


def ssl_context(config: Mapping[str, Any], *, verify: bool) -> ssl.SSLContext:
    """Return the context that these (flattened) keys ask for.

    Args:
        config: the configuration; keys of other matters are passed over.
        verify: ``enable.ssl.certificate.verification``.

    Raises: ConfigurationError: a file cannot be read, or a value cannot be used; the message names the key,
        and shows
            no value but paths.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.options |= (
        ssl.OP_IGNORE_UNEXPECTED_EOF
    )  # as librdkafka does: brokers end connections without a word
    _set_verification(context, config, verify=verify)
    _trust(context, config)
    _identify(context, config)
    ciphers = config.get("ssl.cipher.suites")
    if ciphers:
        with _explained("ssl.cipher.suites", str(ciphers)):
            context.set_ciphers(str(ciphers))
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
        ConfigurationError: the authorities cannot be read, or both keys are set.
    """
    if config.get("https.ca.location") and config.get("https.ca.pem"):
        raise ConfigurationError("https.ca.location and https.ca.pem are both set; leave one of them out")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    _trust_authorities(context, config, "https.ca")
    return context


def _trust(context: ssl.SSLContext, config: Mapping[str, Any]) -> None:
    """Load the authorities, and what they have revoked."""
    _trust_authorities(context, config, "ssl.ca")
    revoked = config.get("ssl.crl.location")
    if revoked:
        with _explained("ssl.crl.location", str(revoked)):
            context.load_verify_locations(cafile=str(revoked))
        context.verify_flags |= ssl.VERIFY_CRL_CHECK_LEAF


def _trust_authorities(context: ssl.SSLContext, config: Mapping[str, Any], key: str) -> None:
    location = str(config.get(f"{key}.location", "probe"))
    pem = config.get(f"{key}.pem")
    if location != "probe":
        with _explained(f"{key}.location", location):
            is_directory = Path(location).is_dir()
            context.load_verify_locations(**{"capath" if is_directory else "cafile": location})
    elif not pem:
        context.load_default_certs()
        _probe(context)
    if pem:
        with _explained(f"{key}.pem"):
            context.load_verify_locations(cadata=str(pem))


def _probe(context: ssl.SSLContext) -> None:
    """Look where systems keep their authorities, if Python's OpenSSL was built to look elsewhere."""
    if context.cert_store_stats()["x509_ca"] or ssl.get_default_verify_paths().capath:
        return
    for path in map(Path, PROBED):
        if path.exists():
            with contextlib.suppress(OSError):
                context.load_verify_locations(**{"capath" if path.is_dir() else "cafile": str(path)})
                return


def _identify(context: ssl.SSLContext, config: Mapping[str, Any]) -> None:
    """Load this client's certificate and key, if it has them."""
    password = str(config.get("ssl.key.password", ""))
    if keystore := config.get("ssl.keystore.location"):
        _refuse_beside_keystore(config)
        with _explained("ssl.keystore.location", str(keystore)), _key_store(config) as bundle:
            context.load_cert_chain(bundle)
        return
    certificate = config.get("ssl.certificate.location") or config.get("ssl.certificate.pem")
    key = config.get("ssl.key.location") or config.get("ssl.key.pem")
    if not certificate and not key:
        return
    if not certificate or not key:
        raise ConfigurationError(
            "a client's certificate needs its key, and the other way round: set one of "
            "ssl.certificate.location and "
            "ssl.certificate.pem, and one of ssl.key.location and ssl.key.pem"
        )
    with (
        _explained("ssl.certificate.* and ssl.key.*", "if the key is encrypted, ssl.key.password opens it"),
        _file(config, "ssl.certificate") as certificate_file,
        _file(config, "ssl.key") as key_file,
    ):
        # Without a password, OpenSSL would ask for one on the terminal.
        context.load_cert_chain(certificate_file, key_file, password)


def _refuse_beside_keystore(config: Mapping[str, Any]) -> None:
    others = ("ssl.certificate.location", "ssl.certificate.pem", "ssl.key.location", "ssl.key.pem")
    for key in others:
        if config.get(key):
            raise ConfigurationError(f"ssl.keystore.location and {key} are both set; leave one of them out")


@contextlib.contextmanager
def _file(config: Mapping[str, Any], key: str) -> Iterator[str]:
    location = config.get(f"{key}.location")
    if location:
        Path(location).stat()  # OpenSSL's error does not name the file
        yield str(location)
    else:
        with _as_file(str(config[f"{key}.pem"]).encode()) as path:
            yield path


@contextlib.contextmanager
def _as_file(data: bytes) -> Iterator[str]:
    """Give bytes a path for a moment."""
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
def _key_store(config: Mapping[str, Any]) -> Iterator[str]:
    """Open a PKCS#12 key store, and yield the path of its certificates and key as PEM."""
    location, password = str(config["ssl.keystore.location"]), config.get("ssl.keystore.password")
    if password is None:
        raise ConfigurationError("ssl.keystore.location needs ssl.keystore.password")
    try:
        serialization: Any = importlib.import_module("cryptography.hazmat.primitives.serialization")
        pkcs12: Any = importlib.import_module("cryptography.hazmat.primitives.serialization.pkcs12")
    except ImportError as error:
        raise ConfigurationError(
            "ssl.keystore.location needs the package `cryptography`: install it, or turn the key "
            "store into PEM files "
            "(openssl pkcs12 -in store.p12 -out client.pem), and name them in ssl.certificate.location and "
            "ssl.key.location"
        ) from error
    key, certificate, others = pkcs12.load_key_and_certificates(
        Path(location).read_bytes(), str(password).encode()
    )
    if key is None or certificate is None:
        raise ValueError("it holds no key, or no certificate of it")
    pem = serialization.Encoding.PEM
    parts = [key.private_bytes(pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())]
    parts += [each.public_bytes(pem) for each in (certificate, *others)]
    with _as_file(b"".join(parts)) as path:
        yield path


@contextlib.contextmanager
def _explained(key: str, value: str = "") -> Iterator[None]:
    """Turn whatever the files and OpenSSL raise into an error that names the key."""
    try:
        yield
    except ConfigurationError:
        raise
    except OSError as error:  # ssl.SSLError is one
        reason = getattr(error, "reason", None) or error.strerror or error.args[0]
        raise ConfigurationError(f"{key} cannot be used{_between(value)}: {reason}{_path(error)}") from error
    except ValueError as error:
        raise ConfigurationError(f"{key} cannot be used{_between(value)}: {error}") from error


def _between(value: str) -> str:
    return f" ({value})" if value else ""


def _path(error: OSError) -> str:
    return f": {error.filename}" if error.filename else ""
