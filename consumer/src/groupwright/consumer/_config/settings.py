"""Table of a consumer's configuration properties, and of the component that implements each.

The properties are librdkafka's (its CONFIGURATION.md, rows C and *) and confluent-kafka's own. Properties
that are not in the table are passed to librdkafka, which rejects unknown ones, and those that only a C
program can set.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any

from groupwright.consumer.errors import ConfigurationError


class ServedBy(Enum):
    """The component that implements a property."""

    LIBRDKAFKA = "librdkafka"
    BOTH = "both"
    MEMBERSHIP = "the membership"
    REFUSED = "refused"


@dataclass(frozen=True, slots=True)
class Setting:
    """One configuration property."""

    key: str
    by: ServedBy
    note: str = ""
    """Notes on the implementation; for an unsupported property, the alternative."""
    limits: tuple[int, int] | None = None
    """The smallest and the largest value, as in librdkafka."""
    harmless: tuple[str, ...] = ()
    """Values of an unsupported property that are accepted, because they equal the default behaviour."""


ALIASES: Mapping[str, str] = {
    "metadata.broker.list": "bootstrap.servers",
    "sasl.mechanisms": "sasl.mechanism",
    "max.in.flight": "max.in.flight.requests.per.connection",
    "fetch.message.max.bytes": "max.partition.fetch.bytes",
    "sasl.oauthbearer.client.credentials.client.id": "sasl.oauthbearer.client.id",
    "sasl.oauthbearer.client.credentials.client.secret": "sasl.oauthbearer.client.secret",
}
"""librdkafka's aliases, and the names used here."""

_HOUR = 3_600_000
_DAY = 86_400_000
_LARGEST = 2_147_483_647

_HEARTBEAT = "a third of `session.timeout.ms` where it is not less than that"
_OWN_CALLBACK = "write an oauth_cb that fetches the token, and leave sasl.oauthbearer.method out"
_OPENSSL = (
    "librdkafka's OpenSSL is its own, and Python's has no call for it: set it in OpenSSL's configuration file"
)


def _native(note: str, *keys: str) -> Iterator[Setting]:
    return (Setting(key, ServedBy.LIBRDKAFKA, note) for key in keys)


def _both(note: str, *keys: str) -> Iterator[Setting]:
    return (Setting(key, ServedBy.BOTH, note) for key in keys)


def _refused(note: str, *keys: str) -> Iterator[Setting]:
    return (Setting(key, ServedBy.REFUSED, note) for key in keys)


_ALL = (
    # --- The group ---
    Setting("group.id", ServedBy.BOTH),
    Setting("group.instance.id", ServedBy.MEMBERSHIP, "static membership (KIP-345)"),
    Setting(
        "group.protocol", ServedBy.BOTH, "`consumer`: the membership is librdkafka's, and no assignor applies"
    ),
    Setting(
        "group.protocol.type",
        ServedBy.REFUSED,
        "only `consumer` groups have assignors: leave it out",
        None,
        ("consumer",),
    ),
    Setting(
        "group.remote.assignor",
        ServedBy.LIBRDKAFKA,
        "used with `group.protocol=consumer` only, as by librdkafka",
    ),
    Setting(
        "partition.assignment.strategy", ServedBy.MEMBERSHIP, "names, `Assignor` objects, or a list of both"
    ),
    Setting(
        "load.check.interval.ms",
        ServedBy.MEMBERSHIP,
        "how often the leader of a cooperative group weighs partitions again, if its assignor has `weights`, "
        "and has the group rebalance if that is worth it; 0: never",
        (0, _DAY),
    ),
    Setting(
        "load.check.max.moves",
        ServedBy.MEMBERSHIP,
        "a load check that would move more partitions than this causes no rebalance; 0: checks only report; "
        "no limit by default",
        (0, _LARGEST),
    ),
    Setting("session.timeout.ms", ServedBy.MEMBERSHIP, "", (1, _HOUR)),
    Setting("heartbeat.interval.ms", ServedBy.MEMBERSHIP, _HEARTBEAT, (1, _HOUR)),
    Setting("max.poll.interval.ms", ServedBy.MEMBERSHIP, "", (1, _DAY)),
    Setting(
        "coordinator.query.interval.ms",
        ServedBy.LIBRDKAFKA,
        "no effect: the membership looks the coordinator up when it needs to",
    ),
    Setting("enable.auto.commit", ServedBy.MEMBERSHIP, "librdkafka's own is always off"),
    Setting("auto.commit.interval.ms", ServedBy.MEMBERSHIP, "0 turns automatic commits off", (0, _DAY)),
    Setting("enable.auto.offset.store", ServedBy.BOTH),
    Setting("auto.offset.reset", ServedBy.BOTH),
    Setting(
        "client.rack", ServedBy.BOTH, "for fetching from the nearest replica, and for rack-aware assignors"
    ),
    Setting(
        "offset.store.method",
        ServedBy.REFUSED,
        "offsets are committed to the group: to commit none, set enable.auto.commit=false",
        None,
        ("broker",),
    ),
    *_native(
        "a legacy property of the simple consumer, without effect",
        "auto.commit.enable",
        "offset.store.path",
        "offset.store.sync.interval.ms",
        "consume.callback.max.messages",
    ),
    Setting("topic.blacklist", ServedBy.BOTH, "regular expressions of topics that are never subscribed to"),
    # --- Callbacks of confluent-kafka ---
    Setting("on_commit", ServedBy.MEMBERSHIP),
    *_native("called by `poll`", "error_cb", "stats_cb", "throttle_cb"),
    Setting("logger", ServedBy.BOTH),
    Setting("interceptors", ServedBy.MEMBERSHIP, "a list of `ConsumerInterceptor` objects (KIP-42)"),
    Setting("oauth_cb", ServedBy.BOTH, "one call for both, on librdkafka's background thread"),
    Setting(
        "default.topic.config",
        ServedBy.BOTH,
        "its properties override those outside of it, as in confluent-kafka",
    ),
    *_refused(
        "it is for the class DeserializingConsumer: make one, or deserialize what poll returns",
        "key.deserializer",
        "value.deserializer",
    ),
    # --- Connecting ---
    Setting("bootstrap.servers", ServedBy.BOTH),
    Setting("client.id", ServedBy.BOTH),
    Setting("client.dns.lookup", ServedBy.BOTH, "a name is resolved for each connection"),
    Setting("broker.address.family", ServedBy.BOTH),
    Setting("broker.address.ttl", ServedBy.LIBRDKAFKA, "the membership resolves a name for each connection"),
    Setting("socket.timeout.ms", ServedBy.BOTH, "", (10, 300_000)),
    Setting("socket.connection.setup.timeout.ms", ServedBy.BOTH, "", (1_000, _LARGEST)),
    Setting("socket.keepalive.enable", ServedBy.BOTH),
    Setting("socket.nagle.disable", ServedBy.BOTH),
    Setting("socket.send.buffer.bytes", ServedBy.BOTH, "0: the system's", (0, 100_000_000)),
    Setting("socket.receive.buffer.bytes", ServedBy.BOTH, "0: the system's", (0, 100_000_000)),
    Setting(
        "connections.max.idle.ms",
        ServedBy.BOTH,
        "0: never; a connection that waits for an answer stays",
        (0, _LARGEST),
    ),
    Setting("reconnect.backoff.ms", ServedBy.BOTH, "", (0, _HOUR)),
    Setting(
        "reconnect.backoff.max.ms",
        ServedBy.BOTH,
        "librdkafka gets 1000 where it is not set; the membership waits 250 ms at most; either waits longer "
        "where reconnect.backoff.ms is longer",
        (0, _HOUR),
    ),
    Setting("retry.backoff.ms", ServedBy.BOTH, "", (1, 300_000)),
    Setting(
        "retry.backoff.max.ms",
        ServedBy.BOTH,
        "the coordinator is looked up after 250 ms at most, or retry.backoff.ms where that is longer",
        (1, 300_000),
    ),
    Setting("receive.message.max.bytes", ServedBy.BOTH, "", (1_000, _LARGEST)),
    Setting("allow.auto.create.topics", ServedBy.BOTH),
    *_native(
        "the membership always asks the broker for its versions",
        "api.version.request",
        "api.version.request.timeout.ms",
        "api.version.fallback.ms",
        "broker.version.fallback",
    ),
    *_native("the membership has 5 at most", "max.in.flight.requests.per.connection"),
    *_native("the membership drops a connection at the first time-out", "socket.max.fails"),
    Setting(
        "metadata.recovery.strategy",
        ServedBy.BOTH,
        "with `rebootstrap`, the membership asks `bootstrap.servers` beside the brokers that it knows",
    ),
    *_native(
        "the membership does not wait with `bootstrap.servers`", "metadata.recovery.rebootstrap.trigger.ms"
    ),
    Setting(
        "topic.metadata.refresh.interval.ms",
        ServedBy.BOTH,
        "interval at which each member fetches the metadata of its own topics, and the leader those of the "
        "whole group; 0 or -1: only when something hints at a change",
        (-1, _HOUR),
    ),
    *_native(
        "for librdkafka's metadata",
        "metadata.max.age.ms",
        "topic.metadata.refresh.fast.interval.ms",
        "topic.metadata.refresh.fast.cnt",
        "topic.metadata.refresh.sparse",
    ),
    *_native(
        "time for which librdkafka assumes that a new topic exists although brokers say that it does not; "
        "if the topic is deleted and created again meanwhile, librdkafka may never fetch the second one, "
        "unless this is 0",
        "topic.metadata.propagation.max.ms",
    ),
    # --- Security ---
    Setting("security.protocol", ServedBy.BOTH),
    Setting("ssl.ca.location", ServedBy.BOTH, "a file, a directory of hashed names, or `probe`"),
    Setting("ssl.ca.pem", ServedBy.BOTH),
    Setting("ssl.certificate.location", ServedBy.BOTH),
    Setting("ssl.certificate.pem", ServedBy.BOTH),
    Setting("ssl.key.location", ServedBy.BOTH),
    Setting("ssl.key.pem", ServedBy.BOTH),
    Setting("ssl.key.password", ServedBy.BOTH),
    Setting("ssl.keystore.location", ServedBy.BOTH, "PKCS#12; needs the package `cryptography`"),
    Setting("ssl.keystore.password", ServedBy.BOTH),
    Setting("ssl.crl.location", ServedBy.BOTH),
    Setting("ssl.cipher.suites", ServedBy.BOTH, "those of TLS 1.2, as for librdkafka"),
    Setting("enable.ssl.certificate.verification", ServedBy.BOTH),
    Setting("ssl.endpoint.identification.algorithm", ServedBy.BOTH),
    *_refused(_OPENSSL, "ssl.curves.list", "ssl.sigalgs.list", "ssl.providers"),
    *_refused(
        "give the certificate and the key as PEM, or as PKCS#12", "ssl.engine.location", "ssl.engine.id"
    ),
    *_refused("write the authorities to a file, and name it in ssl.ca.location", "ssl.ca.certificate.stores"),
    Setting("sasl.mechanism", ServedBy.BOTH, "PLAIN, SCRAM-SHA-256, SCRAM-SHA-512, OAUTHBEARER, GSSAPI"),
    Setting("sasl.username", ServedBy.BOTH),
    Setting("sasl.password", ServedBy.BOTH),
    Setting("sasl.kerberos.service.name", ServedBy.BOTH, "GSSAPI needs the package `gssapi` too"),
    *_native(
        "librdkafka's kinit gets the ticket that both use",
        "sasl.kerberos.principal",
        "sasl.kerberos.kinit.cmd",
        "sasl.kerberos.keytab",
    ),
    Setting(
        "sasl.kerberos.min.time.before.relogin",
        ServedBy.BOTH,
        "0: no kinit, so that a missing ticket is an error at once",
    ),
    Setting("sasl.oauthbearer.config", ServedBy.BOTH, "the argument of `oauth_cb`"),
    Setting("sasl.oauthbearer.method", ServedBy.BOTH, "`oidc`: the membership fetches one token for both"),
    Setting(
        "sasl.oauthbearer.metadata.authentication.type", ServedBy.REFUSED, _OWN_CALLBACK, None, ("none",)
    ),
    Setting(
        "enable.sasl.oauthbearer.unsecure.jwt",
        ServedBy.REFUSED,
        "write an oauth_cb that returns the unsecured token",
        None,
        ("false", "f", "0"),
    ),
    Setting(
        "sasl.oauthbearer.grant.type",
        ServedBy.BOTH,
        "with `sasl.oauthbearer.method=oidc`, `client_credentials` alone is served",
    ),
    *_both(
        "used with `sasl.oauthbearer.method=oidc`",
        "sasl.oauthbearer.client.id",
        "sasl.oauthbearer.client.secret",
        "sasl.oauthbearer.scope",
        "sasl.oauthbearer.extensions",
        "sasl.oauthbearer.token.endpoint.url",
        "sasl.oauthbearer.sub.claim.name",
        "https.ca.location",
        "https.ca.pem",
    ),
    *_native(
        "without effect: only for a grant type that is refused",
        "sasl.oauthbearer.assertion.algorithm",
        "sasl.oauthbearer.assertion.private.key.file",
        "sasl.oauthbearer.assertion.private.key.passphrase",
        "sasl.oauthbearer.assertion.private.key.pem",
        "sasl.oauthbearer.assertion.file",
        "sasl.oauthbearer.assertion.claim.aud",
        "sasl.oauthbearer.assertion.claim.exp.seconds",
        "sasl.oauthbearer.assertion.claim.iss",
        "sasl.oauthbearer.assertion.claim.jti.include",
        "sasl.oauthbearer.assertion.claim.nbf.seconds",
        "sasl.oauthbearer.assertion.claim.sub",
        "sasl.oauthbearer.assertion.jwt.template.file",
    ),
    # --- Fetching, and what else is librdkafka's ---
    *_native(
        "",
        "fetch.wait.max.ms",
        "fetch.queue.backoff.ms",
        "fetch.error.backoff.ms",
        "fetch.min.bytes",
        "fetch.max.bytes",
        "max.partition.fetch.bytes",
        "queued.min.messages",
        "queued.max.messages.kbytes",
        "message.max.bytes",
        "message.copy.max.bytes",
        "isolation.level",
        "check.crcs",
        "enable.partition.eof",
        "statistics.interval.ms",
        "enable.metrics.push",
        "debug",
        "log_level",
        "log.queue",
        "log.thread.name",
        "log.connection.close",
        "enable.random.seed",
        "builtin.features",
        "socket.blocking.max.ms",
        "reconnect.backoff.jitter.ms",
        "internal.termination.signal",
        "enabled_events",
    ),
    *_native("interceptors see what is consumed, and not the membership's commits", "plugin.library.paths"),
    *_native("for share consumers, without effect here", "max.poll.records", "share.acknowledgement.mode"),
    *_native(
        "only a C program can set it; librdkafka rejects it",
        "log_cb",
        "background_event_cb",
        "socket_cb",
        "connect_cb",
        "closesocket_cb",
        "open_cb",
        "resolve_cb",
        "opaque",
        "default_topic_conf",
        "consume_cb",
        "rebalance_cb",
        "offset_commit_cb",
        "oauthbearer_token_refresh_cb",
        "ssl_key",
        "ssl_certificate",
        "ssl_ca",
        "ssl_engine_callback_data",
        "ssl.certificate.verify_cb",
    ),
)

_UNTRIMMED = frozenset({"client.rack"})
"""Texts of which librdkafka keeps the white space before them."""
_SPACES = " \t\n\v\f\r"

SETTINGS: Mapping[str, Setting] = {setting.key: setting for setting in _ALL}
"""By name, in the order of the documentation."""


def flatten(config: Mapping[str, Any]) -> dict[str, Any]:
    """Return a configuration as librdkafka reads it: flattened, with the last value of each key.

    Names are those of `SETTINGS`. Texts have no white space before them, which librdkafka ignores.
    """
    topic = config.get("default.topic.config", {})
    flat: dict[str, Any] = {}
    for key, value in (*config.items(), *topic.items()):
        if key != "default.topic.config":
            name = ALIASES.get(key, key)
            is_trimmed = isinstance(value, str) and name not in _UNTRIMMED
            flat[name] = value.lstrip(_SPACES) if is_trimmed else value
    return flat


def with_values(config: Mapping[str, Any]) -> dict[str, Any]:
    """Return the configuration without properties that are None, which librdkafka reads as the default."""
    return {key: value for key, value in config.items() if value is not None}


def refuse_unsupported(config: Mapping[str, Any]) -> None:
    """Check that a flattened configuration has no unsupported property.

    Raises:
        ConfigurationError: It has one; the message says what to do instead.
    """
    for key, value in config.items():
        setting = SETTINGS.get(key)
        if (
            setting is not None
            and setting.by is ServedBy.REFUSED
            and str(value).lower() not in setting.harmless
        ):
            raise ConfigurationError(f"{key} is not supported; {setting.note}")


def table() -> str:
    """Return the table of all properties in Markdown, for the documentation. Equal rows are one."""
    rows: dict[str, list[str]] = {}
    for each in sorted(SETTINGS.values(), key=lambda each: each.key):
        rows.setdefault(f"{each.by.value} | {_cell(each)}", []).append(f"`{each.key}`")
    lines = (f"| {', '.join(keys)} | {row} |" for row, keys in rows.items())
    return "\n".join(("| keys | served by | |", "|---|---|---|", *lines))


def _cell(setting: Setting) -> str:
    words = [setting.note.replace("|", r"\|")] if setting.note else []
    if setting.limits is not None:
        words.append(f"{setting.limits[0]} to {setting.limits[1]}")
    if setting.harmless:
        words.append(f"`{setting.harmless[0]}` is accepted")
    second = [f"`{alias}`" for alias, key in ALIASES.items() if key == setting.key]
    if second:
        words.append(f"also {', '.join(second)}")
    return "; ".join(words)
