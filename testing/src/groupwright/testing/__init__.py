"""A real Kafka for tests and demos.

`LocalKafka` runs one KRaft broker as a child process, without an installed Java; `KafkaContainers` is a cluster, where
there is a container engine. The pytest fixtures `local_kafka` and `new_kafka_topic`
hand it to tests. Names are imported on first use: pytest loads this package in each run of each user.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from groupwright.testing.containers import KafkaContainers
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
    from groupwright.testing.java import JavaRuntime, find_java, resolve_jars
    from groupwright.testing.java_programs import JavaProgram, compile_java
    from groupwright.testing.kafka import Kafka
    from groupwright.testing.local_kafka import LocalKafka
    from groupwright.testing.proxy import Conditions, Link, Proxy
    from groupwright.testing.security import Listener, Security

__all__ = [
    "Conditions",
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
    "Listener",
    "LocalKafka",
    "LocalKafkaError",
    "Proxy",
    "Security",
    "SecurityError",
    "compile_java",
    "find_java",
    "resolve_jars",
]

_MODULES = {
    "Conditions": "proxy",
    "ContainersUnavailableError": "errors",
    "JarResolutionError": "errors",
    "JavaCompilationError": "errors",
    "JavaNotFoundError": "errors",
    "JavaProgram": "java_programs",
    "JavaRuntime": "java",
    "Kafka": "kafka",
    "KafkaContainers": "containers",
    "KafkaContainersError": "errors",
    "KafkaNotReadyError": "errors",
    "Link": "proxy",
    "Listener": "security",
    "LocalKafka": "local_kafka",
    "LocalKafkaError": "errors",
    "Proxy": "proxy",
    "Security": "security",
    "SecurityError": "errors",
    "compile_java": "java_programs",
    "find_java": "java",
    "resolve_jars": "java",
}


def __getattr__(name: str) -> object:
    """Import the public name (PEP 562)."""
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
