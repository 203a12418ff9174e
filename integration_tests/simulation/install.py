"""Installation of the simulated parts, before the consumer is imported.

| real | simulated |
|---|---|
| `time.monotonic`, `time.time`, `time.sleep` | virtual time |
| `Wakeup`, `threading` and `get_ident` in the consumer's modules | `Wakeup`, `Threading`, virtual threads |
| `confluent_kafka.Consumer`: librdkafka's handle | `handle.Handle` |
| `Network`: the network thread, sockets | `network.Network` |

All other code of the consumer is the real code.
"""

import gc
import importlib
import pkgutil
import sys
import time
from typing import Any

import confluent_kafka
from greenlet import getcurrent

from integration_tests.simulation.runtime import (
    Threading,
    VirtualThread,
    Wakeup,
    get_ident,
    virtual_monotonic,
    virtual_sleep,
    virtual_time,
)


def install() -> None:
    """Put the simulated parts in place of the real ones; once in a process, before the consumer is imported.

    Raises:
        RuntimeError: The consumer was imported before.
    """
    if getattr(confluent_kafka, "simulated", False):
        return
    if any(name.startswith("groupwright.consumer.") for name in sys.modules):
        raise RuntimeError("groupwright.consumer is imported already: simulate in a process of its own")
    time.monotonic, time.time = virtual_monotonic, virtual_time
    time.sleep = virtual_sleep  # type: ignore[assignment] # without keywords
    from integration_tests.simulation.handle import Handle  # it may not be imported before `time` is replaced

    confluent_kafka.Consumer = Handle  # type: ignore[assignment,misc] # simulated
    confluent_kafka.simulated = True  # type: ignore[attr-defined] # for the next call
    package = importlib.import_module("groupwright.consumer")
    names = (found.name for found in pkgutil.walk_packages(package.__path__, "groupwright.consumer."))
    unused = (".kerberos", ".aio", ".deserializing")
    modules = [package, *(importlib.import_module(name) for name in names if not name.endswith(unused))]
    from integration_tests.simulation.network import Network

    simulated = {"threading": Threading, "get_ident": get_ident, "Wakeup": Wakeup, "Network": Network}
    access = importlib.import_module("groupwright.consumer._membership.access")
    real_wake = access.AccessGuard.wake

    def wake(guard: Any) -> None:
        real_wake(guard)
        thread = getcurrent()
        if isinstance(thread, VirtualThread):
            thread.process.on_wake()
            thread.process.take_signal(thread)

    access.AccessGuard.wake = wake
    for module in modules:
        for name, value in simulated.items():
            if hasattr(module, name):
                setattr(module, name, value)
    gc.collect()
    gc.freeze()  # collections between two simulations skip all that was imported
