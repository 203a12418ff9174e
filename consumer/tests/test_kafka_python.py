"""kafka-python's private layers, as this package uses them: a failed test names what a release changed."""

import inspect
import logging
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from groupwright.consumer._config.log import KAFKA_PYTHON_LOGGERS
from groupwright.consumer._network import kafka_python, transport
from groupwright.consumer._protocol.known_brokers import Address, KnownBrokers

OVERRIDDEN = {
    "KafkaConnectionManager.__init__": "(self, net, **configs)",
    "KafkaConnectionManager._build_transport": "(self, node, timeout_at=None)",
    "KafkaConnectionManager.connection_delay": "(self, node_id)",
    "KafkaConnectionManager.get_connection": "(self, node_id, timeout_ms=None, pop_on_close=True, "
    "refresh_metadata_on_err=True, reset_backoff_on_connect=True)",
    "KafkaConnectionManager.least_used_connections": "(self)",
    "KafkaConnectionManager.maybe_raise_auth_failure": "(self, node_id)",
    "KafkaConnectionManager.reset_backoff": "(self, node_id)",
    "KafkaConnectionManager.update_backoff": "(self, node_id)",
    "KafkaConnection._send_request": "(self, request, future=None, timeout_at=None)",
    "KafkaConnection.connection_made": "(self, transport)",
    "KafkaProtocol.receive_bytes": "(self, data)",
    "KafkaProtocol.send_bytes": "(self)",
    "KafkaTCPTransport._read_from_sock": "(self)",
    "KafkaSSLTransport._read_from_sock": "(self)",
    "SaslReauthenticator.__init__": "(self, conn)",
    "SaslReauthenticator._run": "(self)",
    "AbstractTokenProvider.__init__": "(self, **config)",
    "AbstractTokenProvider.token": "(self)",
    "AbstractTokenProvider.extensions": "(self)",
}
"""Methods that this package replaces in subclasses: kafka-python calls ours instead."""

CALLED = {
    "KafkaConnectionManager._connect": "(self, node, conn, reset_backoff_on_connect=True, timeout_at=None)",
    "KafkaConnectionManager.close": "(self, node_id=None, timeout_ms=None)",
    "KafkaConnectionManager.send": "(self, request, node_id=None, request_timeout_ms=None)",
    "KafkaConnectionManager.socket_connection_setup_timeout_ms": "(self, node_id)",
    "KafkaConnectionManager.wait_for": "(self, future, timeout_ms)",
    "KafkaConnection.__init__": "(self, net, node_id=None, broker_version_data=None, **configs)",
    "KafkaConnection.close": "(self, error=None)",
    "KafkaNetSocket.sock_connect": "(self, net, sock, sockaddr, timeout_at=None)",
    "KafkaProtocol.__init__": "(self, **config)",
    "KafkaTCPTransport.__init__": "(self, net, sock, host=None)",
    "KafkaTCPTransport._sock_recv": "(self)",
    "KafkaTCPTransport.abort": "(self, error=None)",
    "KafkaSSLTransport.__init__": "(self, net, sock, host=None, **configs)",
    "KafkaSSLTransport._sock_recv": "(self)",
    "NetworkSelector.__init__": "(self, **configs)",
    "NetworkSelector.call_at": "(self, when, task)",
    "NetworkSelector.call_soon": "(self, task)",
    "NetworkSelector.call_soon_threadsafe": "(self, callback)",
    "NetworkSelector.cancel": "(self, task)",
    "NetworkSelector.close": "(self)",
    "NetworkSelector.run_forever": "(self)",
    "NetworkSelector.sleep": "(self, delay)",
    "NetworkSelector.wait_read": "(self, fileobj, timeout_at=None)",
    "NetworkSelector.wait_write": "(self, fileobj, timeout_at=None)",
    "JoinGroupRequest.flexible_version_q": "(version)",
    "StructField.compiled_encode_into": "(self, version, compact=False, tagged=False)",
    "StructField.compiled_decode_from": "(self, version, compact=False, tagged=False, data_class=None)",
    "Future.failure": "(self, e)",
    "Future.success": "(self, value)",
    "Future.add_both": "(self, f, *args, **kwargs)",
}
"""Methods that this package calls."""

SETTINGS = {
    "KafkaConnectionManager": {
        "bootstrap_servers",
        "client_id",
        "client_software_name",
        "client_software_version",
        "connections_max_idle_ms",
        "receive_message_max_bytes",
        "request_timeout_ms",
        "sasl_kerberos_service_name",
        "sasl_mechanism",
        "sasl_oauth_token_provider",
        "sasl_plain_password",
        "sasl_plain_username",
        "security_protocol",
        "socket_connection_setup_timeout_max_ms",
        "socket_connection_setup_timeout_ms",
        "socket_options",
        "ssl_context",
    },
    "NetworkSelector": {"client_id", "slow_task_threshold_secs"},
}
"""Settings by name: one that is not there any more would be passed over in silence."""


def classes() -> dict[str, Any]:
    """Return kafka-python's classes by their names."""
    found = {name: getattr(kafka_python, name) for name in kafka_python.__all__}
    net = kafka_python.NetworkSelector()
    manager = kafka_python.KafkaConnectionManager(net, bootstrap_servers="127.0.0.1:1")
    found["StructField"] = type(kafka_python.JoinGroupRequest._struct)
    manager.close()
    net.close()
    return found


def test_an_application_that_takes_warnings_for_errors_makes_a_consumer() -> None:
    consumer = "from groupwright.consumer import Consumer; Consumer({'group.id': 'g'}).close()"
    program = [sys.executable, "-W", "error", "-c", consumer]

    assert subprocess.run(program, capture_output=True, text=True, check=False).stderr == ""


def test_a_folder_that_hides_kafka_python_is_named(tmp_path: Path) -> None:
    hiding = tmp_path / "kafka" / "__init__.py"
    hiding.parent.mkdir()
    hiding.touch()
    make = "from groupwright.consumer import Consumer; Consumer({'bootstrap.servers': 'h', 'group.id': 'g'})"

    ended = subprocess.run(
        [sys.executable, "-c", make], cwd=tmp_path, capture_output=True, text=True, check=False
    )

    assert f"ImportError: the module 'kafka' is {hiding}, which hides kafka-python" in ended.stderr


@pytest.mark.parametrize(("member", "signature"), [*OVERRIDDEN.items(), *CALLED.items()])
def test_a_method_has_the_parameters_that_it_had(member: str, signature: str) -> None:
    owner, name = member.split(".")

    assert str(inspect.signature(getattr(classes()[owner], name))) == signature


def overriding() -> Iterator[str]:
    """Yield each method of ours that takes the place of one of kafka-python's."""
    bases = {getattr(kafka_python, name) for name in kafka_python.__all__} - {kafka_python.kafka_errors}
    for ours in vars(transport).values():
        if isinstance(ours, type) and ours.__module__ == transport.__name__:
            mine = [cls for cls in ours.__mro__ if cls.__module__ == transport.__name__]
            for base in bases.intersection(ours.__mro__):
                names = {name for cls in mine for name in vars(cls) if callable(vars(cls)[name])}
                yield from (f"{base.__name__}.{name}" for name in names if hasattr(base, name))


def test_the_table_of_overridden_methods_is_whole() -> None:
    """Else a release could add a method of the same name, which would then be ours by chance."""
    own = {"_DrainBeforeClose", "__repr__", "__str__"}

    assert {name for name in overriding() if name.split(".")[1] not in own} == set(OVERRIDDEN)


@pytest.mark.parametrize("owner", SETTINGS)
def test_each_setting_is_known(owner: str) -> None:
    assert SETTINGS[owner] - set(classes()[owner].DEFAULT_CONFIG) == set()


def test_a_connection_and_its_manager_have_the_attributes_that_are_used() -> None:
    net = kafka_python.NetworkSelector()
    manager = kafka_python.KafkaConnectionManager(net, bootstrap_servers="127.0.0.1:1")
    connection = kafka_python.KafkaConnection(net, node_id="bootstrap-0")
    try:
        assert (net._stop, net._closed) == (False, False)
        assert (manager._net, manager._conns) == (net, {})
        assert manager.broker_version_data is None
        assert not manager.ssl_enabled
        assert not connection.in_flight_requests
        assert (connection.closed, connection.connected, connection.net) == (False, False, net)
        assert isinstance(connection._reauth, kafka_python.SaslReauthenticator)
        assert (connection._reauth._conn, connection._reauth._task) == (connection, None)
        assert not connection.close_future.is_done
        assert (manager.cluster._refresh_loop_future, manager._bootstrap_future) == (None, None)
    finally:
        connection.close()
        manager.close()
        net.close()


def test_a_rejected_connection_counts_as_failed() -> None:
    """kafka-python resets its backoff then."""
    net, address = kafka_python.NetworkSelector(), Address("127.0.0.1", 1)
    manager = transport.Connections(net, KnownBrokers([address]))
    node = manager.node_at(address, "coordinator")
    try:
        manager.reset_backoff(node)  # of a connection that is none
        assert 0 < manager.connection_delay(node) <= 0.3
        assert manager.connection_delay(node) == pytest.approx(
            manager.connection_delay(manager.node_at(address)), abs=0.01
        ), "all connections to an address wait"
    finally:
        manager.close()
        net.close()


def test_every_logger_is_known() -> None:
    """An unknown one would log the same again, beside the membership's own lines."""
    layers = ("kafka.cluster", "kafka.net.", "kafka.protocol")
    unused = {
        f"kafka.net.{name}"
        for name in ("compat", "http_connect", "metrics", "sasl.msk", "sasl.sspi", "socks5")
    }
    found = {
        module.log.name
        for name, module in list(sys.modules.items())
        if name.startswith(layers) and isinstance(getattr(module, "log", None), logging.Logger)
    }

    assert found - unused == set(KAFKA_PYTHON_LOGGERS)
