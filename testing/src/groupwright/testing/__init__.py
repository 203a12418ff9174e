"""A real Kafka for tests and demos.

`LocalKafka` runs one KRaft broker as a child process; Java need not be installed. `KafkaContainers` runs a
cluster and needs a container engine. Tests get a broker from the pytest fixtures `local_kafka` and
`new_kafka_topic`. Names are imported on first use, because pytest loads this package in every run.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from groupwright.testing._java.java import JavaRuntime, class_archive_path, find_java, resolve_jars
    from groupwright.testing._java.java_programs import JavaProgram, compile_java
    from groupwright.testing._kafka.containers import KafkaContainers
    from groupwright.testing._kafka.kafka import Kafka
    from groupwright.testing._kafka.local_kafka import LocalKafka
    from groupwright.testing._kafka.proxy import Link, LinkFaults, Proxy
    from groupwright.testing._kafka.security import Listener, Security
    from groupwright.testing.errors import (
        ContainersUnavailableError,
        JarResolutionError,
        JavaCompilationError,
        JavaNotFoundError,
        KafkaContainersError,
        KafkaNotReadyError,
        LocalKafkaError,
        SecurityError,
    )

__all__ = [
    "ContainersUnavailableError",
    "JarResolutionError",
    "JavaCompilationError",
    "JavaNotFoundError",
    "JavaProgram",
    "JavaRuntime",
    "Kafka",
    "KafkaContainers",
    "KafkaContainersError",
    "KafkaNotReadyError",
    "Link",
    "LinkFaults",
    "Listener",
    "LocalKafka",
    "LocalKafkaError",
    "Proxy",
    "Security",
    "SecurityError",
    "class_archive_path",
    "compile_java",
    "find_java",
    "resolve_jars",
]

_MODULES = {
    "ContainersUnavailableError": "errors",
    "JarResolutionError": "errors",
    "JavaCompilationError": "errors",
    "JavaNotFoundError": "errors",
    "JavaProgram": "_java.java_programs",
    "JavaRuntime": "_java.java",
    "Kafka": "_kafka.kafka",
    "KafkaContainers": "_kafka.containers",
    "KafkaContainersError": "errors",
    "KafkaNotReadyError": "errors",
    "Link": "_kafka.proxy",
    "LinkFaults": "_kafka.proxy",
    "Listener": "_kafka.security",
    "LocalKafka": "_kafka.local_kafka",
    "LocalKafkaError": "errors",
    "Proxy": "_kafka.proxy",
    "Security": "_kafka.security",
    "SecurityError": "errors",
    "class_archive_path": "_java.java",
    "compile_java": "_java.java_programs",
    "find_java": "_java.java",
    "resolve_jars": "_java.java",
}


def __getattr__(name: str) -> object:
    """Import the public name (PEP 562)."""
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
