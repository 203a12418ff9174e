"""The errors of `groupwright.testing`."""

from groupwright.assignors.errors import GroupwrightError


class JavaNotFoundError(GroupwrightError):
    """No Java runtime on this machine is recent enough for Kafka."""


class JarResolutionError(GroupwrightError):
    """The jars of a Maven artifact are neither in the local cache nor to be had from a repository."""


class LocalKafkaError(GroupwrightError):
    """A local broker could not be started, or was asked for what its state does not allow.

    Attributes:
        log_tail: The last lines that the broker logged; empty if it had not been started.
    """

    def __init__(self, message: str, *, log_tail: str = "") -> None:
        """Keep the tail of the log beside the message, which ends with it."""
        super().__init__(f"{message}\n{log_tail}" if log_tail else message)
        self.log_tail = log_tail


class KafkaContainersError(GroupwrightError):
    """A cluster in containers could not be started, or was asked for what its state does not allow."""
