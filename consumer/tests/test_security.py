"""Security without a broker: what is read, what is refused and with which words, and tokens."""

import base64
import importlib.util
import logging
import os
import ssl
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest

from groupwright.consumer import ConfigurationError
from groupwright.consumer._config import tls as tls_module
from groupwright.consumer._config.config import read_config
from groupwright.consumer._config.security import Security
from groupwright.consumer._config.tokens import Tokens, TokenUnavailableError
from groupwright.testing._kafka.certificates import Certificates, write_certificates
from integration_tests.harness.patience import PATIENCE

SECRET = "marked-secret"  # noqa: S105 - what nothing may show
PEM = f"-----BEGIN PRIVATE KEY-----\n{SECRET}\n-----END PRIVATE KEY-----\n"
LOG = logging.getLogger("groupwright.consumer.tests")


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    return write_certificates(tmp_path_factory.mktemp("certificates"), "127.0.0.1", ["alice"])


@pytest.fixture(scope="module")
def encrypted(certificates: Certificates) -> Path:
    """Alice's key, which the secret opens."""
    path = certificates.directory / "encrypted.key"
    _, key = certificates.of("alice")
    command: list[str | Path] = [
        "openssl",
        "pkcs8",
        "-topk8",
        "-in",
        key,
        "-out",
        path,
        "-passout",
        f"pass:{SECRET}",
    ]
    subprocess.run(command, check=True, capture_output=True, timeout=PATIENCE)
    return path


def read(protocol: str, **keys: Any) -> Security:
    """Read these keys (underscores for dots, but in callbacks) besides the necessary ones."""
    config = {"bootstrap.servers": "127.0.0.1:9092", "group.id": "g", "security.protocol": protocol}
    renamed = {key if key == "oauth_cb" else key.replace("_", "."): value for key, value in keys.items()}
    return read_config(config | renamed).network.security


def tls(**keys: Any) -> ssl.SSLContext:
    context = read("ssl", **keys).tls
    assert context is not None
    return context


# --- TLS ------------------------------------------------------------------------------------------------


def test_without_a_word_the_systems_authorities_verify_the_brokers_name() -> None:
    context = tls()

    assert context.verify_mode is ssl.CERT_REQUIRED
    assert context.check_hostname
    assert context.minimum_version >= ssl.TLSVersion.TLSv1_2


def test_verification_can_be_loosened_or_turned_off() -> None:
    nameless = tls(ssl_endpoint_identification_algorithm="none")
    assert (nameless.verify_mode, nameless.check_hostname) == (ssl.CERT_REQUIRED, False)

    blind = tls(enable_ssl_certificate_verification="false")
    assert (blind.verify_mode, blind.check_hostname) == (ssl.CERT_NONE, False)


def test_authorities_come_from_a_file_a_string_or_both(certificates: Certificates) -> None:
    other = certificates.other_authority.read_text(encoding="ascii")

    assert len(tls(ssl_ca_location=str(certificates.authority)).get_ca_certs()) == 1
    assert len(tls(ssl_ca_pem=other).get_ca_certs()) == 1
    assert len(tls(ssl_ca_pem=other, ssl_ca_location=certificates.authority).get_ca_certs()) == 2


def test_authorities_come_from_a_directory(certificates: Certificates, tmp_path: Path) -> None:
    """OpenSSL reads it when it meets a certificate, so none is loaded before."""
    (tmp_path / "12345678.0").write_bytes(certificates.authority.read_bytes())

    assert tls(ssl_ca_location=tmp_path).get_ca_certs() == []


def test_a_probe_looks_where_systems_keep_their_authorities(
    certificates: Certificates, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A Python that brings its own OpenSSL finds none by itself."""
    nowhere = ssl.DefaultVerifyPaths(None, None, "", "", "", "")  # type: ignore[arg-type] # the first two may be None
    monkeypatch.setattr(ssl, "get_default_verify_paths", lambda: nowhere)
    monkeypatch.setattr(ssl.SSLContext, "load_default_certs", lambda *_: None)
    monkeypatch.setattr(tls_module, "CA_PATHS", ("/nowhere.pem", str(certificates.authority)))

    assert len(tls(ssl_ca_location="probe").get_ca_certs()) == 1


def test_an_encrypted_key_is_opened(certificates: Certificates, encrypted: Path) -> None:
    certificate, _ = certificates.of("alice")
    files = {"ssl_certificate_location": certificate, "ssl_key_password": SECRET}

    assert tls(**files, ssl_key_location=encrypted) is not None
    assert tls(**files, ssl_key_pem=encrypted.read_text(encoding="ascii")) is not None


def test_an_encrypted_key_without_its_password_asks_nobody(
    certificates: Certificates, encrypted: Path
) -> None:
    """OpenSSL would ask on the terminal, and wait."""
    certificate, _ = certificates.of("alice")
    for wrong, words in (
        ({}, f"ssl.key.location ({encrypted}) is encrypted: set ssl.key.password"),
        (
            {"ssl_key_password": f"not-{SECRET}"},
            f"ssl.key.password does not open ssl.key.location ({encrypted}): set the password with which",
        ),
    ):
        with pytest.raises(ConfigurationError) as caught:
            tls(ssl_certificate_location=certificate, ssl_key_location=encrypted, **wrong)
        assert str(caught.value).startswith(words)
        assert SECRET not in str(caught.value)


def test_a_key_must_belong_to_the_certificate(certificates: Certificates) -> None:
    certificate, _ = certificates.of("alice")
    _, other = certificates.expired
    with pytest.raises(ConfigurationError) as caught:
        tls(ssl_certificate_location=certificate, ssl_key_pem=other.read_text(encoding="ascii"))

    assert str(caught.value).startswith(
        "ssl.key.pem is not the key of ssl.certificate.location: set the key that belongs to the certificate"
    )


def test_a_certificate_without_its_key_is_not_presented(certificates: Certificates) -> None:
    certificate, _ = certificates.of("alice")

    assert tls(ssl_certificate_location=certificate) is not None
    assert tls(ssl_certificate_pem=certificate.read_text(encoding="ascii")) is not None


def test_strings_need_no_file_in_memory(certificates: Certificates, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(os, "memfd_create", raising=False)
    certificate, key = (path.read_text(encoding="ascii") for path in certificates.of("alice"))

    assert tls(ssl_certificate_pem=certificate, ssl_key_pem=key) is not None


def test_revoked_certificates_are_looked_for(certificates: Certificates, tmp_path: Path) -> None:
    """Of a list that OpenSSL cannot read, it says so at once."""
    wrong = tmp_path / "crl.pem"
    wrong.write_text("no list", encoding="ascii")
    with pytest.raises(ConfigurationError, match=r"^ssl\.crl\.location cannot be used"):
        tls(ssl_crl_location=wrong)

    assert tls(ssl_crl_location=certificates.other_authority).verify_flags & ssl.VERIFY_CRL_CHECK_LEAF


def test_a_key_store_needs_a_package(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def missing(_name: str) -> None:
        raise ImportError

    monkeypatch.setattr(importlib, "import_module", missing)
    with pytest.raises(
        ConfigurationError, match="needs the package `cryptography`: install it, or turn the key store"
    ):
        tls(ssl_keystore_location=tmp_path / "store", ssl_keystore_password=SECRET)


@pytest.mark.parametrize(
    ("keys", "words"),
    [
        (
            {"ssl_ca_location": "/dev/no/ca"},
            "ssl.ca.location cannot be used: no such file or directory below /dev. Correct the path",
        ),
        (
            {"ssl_ca_location": PEM},
            "ssl.ca.location has PEM text where a path belongs: set ssl.ca.pem instead",
        ),
        ({"ssl_crl_location": PEM}, "ssl.crl.location has PEM text where a path belongs: write it to a file"),
        ({"ssl_ca_pem": SECRET}, "ssl.ca.pem cannot be used: "),
        (
            {"ssl_crl_location": "/no/crl"},
            "ssl.crl.location cannot be used: no such file or directory below /",
        ),
        ({"ssl_cipher_suites": SECRET}, "ssl.cipher.suites cannot be used: No cipher can be selected"),
        (
            {"ssl_endpoint_identification_algorithm": "ssh"},
            "ssl.endpoint.identification.algorithm takes none or https",
        ),
        (
            {"ssl_certificate_pem": SECRET},
            "ssl.certificate.pem has no certificate as PEM: set one that begins",
        ),
        (
            {"ssl_key_location": SECRET},
            "ssl.key.location is set, and there is no certificate of it: set ssl.certificate.location or",
        ),
        (
            {"ssl_certificate_location": __file__, "ssl_key_pem": SECRET},
            f"ssl.certificate.location ({__file__}) has no certificate as PEM",
        ),
        (
            {"ssl_certificate_location": PEM, "ssl_key_pem": SECRET},
            "ssl.certificate.location has PEM text where a path belongs: set ssl.certificate.pem instead",
        ),
        ({"ssl_keystore_location": "/store"}, "ssl.keystore.location needs ssl.keystore.password"),
        (
            {"ssl_keystore_location": "/store", "ssl_keystore_password": SECRET},
            "ssl.keystore.location cannot be used: no such file or directory below /. Correct the path",
        ),
        (
            {"ssl_keystore_location": __file__, "ssl_keystore_password": SECRET},
            f"ssl.keystore.password does not open ssl.keystore.location ({__file__}), or this is no PKCS#12",
        ),
        (
            {"ssl_keystore_location": "/store", "ssl_keystore_password": SECRET, "ssl_key_pem": SECRET},
            "ssl.keystore.location and ssl.key.pem are both set; leave one of them out",
        ),
        ({"ssl_keystore_location": f"{SECRET}\0"}, "ssl.keystore.location has a NUL character: remove it"),
        ({"ssl_curves_list": "X25519"}, "ssl.curves.list is not supported; librdkafka's OpenSSL is its own"),
    ],
)
def test_what_cannot_be_used_is_refused_and_not_shown(keys: dict[str, Any], words: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        tls(**keys)

    assert str(caught.value).startswith(words)
    assert SECRET not in f"{caught.value!r} {caught.value}"


# --- SASL -----------------------------------------------------------------------------------------------


def test_a_password_is_read_and_not_shown() -> None:
    security = read(
        "Sasl_Plaintext", sasl_mechanisms="scram-sha-256", sasl_username="a,b=c", sasl_password=SECRET
    )

    assert (security.protocol, security.mechanism) == ("SASL_PLAINTEXT", "SCRAM-SHA-256")
    assert (security.username, security.password, security.tls) == ("a,b=c", SECRET, None)
    assert security.escaped("a,b=c") == "a=2Cb=3Dc"
    assert SECRET not in repr(security)


def test_plain_sends_a_name_as_it_is() -> None:
    assert Security("SASL_SSL", mechanism="PLAIN").escaped("a,b") == "a,b"


def test_no_secret_is_shown_by_the_whole_configuration() -> None:
    keys = (
        "sasl.password",
        "ssl.key.password",
        "ssl.key.pem",
        "ssl.keystore.password",
        "sasl.oauthbearer.config",
    )
    config = {
        "bootstrap.servers": "127.0.0.1:9092",
        "group.id": "g",
        "sasl.username": "u",
        "sasl.mechanism": "PLAIN",
    }

    assert SECRET not in repr(
        read_config({**config, "security.protocol": "SASL_PLAINTEXT", **dict.fromkeys(keys, SECRET)})
    )


def test_kerberos_needs_its_package_and_knows_its_service(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda _name: object())

    assert read("sasl_plaintext").mechanism == "GSSAPI"  # librdkafka's default
    assert read("sasl_plaintext").kerberos_service == "kafka"
    assert read("sasl_plaintext", sasl_kerberos_service_name="k").kerberos_service == "k"


@pytest.mark.parametrize(
    ("keys", "words"),
    [
        ({}, "sasl.mechanism is not set, so GSSAPI, and it needs the package `gssapi`"),
        (
            {"sasl_mechanism": "gssapi"},
            "sasl.mechanism GSSAPI needs the package `gssapi` for the connection to",
        ),
        (
            {"sasl_mechanism": "SCRAM-SHA512"},
            (
                "sasl.mechanism takes PLAIN, SCRAM-SHA-256, SCRAM-SHA-512, OAUTHBEARER, GSSAPI, did you mean "
                "'SCRAM-SHA-512'?"
            ),
        ),
        ({"sasl_mechanism": "PLAIN"}, "sasl.mechanism PLAIN needs sasl.username and sasl.password"),
        (
            {"sasl_mechanism": "OAUTHBEARER"},
            "sasl.mechanism OAUTHBEARER needs oauth_cb, a function that takes",
        ),
        ({"sasl_mechanism": "OAUTHBEARER", "oauth_cb": SECRET}, "oauth_cb takes a function, not a str"),
    ],
)
def test_sasl_that_cannot_be_served_is_refused(
    keys: dict[str, Any], words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda _name: None)
    with pytest.raises(ConfigurationError) as caught:
        read("sasl_plaintext", **keys)

    assert str(caught.value).startswith(words)
    assert SECRET not in str(caught.value)


# --- Tokens ---------------------------------------------------------------------------------------------


def test_what_librdkafka_asks_for_serves_the_membership_too() -> None:
    expiry = time.time() + 60
    tokens = Tokens(lambda config: (f"{config}-{SECRET}", expiry, "alice", {"a": "b"}), LOG)

    assert tokens.refresh("c") == (f"c-{SECRET}", expiry, "alice", {"a": "b"})
    token = tokens.current()
    assert (token.value, token.expiry, token.extensions) == (f"c-{SECRET}", expiry, {"a": "b"})
    assert SECRET not in repr(token) + repr(tokens)


def test_the_recipe_for_amazons_msk_gives_tokens(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("aws_msk_iam_sasl_signer")
    for name, value in {"ACCESS_KEY_ID": "AKIAEXAMPLE", "SECRET_ACCESS_KEY": SECRET}.items():
        monkeypatch.setenv(f"AWS_{name}", value)  # it signs without a request
    document = (Path(__file__).parents[2] / "docs" / "configuration.md").read_text(encoding="utf-8")
    recipe = document.split("<!-- msk -->\n```py\n")[1].split("```\n<!-- end of msk -->")[0]
    given: dict[str, Any] = {}
    exec(recipe, given)  # noqa: S102 - the documentation's own code

    tokens = read_config(given["config"]).network.security.tokens
    assert tokens is not None
    tokens.refresh("")
    token = tokens.current()

    assert 60 < token.expiry - time.time() <= 900
    padded = token.value + "=" * (-len(token.value) % 4)
    assert (
        "kafka.eu-west-1.amazonaws.com/?Action=kafka-cluster%3AConnect"
        in base64.urlsafe_b64decode(padded).decode()
    )


def test_no_token_and_a_token_of_old_are_no_tokens(monkeypatch: pytest.MonkeyPatch) -> None:
    now = time.time()
    tokens = Tokens(lambda _: (SECRET, now + 60), LOG)
    with pytest.raises(
        TokenUnavailableError, match="oauth_cb has given no token: it has not been called yet"
    ):
        tokens.current()
    assert not tokens.was_called

    tokens.refresh("")
    assert (tokens.was_called, tokens.failure) == (True, "")
    monkeypatch.setattr(time, "time", lambda: now + 67)
    with pytest.raises(
        TokenUnavailableError, match="expired 7 s ago; expiry is in seconds since the epoch"
    ) as caught:
        tokens.current()
    assert SECRET not in str(caught.value)


def test_a_callback_that_returns_an_expired_token_has_failed(caplog: pytest.LogCaptureFixture) -> None:
    tokens = Tokens(lambda _: (SECRET, time.time() - 7), LOG)
    with pytest.raises(ValueError, match="expired 7 s ago"):
        tokens.refresh("")

    expired = "oauth_cb gave no token: it returned a token that expired 7 s ago"
    assert tokens.failure == f"{expired}; expiry is in seconds since the epoch"
    assert caplog.messages == [tokens.failure]


def test_a_callback_that_raises_is_logged_and_told_once_no_token_is_left(
    caplog: pytest.LogCaptureFixture,
) -> None:
    def oauth_cb(_config: str) -> tuple[str, float]:
        raise LookupError("no login")

    tokens = Tokens(oauth_cb, LOG)
    with pytest.raises(LookupError):
        tokens.refresh("")

    assert caplog.messages == ["oauth_cb gave no token: it raised LookupError: no login"]
    with pytest.raises(TokenUnavailableError, match="given no token: it raised LookupError: no login"):
        tokens.current()


@pytest.mark.parametrize(
    "answer",
    [
        SECRET,
        (SECRET,),
        (SECRET, "soon"),
        (7, 8.0),
        (SECRET, 8.0, 9),
        (SECRET, 8.0, "", SECRET),
        (SECRET,) * 5,
    ],
)
def test_an_answer_that_is_no_token_is_refused_and_not_shown(answer: Any) -> None:
    with pytest.raises(TypeError, match=r"^oauth_cb must return") as caught:
        Tokens(lambda _: answer, LOG).refresh("")

    assert SECRET not in str(caught.value)
