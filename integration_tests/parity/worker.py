"""Worker process that runs scenarios of one side, one after the other, on its main thread.

It reads one request per line from standard input, and writes one line of JSON in response. Each side has a
separate process, because scenarios may use signals, forks and exits. If a scenario hangs, the worker reports
it with the trace so far, and ends.
"""

import argparse
import atexit
import gc
import json
import os
import sys
import threading
import time
from collections.abc import Mapping
from typing import Any

import confluent_kafka
import confluent_kafka.aio

from groupwright.consumer import AIOConsumer, Consumer, DeserializingConsumer
from groupwright.testing import LocalKafka
from integration_tests.parity.fuzz.player import ChanceError, Player
from integration_tests.parity.fuzz.programs import Program
from integration_tests.parity.lab import Classes, Lab, LabError
from integration_tests.parity.scenarios import all_scenarios
from integration_tests.parity.trace import FAILED, Trace

SIDES = {
    "original": Classes(
        confluent_kafka.Consumer, confluent_kafka.DeserializingConsumer, confluent_kafka.aio.AIOConsumer
    ),
    "ours": Classes(Consumer, DeserializingConsumer, AIOConsumer),
}


class Worker:
    """Runs requests."""

    def __init__(self, side: str, bootstrap_servers: str, secured: Mapping[str, Mapping[str, Any]]) -> None:
        """Create a runner for one side."""
        self._classes = SIDES[side]
        self._bootstrap_servers = bootstrap_servers
        self._secured = secured
        self._answers = os.fdopen(os.dup(sys.stdout.fileno()), "w")
        self._pid = os.getpid()
        self._kafka: LocalKafka | None = None
        os.dup2(sys.stderr.fileno(), sys.stdout.fileno())  # what a scenario prints is no answer

    def run(self, request: Mapping[str, Any]) -> None:
        """Run one scenario or program, and write the response."""
        began, trace = time.monotonic(), None
        while trace is None:
            trace = self._play(request, began)
        self._answer(trace, hung=False)

    def _play(self, request: Mapping[str, Any], began: float) -> Trace | None:
        """Run it once; return None if it is to be run again."""
        gc.collect()  # destroy clients of earlier scenarios here, not in a child forked by this one
        lab = Lab(self._classes, self._bootstrap_servers, self._secured, self._own_kafka)
        watchdog = threading.Timer(began + request["seconds"] - time.monotonic(), self._give_up, (lab,))
        watchdog.daemon = True
        watchdog.start()
        again = False
        try:
            if "program" in request:
                Player(lab, Program.from_json(request["program"])).play()
            else:
                all_scenarios()[request["scenario"]].program(lab)
        except ChanceError:
            again = time.monotonic() - began < request["seconds"] / 3
        except LabError as error:
            lab.note(f"stopped: {error}")
        except BaseException as error:  # noqa: BLE001 - part of what is compared
            if os.getpid() != self._pid:
                os._exit(1)  # a forked child that has not ended itself must not answer
            lab.note(f"{FAILED}{type(error).__name__}: {error}".replace(f"{lab.id}.", ""))
        lab.end()
        watchdog.cancel()
        return None if again else lab.trace

    def _own_kafka(self) -> LocalKafka:
        if self._kafka is None:
            self._kafka = LocalKafka(proxied=True)
            self._kafka.start()
            atexit.register(self._kafka.close)
        self._kafka.link().restore()
        if not self._kafka.running:
            self._kafka.start()
        return self._kafka

    def _give_up(self, lab: Lab) -> None:
        lab.trace.add("scenario", "hangs")
        self._answer(lab.trace, hung=True)
        if self._kafka is not None:
            self._kafka.close()
        os._exit(1)

    def _answer(self, trace: Trace, *, hung: bool) -> None:
        json.dump({"trace": trace.to_json(), "hung": hung}, self._answers)
        self._answers.write("\n")
        self._answers.flush()


def main() -> None:
    """Run requests until standard input is closed."""
    parser = argparse.ArgumentParser()
    parser.add_argument("side", choices=SIDES)
    parser.add_argument("bootstrap_servers")
    parser.add_argument("secured", type=json.loads)
    given = parser.parse_args()
    worker = Worker(given.side, given.bootstrap_servers, given.secured)
    for line in sys.stdin:
        worker.run(json.loads(line))


if __name__ == "__main__":
    main()
