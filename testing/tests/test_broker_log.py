"""Summaries of a failed broker's log."""

from pathlib import Path

from groupwright.testing._kafka import broker_log

SHUTDOWN = [f"[kafka-shutdown-hook] INFO SharedServer - Stopping part {part}" for part in range(300)]


def test_the_cause_is_shown_though_a_long_shutdown_follows_it() -> None:
    """A broker whose port is taken logs hundreds of lines of orderly shutdown after the reason for it."""
    log = "\n".join(
        [
            "[main] INFO SocketServer - Awaiting socket connections on 127.0.0.1:9093.",
            "[main] ERROR BrokerServer - Fatal error during broker startup. Prepare to shutdown",
            "org.apache.kafka.common.KafkaException: Socket server failed to bind to 127.0.0.1:9092: in use.",
            "\tat kafka.network.Acceptor.openServerSocket(SocketServer.scala:590)",
            "Caused by: java.net.BindException: Address already in use",
            "[main] ERROR BrokerServer - Fatal error during broker startup. Prepare to shutdown",
            *SHUTDOWN,
        ]
    )

    shown = broker_log.failure(log, lines=2).splitlines()

    assert shown == [
        "[main] ERROR BrokerServer - Fatal error during broker startup. Prepare to shutdown",
        "org.apache.kafka.common.KafkaException: Socket server failed to bind to 127.0.0.1:9092: in use.",
        "Caused by: java.net.BindException: Address already in use",
        *SHUTDOWN[-2:],
    ]
    assert broker_log.says_port_taken(log)


def test_a_short_log_is_shown_whole_and_once() -> None:
    log = 'Exception in thread "main" ConfigException: Invalid value\n\tat kafka.tools.StorageTool.main'

    assert broker_log.failure(log) == log
    assert not broker_log.says_port_taken(log)


def test_a_log_is_read_from_where_a_start_began(tmp_path: Path) -> None:
    path = tmp_path / "kafka.log"
    assert broker_log.size(path) == 0
    assert broker_log.read(path) == ""
    path.write_bytes(b"the start before\n")
    began = broker_log.size(path)
    with path.open("ab") as log:
        log.write(b"this start \xff\n")

    assert broker_log.read(path, since=began) == "this start \N{REPLACEMENT CHARACTER}\n"
    assert broker_log.tail(broker_log.read(path), lines=1) == "this start \N{REPLACEMENT CHARACTER}"
