"""A client whose metrics are read at each scrape, and not from its rebalances."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable, Iterable
from typing import Generic, TypeVar

from groupwright.core.locking import call_locked
from groupwright.instrumentation._metrics.families import ClientLabels, Families
from groupwright.instrumentation._metrics.samples import CounterIncrements, Sample

C = TypeVar("C")


class SampledClient(Generic[C]):
    """The metrics of one client, or of its workers. They exist as long as the object that has them."""

    def __init__(
        self,
        client_labels: ClientLabels,
        client: C,
        read: Callable[[C | None], Iterable[Sample]],
        families: Families,
        on_removed: Callable[[SampledClient[C]], None],
    ) -> None:
        """Use a method of `Metrics`, which adds it to the collector.

        Args:
            client_labels: Its labels.
            client: The object, which is held weakly.
            read: Returns its samples; called once more with None when it no longer exists.
            families: Counts its totals.
            on_removed: Called by `remove`.
        """
        self.client_labels = client_labels
        self._client = weakref.ref(client)
        self._read = read
        self._families = families
        self._on_removed = on_removed
        self._increments = CounterIncrements()
        # Reentrant: a signal handler may scrape while it interrupts a scrape.
        self._sampling = threading.RLock()
        self._removed = False

    def remove(self) -> None:
        """Remove these series from the registry; a second call does nothing."""
        self._removed = True
        self._on_removed(self)

    @property
    def last_rebalance(self) -> float:
        """0: it has no rebalances, or another instrumentation knows them."""
        return 0.0

    @property
    def alive(self) -> bool:
        """True if the client still exists."""
        return not self._removed and self._client() is not None

    def instruments(self, client: object) -> bool:
        """Return whether these are the metrics of that object."""
        return self._client() is client

    def samples(self) -> list[Sample]:
        """Return the samples of a scrape, and add the increments of their totals to the counters."""
        return call_locked(self._sampling, self._sample)

    def _sample(self) -> list[Sample]:
        if self._removed:
            return []
        samples = list(self._read(self._client()))
        self._families.add_increments(self.client_labels, self._increments.increments(samples))
        return samples
