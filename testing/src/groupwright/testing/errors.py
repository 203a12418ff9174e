"""Exceptions of `groupwright.testing`."""

from groupwright.assignors.errors import GroupwrightError


class JavaNotFoundError(GroupwrightError):
    """No Java runtime on this machine is recent enough for Kafka."""


class JarResolutionError(GroupwrightError):
    """The jars of a Maven artifact are not in the local cache, and cannot be downloaded."""


class JavaCompilationError(GroupwrightError):
    """Java sources do not compile; the message ends with the compiler's errors."""


class LocalKafkaError(GroupwrightError):
    """A local broker could not be started, or a call is not valid in its state.

    Attributes:
        log_tail: The last lines that the broker logged; empty if it had not been started.
    """

    def __init__(self, message: str, *, log_tail: str = "") -> None:
        """Store the tail of the log, and append it to the message."""
        super().__init__(f"{message}\n{log_tail}" if log_tail else message)
        self.log_tail = log_tail


class KafkaNotReadyError(GroupwrightError):
    """A Kafka was not ready in time, or lacks what a call needs: a proxy, a leader, a coordinator."""


class KafkaContainersError(GroupwrightError):
    """A cluster in containers could not be started, or a call is not valid in its state."""


class ContainersUnavailableError(KafkaContainersError):
    """No container engine responds, or the image is neither present nor available from a registry."""


class SecurityError(GroupwrightError):
    """A Kafka has no secured listeners, no such user, or is not started; or a user cannot be created."""


class LoadedGroupError(GroupwrightError):
    """A condition of a group under load did not hold in time, or a member ended unexpectedly."""


class GuaranteeViolatedError(LoadedGroupError, AssertionError):
    """A consumer group violated a guarantee; the message names each guarantee, partition and member."""


class SimulationError(GroupwrightError, ValueError):
    """A simulation's settings are impossible, or its group never becomes stable; the message says why."""
