"""The errors of `groupwright.testing`."""

from groupwright.assignors.errors import GroupwrightError


class JavaNotFoundError(GroupwrightError):
    """No Java runtime on this machine is recent enough for Kafka."""


class JarResolutionError(GroupwrightError):
    """The jars of a Maven artifact are neither in the local cache nor to be had from a repository."""


class JavaCompilationError(GroupwrightError):
    """Java sources do not compile; the message ends with what the compiler says."""


class LocalKafkaError(GroupwrightError):
    """A local broker could not be started, or was asked for what its state does not allow.

    Attributes:
        log_tail: The last lines that the broker logged; empty if it had not been started.
    """

    def __init__(self, message: str, *, log_tail: str = "") -> None:
        """Keep the tail of the log beside the message, which ends with it."""
        super().__init__(f"{message}\n{log_tail}" if log_tail else message)
        self.log_tail = log_tail


class KafkaNotReadyError(GroupwrightError):
    """A Kafka did not come into a state in time, or was asked for what its state does not have."""


class KafkaContainersError(GroupwrightError):
    """A cluster in containers could not be started, or was asked for what its state does not allow."""


class ContainersUnavailableError(KafkaContainersError):
    """No container engine answers, or it neither has the image nor gets it from a registry."""


class SecurityError(GroupwrightError):
    """A Kafka was asked for secured listeners that it does not have, or not yet."""


class LoadedGroupError(GroupwrightError):
    """A group under load did not come into a state in time, or one of its members ended by itself."""


class PromiseBrokenError(LoadedGroupError, AssertionError):
    """A consumer group did not keep a promise; the message says which, for what, and when."""
