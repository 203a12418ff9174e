"""Every key of a consumer's configuration, and who serves it: one table, from which `config` works.

The keys are librdkafka's (its CONFIGURATION.md, rows C and *) and confluent-kafka's own. A key that is not
here is passed to librdkafka, which refuses what it does not know; so it does with those that only a program
in C can set.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any

from groupwright.consumer.errors import ConfigurationError


class By(Enum):
    """Who serves a key."""

    LIBRDKAFKA = "librdkafka"
    BOTH = "both"
    MEMBERSHIP = "the membership"
    NOBODY = "refused"


@dataclass(frozen=True, slots=True)
class Setting:
    """One key of the configuration."""

    key: str
    by: By
    note: str = ""
    """How it is served; of one that is refused, what to do instead."""
    limits: tuple[int, int] | None = None
    """The smallest and the largest number, as librdkafka has them."""
    harmless: tuple[str, ...] = ()
    """Values of a refused key that change nothing, and are accepted."""


ALIASES: Mapping[str, str] = {
    "metadata.broker.list": "bootstrap.servers",
    "sasl.mechanisms": "sasl.mechanism",
    "max.in.flight": "max.in.flight.requests.per.connection",
    "fetch.message.max.bytes": "max.partition.fetch.bytes",
    "sasl.oauthbearer.client.credentials.client.id": "sasl.oauthbearer.client.id",
    "sasl.oauthbearer.client.credentials.client.secret": "sasl.oauthbearer.client.secret",
}
"""librdkafka's second names, and the names used here."""

_HOUR = 3_600_000
_DAY = 86_400_000
_LARGEST = 2_147_483_647

_HEARTBEAT = "a third of `session.timeout.ms` where it is not less than that"
_METADATA = "write an oauth_cb that fetches the token, and leave sasl.oauthbearer.method out"
_OPENSSL = (
    "librdkafka's OpenSSL is its own, and Python's has no call for it: set it in OpenSSL's configuration file"
)


def _native(note: str, *keys: str) -> Iterator[Setting]:
    return (Setting(key, By.LIBRDKAFKA, note) for key in keys)


def _both(note: str, *keys: str) -> Iterator[Setting]:
    return (Setting(key, By.BOTH, note) for key in keys)


def _refused(note: str, *keys: str) -> Iterator[Setting]:
    return (Setting(key, By.NOBODY, note) for key in keys)


_ALL = (
    # --- The group ---
    Setting("group.id", By.BOTH),
    Setting("group.instance.id", By.MEMBERSHIP, "static membership (KIP-345)"),
    Setting("group.protocol", By.BOTH, "`consumer`: the membership is librdkafka's, and no assignor applies"),
    Setting(
        "group.protocol.type",
        By.NOBODY,
        "only `consumer` groups have assignors: leave it out",
        None,
        ("consumer",),
    ),
    Setting(
        "group.remote.assignor", By.LIBRDKAFKA, "used with `group.protocol=consumer` only, as by librdkafka"
    ),
    Setting("partition.assignment.strategy", By.MEMBERSHIP, "names, `Assignor` objects, or a list of both"),
    Setting("session.timeout.ms", By.MEMBERSHIP, "", (1, _HOUR)),
    Setting("heartbeat.interval.ms", By.MEMBERSHIP, _HEARTBEAT, (1, _HOUR)),
    Setting("max.poll.interval.ms", By.MEMBERSHIP, "", (1, _DAY)),
    Setting(
        "coordinator.query.interval.ms", By.LIBRDKAFKA, "no effect: the membership asks when it has cause to"
    ),
    Setting("enable.auto.commit", By.MEMBERSHIP, "librdkafka's own is always off"),
    Setting("auto.commit.interval.ms", By.MEMBERSHIP, "0 turns automatic commits off", (0, _DAY)),
    Setting("enable.auto.offset.store", By.BOTH),
    Setting("auto.offset.reset", By.BOTH),
    Setting(
        "client.rack", By.BOTH, "for fetching from the nearest replica, and for assignors that know racks"
    ),
    Setting(
        "offset.store.method",
        By.NOBODY,
        "offsets are committed to the group: to commit none, set enable.auto.commit=false",
        None,
        ("broker",),
    ),
    *_native("a relic of the simple consumer, without effect", "auto.commit.enable", "offset.store.path"),
    *_native("as above", "offset.store.sync.interval.ms", "consume.callback.max.messages"),
    Setting("topic.blacklist", By.BOTH, "regular expressions of topics that are never subscribed to"),
    # --- Callbacks of confluent-kafka ---
    Setting("on_commit", By.MEMBERSHIP),
    *_native("called by `poll`", "error_cb", "stats_cb", "throttle_cb"),
    Setting("logger", By.BOTH),
    Setting("interceptors", By.MEMBERSHIP, "a list of `ConsumerInterceptor` objects (KIP-42)"),
    Setting("oauth_cb", By.BOTH, "one call for both, on librdkafka's background thread"),
    Setting("default.topic.config", By.BOTH, "its keys win over those outside of it, as in confluent-kafka"),
    *_refused(
        "it is for the class DeserializingConsumer: make one, or deserialize what poll returns",
        "key.deserializer",
        "value.deserializer",
    ),
    # --- Connecting ---
    Setting("bootstrap.servers", By.BOTH),
    Setting("client.id", By.BOTH),
    Setting("client.dns.lookup", By.BOTH, "canonical names are resolved once, at construction"),
    Setting("broker.address.family", By.BOTH),
    Setting("broker.address.ttl", By.LIBRDKAFKA, "the membership looks a name up at each connection"),
    Setting("socket.timeout.ms", By.BOTH, "", (10, 300_000)),
    Setting("socket.connection.setup.timeout.ms", By.BOTH, "", (1_000, _LARGEST)),
    Setting("socket.keepalive.enable", By.BOTH),
    Setting("socket.nagle.disable", By.BOTH),
    Setting("socket.send.buffer.bytes", By.BOTH, "0: the system's", (0, 100_000_000)),
    Setting("socket.receive.buffer.bytes", By.BOTH, "0: the system's", (0, 100_000_000)),
    Setting(
        "connections.max.idle.ms",
        By.BOTH,
        "0: never; a connection that waits for an answer stays",
        (0, _LARGEST),
    ),
    Setting("reconnect.backoff.ms", By.BOTH, "", (0, _HOUR)),
    Setting(
        "reconnect.backoff.max.ms",
        By.BOTH,
        "librdkafka gets 1000 where it is not set; the membership waits 250 ms at most; either waits "
        "longer where "
        "reconnect.backoff.ms is longer",
        (0, _HOUR),
    ),
    Setting("retry.backoff.ms", By.BOTH, "", (1, 300_000)),
    Setting(
        "retry.backoff.max.ms",
        By.BOTH,
        "the coordinator is looked up after 250 ms at most, or retry.backoff.ms where that is longer",
        (1, 300_000),
    ),
    Setting("receive.message.max.bytes", By.BOTH, "", (1_000, _LARGEST)),
    Setting("allow.auto.create.topics", By.BOTH),
    *_native("the membership always asks the broker for its versions", "api.version.request"),
    *_native(
        "as above", "api.version.request.timeout.ms", "api.version.fallback.ms", "broker.version.fallback"
    ),
    *_native("the membership keeps to 5", "max.in.flight.requests.per.connection"),
    *_native("the membership drops a connection at the first time-out", "socket.max.fails"),
    *_native(
        "the membership always starts anew from `bootstrap.servers`",
        "metadata.recovery.strategy",
        "metadata.recovery.rebootstrap.trigger.ms",
    ),
    Setting(
        "topic.metadata.refresh.interval.ms",
        By.BOTH,
        "how often the leader looks for changed topics, and others for names that match",
        (-1, _HOUR),
    ),
    *_native(
        "for librdkafka's metadata",
        "metadata.max.age.ms",
        "topic.metadata.refresh.fast.interval.ms",
        "topic.metadata.refresh.fast.cnt",
        "topic.metadata.refresh.sparse",
        "topic.metadata.propagation.max.ms",
    ),
    # --- Security ---
    Setting("security.protocol", By.BOTH),
    Setting("ssl.ca.location", By.BOTH, "a file, a directory of hashed names, or `probe`"),
    Setting("ssl.ca.pem", By.BOTH),
    Setting("ssl.certificate.location", By.BOTH),
    Setting("ssl.certificate.pem", By.BOTH),
    Setting("ssl.key.location", By.BOTH),
    Setting("ssl.key.pem", By.BOTH),
    Setting("ssl.key.password", By.BOTH),
    Setting("ssl.keystore.location", By.BOTH, "PKCS#12; needs the package `cryptography`"),
    Setting("ssl.keystore.password", By.BOTH),
    Setting("ssl.crl.location", By.BOTH),
    Setting("ssl.cipher.suites", By.BOTH, "those of TLS 1.2, as for librdkafka"),
    Setting("enable.ssl.certificate.verification", By.BOTH),
    Setting("ssl.endpoint.identification.algorithm", By.BOTH),
    *_refused(_OPENSSL, "ssl.curves.list", "ssl.sigalgs.list", "ssl.providers"),
    *_refused(
        "give the certificate and the key as PEM, or as PKCS#12", "ssl.engine.location", "ssl.engine.id"
    ),
    *_refused("write the authorities to a file, and name it in ssl.ca.location", "ssl.ca.certificate.stores"),
    Setting("sasl.mechanism", By.BOTH, "PLAIN, SCRAM-SHA-256, SCRAM-SHA-512, OAUTHBEARER, GSSAPI"),
    Setting("sasl.username", By.BOTH),
    Setting("sasl.password", By.BOTH),
    Setting("sasl.kerberos.service.name", By.BOTH, "GSSAPI needs the package `gssapi` too"),
    *_native(
        "librdkafka's kinit gets the ticket that both use",
        "sasl.kerberos.principal",
        "sasl.kerberos.kinit.cmd",
        "sasl.kerberos.keytab",
    ),
    Setting(
        "sasl.kerberos.min.time.before.relogin",
        By.BOTH,
        "0: no kinit, so that a missing ticket is told at once",
    ),
    Setting("sasl.oauthbearer.config", By.BOTH, "what `oauth_cb` is called with"),
    Setting("sasl.oauthbearer.method", By.BOTH, "`oidc`: the membership fetches one token for both"),
    Setting("sasl.oauthbearer.metadata.authentication.type", By.NOBODY, _METADATA, None, ("none",)),
    Setting(
        "enable.sasl.oauthbearer.unsecure.jwt",
        By.NOBODY,
        "write an oauth_cb that returns the unsecured token",
        None,
        ("false", "f", "0"),
    ),
    Setting(
        "sasl.oauthbearer.grant.type",
        By.BOTH,
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
        "only a program in C can set it; librdkafka says so",
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

SETTINGS: Mapping[str, Setting] = {setting.key: setting for setting in _ALL}
"""By key, in the order of the documentation."""


def flatten(config: Mapping[str, Any]) -> dict[str, Any]:
    """Return a configuration as librdkafka reads it: flattened, with the last value of each key.

    Names are those of `SETTINGS`.
    """
    topic = config.get("default.topic.config", {})
    flat: dict[str, Any] = {}
    for key, value in (*config.items(), *topic.items()):
        if key != "default.topic.config":
            flat[ALIASES.get(key, key)] = value
    return flat


def with_values(config: Mapping[str, Any]) -> dict[str, Any]:
    """Return the configuration without keys that are None, where librdkafka takes that for the default."""
    return {key: value for key, value in config.items() if value is not None}


def refuse_unserved(config: Mapping[str, Any]) -> None:
    """Refuse what nobody would honour.

    Raises:
        ConfigurationError: the (flattened) configuration has such a key; the message says what to do.
    """
    for key, value in config.items():
        setting = SETTINGS.get(key)
        if setting is not None and setting.by is By.NOBODY and str(value).lower() not in setting.harmless:
            raise ConfigurationError(f"{key} cannot be served; {setting.note}")


def table() -> str:
    """Return the table of all keys, in Markdown."""
    rows = (
        f"| `{each.key}` | {each.by.value} | {_cell(each)} |"
        for each in sorted(SETTINGS.values(), key=lambda each: each.key)
    )
    return "\n".join(("| key | served by | |", "|---|---|---|", *rows))


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
