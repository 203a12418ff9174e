"""Look-ups of log ends, with an admin client that has to wait."""

import threading
import time

from groupwright.instrumentation._librdkafka.log_ends import LogEnds
from harness.patience import PATIENCE


def test_a_slow_token_does_not_delay_the_poll_that_delivers_statistics() -> None:
    asked, released = threading.Event(), threading.Event()

    def oauth_cb(_: str) -> tuple[str, float]:
        asked.set()
        released.wait(PATIENCE)
        return "token", time.time() + 3600

    config = {
        "bootstrap.servers": "127.0.0.1:1",
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanisms": "OAUTHBEARER",
        "oauth_cb": oauth_cb,
    }

    LogEnds(config, read_uncommitted=False).look_up([("orders", 0)], lambda *_: None)
    try:
        assert asked.wait(PATIENCE)  # `look_up` has returned, and there is no token yet
        assert not released.is_set()
    finally:
        released.set()
