"""Valid and invalid configurations and arguments: acceptance, and exceptions."""

import functools
from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Any

from confluent_kafka import TopicPartition

from integration_tests.parity.lab import Lab
from integration_tests.parity.scenarios import scenario

_SETTINGS = (
    {"session_timeout_ms": 7000.0, "max_poll_interval_ms": "60000.5"},
    {"session_timeout_ms": "0x1770", "auto_commit_interval_ms": " 500 "},
    {"session_timeout_ms": "soon"},
    {"session_timeout_ms": True},
    {"session_timeout_ms": None},
    {"session_timeout_ms": 0},
    {"heartbeat_interval_ms": 9000},
    {"session_timeout_ms": 100, "heartbeat_interval_ms": ...},
    {"max_poll_interval_ms": 3000},
    {"enable_auto_commit": "False"},
    {"enable_auto_commit": None},
    {"enable_auto_commit": "yes"},
    {"isolation_level": None},
    {"client_id": None, "client_rack": None, "group_instance_id": None},
    {"client_id": b"name"},
    {"on_commit": None},
    {"error_cb": None},
    {"error_cb": 3},
    {"bootstrap_servers": None},
    {"bootstrap_servers": ...},
    {"bootstrap_servers": "::1"},
    {"group_id": ...},
    {"partition_assignment_strategy": "range,range"},
    {"partition_assignment_strategy": "no-such"},
    {"auto_offset_reset": "none"},
    {"no_such_key": 1},
)


@scenario()
def the_same_configurations_are_refused(lab: Lab) -> None:
    """A configuration that the original takes is taken, and one that it refuses is refused with its code."""
    for settings in _SETTINGS:
        _make(lab, str(settings), lab.config(**settings))
    wrong: tuple[dict[Any, Any], ...] = ({1: 2}, {None: "x"}, {b"client.id": "x"})
    for each in wrong:
        _make(lab, str(each), {**lab.config(), **each})
    lab.attempt("Consumer()", lab.consumer_class)


@scenario()
def what_could_never_work_is_refused_at_once(lab: Lab) -> None:
    """Configurations and subscriptions that the original takes, and that come to nothing."""
    _make(lab, "a port that is no number", lab.config(bootstrap_servers="localhost:abc"))
    _make(lab, "no assignor", lab.config(partition_assignment_strategy=""))
    consumer = lab.consumer()
    for topics in ([1], [b"topic"], [None]):
        consumer.attempt("subscribe", topics)
    consumer.close()


def _make(lab: Lab, what: str, config: Mapping[Any, Any]) -> None:
    lab.attempt(f"Consumer with {what}", lambda: lab.consumer_class(dict(config)).close())


@scenario()
def methods_refuse_the_same_arguments(lab: Lab) -> None:
    """A wrong argument raises the same type or code."""
    topic = lab.topic()
    consumer = lab.consumer(enable_auto_commit=False)
    consumer.attempt("poll", "1")
    consumer.attempt("poll", None)
    for number in (-1, 1_000_001, "1", None, 1.5):
        consumer.attempt("consume", number, 0)
    for topics in ([], [topic, topic], [""], topic, (topic,), None):
        consumer.attempt("subscribe", topics)
    consumer.attempt("subscribe", [topic], None, None, None, None)
    for method in ("assign", "incremental_assign", "incremental_unassign", "pause", "resume", "position"):
        consumer.attempt(method, ["x"])
        consumer.attempt(method, None)
    consumer.attempt("seek", "x")
    consumer.attempt("commit", **{"async": False})
    consumer.attempt("commit", no_such=False)
    consumer.attempt("commit", None, [TopicPartition(topic, 0, 3)], False)  # noqa: FBT003 - what is tried
    consumer.attempt("close", 1)
    consumer.close()
    consumer.attempt("close")
    for method in ("poll", "consume", "assignment", "unsubscribe", "memberid", "list_topics"):
        consumer.attempt(method)


class _Settings(Mapping[str, Any]):
    """A mapping that is no dict."""

    def __init__(self, config: dict[str, Any]) -> None:
        self._config = config

    def __getitem__(self, key: str) -> Any:
        return self._config[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._config)

    def __len__(self) -> int:
        return len(self._config)


@scenario()
def arguments_that_are_nearly_right(lab: Lab) -> None:
    """None for a callback, mixed lists, tuples, mappings and keywords are accepted or rejected equally."""
    topic = lab.topic(messages=2)
    config = lab.config(enable_auto_commit=False)
    class_: Any = lab.consumer_class
    for what, args, settings in (
        ("a mapping", (_Settings(config),), {}),
        ("a mapping proxy", (MappingProxyType(config),), {}),
        ("pairs", (list(config.items()),), {}),
        ("keywords", (), config),
        ("both", (config,), {"client.id": "x"}),
        ("two dicts", (config, config), {}),
        ("None", (None,), {}),
    ):
        make = functools.partial(class_, *args, **settings)
        lab.attempt(what, lambda make=make: make().close())  # type: ignore[misc] # no type for a default
    consumer = lab.consumer(enable_auto_commit=False)
    for name in ("on_assign", "on_revoke", "on_lost"):
        for wrong in (None, 3):
            subscribe = functools.partial(consumer.raw.subscribe, [topic], **{name: wrong})
            lab.attempt(f"{name}={wrong}", subscribe)
    consumer.attempt("subscribe", [topic, 1])
    consumer.attempt("subscribe", [topic, "^x", None])
    consumer.attempt("subscribe", {topic})
    consumer.attempt("subscribe", {topic: 1})
    consumer.close()
    consumer = lab.consumer(enable_auto_commit=False)
    good = TopicPartition(topic, 0, 1)
    for several in ([good, None], [good, topic], (good,), {good}, [good, (topic, 0)], good):
        for method in ("assign", "pause", "resume", "position", "committed", "store_offsets", "commit"):
            given = {"offsets": several} if method in {"store_offsets", "commit"} else {}
            timeout = {"timeout": 5} if method == "committed" else {}
            asynchronous = {"asynchronous": False} if method == "commit" else {}
            consumer.attempt(method, *(() if given else (several,)), **given, **timeout, **asynchronous)
    consumer.attempt("commit", message=None, offsets=None, asynchronous=False)
    consumer.attempt("commit", None, None, None)
    consumer.attempt("commit", offsets=[good], asynchronous=0)
    consumer.attempt("commit", offsets=[good], asynchronous="no")
    consumer.attempt("commit", offsets=[])
    consumer.attempt("commit", offsets=[], asynchronous=False)
    consumer.attempt("assign", [])
    consumer.attempt("pause", [])
    consumer.attempt("position", [])
    consumer.close()


@scenario()
def one_that_was_never_initialised_is_closed(lab: Lab) -> None:
    """A subclass that forgot `super().__init__()` raises RuntimeError from every method but `close`."""

    class Forgetful(lab.consumer_class):  # type: ignore[name-defined,misc] # the class under test
        def __init__(self, _config: dict[str, object]) -> None:
            pass

    raw = Forgetful({})
    for method in (
        "poll",
        "consume",
        "assignment",
        "unsubscribe",
        "memberid",
        "list_topics",
        "commit",
        "close",
    ):
        lab.attempt(method, getattr(raw, method))


@scenario()
def an_offset_of_an_unassigned_partition_is_not_stored(lab: Lab) -> None:
    """The code differs between a topic that the consumer never had and another partition of one it has."""
    topic, other = lab.topic(partitions=2, messages=3), lab.topic()
    consumer = lab.consumer(enable_auto_commit=False, enable_auto_offset_store=False)
    consumer.assign([TopicPartition(topic, 0, 0)])
    consumer.read(3)
    consumer.attempt("store_offsets", offsets=[TopicPartition(topic, 1, 1)])
    consumer.attempt("store_offsets", offsets=[TopicPartition(other, 0, 1)])
    consumer.close()


@scenario()
def metadata_of_a_commit_is_read_back(lab: Lab) -> None:
    """The metadata of a commit is read back, including an empty string."""
    topic = lab.topic()
    consumer = lab.consumer(enable_auto_commit=False)
    for text in (None, "words", ""):
        partition = TopicPartition(topic, 0, 1)
        if text is not None:
            partition = TopicPartition(topic, 0, 1, text)
        consumer.commit(offsets=[partition], asynchronous=False)
        (found,) = consumer.committed([TopicPartition(topic, 0)], timeout=10)
        lab.note(f"metadata {found.metadata!r}")
    consumer.close()
