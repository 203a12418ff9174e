"""The exporter's own metrics: refreshes, and what it leaves out. Pure."""

from collections.abc import Iterator
from dataclasses import dataclass, field

from groupwright.cli.exporter import catalogue
from groupwright.cli.exporter.catalogue import OUTCOMES, REASONS_LEFT_OUT, RECORD_OUTCOMES, ExporterSpec
from groupwright.cli.exporter.state import Labels, Page, Samples


@dataclass
class ExporterStatus:
    """Outcomes of the refreshes.

    Attributes:
        version: Groupwright's version.
        source: The source of committed offsets.
        refreshes: Number of refreshes by outcome.
        is_up: Whether the last refresh succeeded.
        last_refresh: Time of the last successful one, and its duration.
        page: The samples of the last successful one.
        records: Records of `__consumer_offsets` read, by outcome; None if the source reads none.
    """

    version: str
    source: str
    refreshes: dict[str, int] = field(default_factory=lambda: dict.fromkeys(OUTCOMES, 0))
    is_up: bool = False
    last_refresh: tuple[float, float] = (0.0, 0.0)
    page: Page | None = None
    records: dict[str, int] | None = None

    def succeeded(self, page: Page, time: float, duration: float) -> None:
        """Record a successful refresh."""
        self.refreshes["succeeded"] += 1
        self.is_up, self.page, self.last_refresh = True, page, (time, duration)

    def failed(self) -> None:
        """Record a failed refresh."""
        self.refreshes["failed"] += 1
        self.is_up = False

    def samples(self) -> Samples:
        """Return the samples."""
        made: Samples = {}
        for spec, labels, value in self._samples():
            made.setdefault(spec, {})[labels] = value
        return made

    def _samples(self) -> Iterator[tuple[ExporterSpec, Labels, float]]:
        yield catalogue.BUILD_INFO, (self.version, self.source), 1
        yield catalogue.UP, (), self.is_up
        yield catalogue.REFRESH_TIMESTAMP, (), self.last_refresh[0]
        yield catalogue.REFRESH_DURATION, (), self.last_refresh[1]
        for outcome in OUTCOMES:
            yield catalogue.REFRESHES, (outcome,), self.refreshes[outcome]
        if self.page is not None:
            snapshot = self.page.snapshot
            yield catalogue.SILENT_BROKERS, (), snapshot.silent_brokers
            yield catalogue.UNKNOWN_PARTITIONS, (), self.page.unknown_partitions
            for reason in REASONS_LEFT_OUT:
                yield catalogue.GROUPS_LEFT_OUT, (reason,), snapshot.left_out.get(reason, 0)
            yield catalogue.SERIES, (), self.page.series
            for level, number in self.page.left_out.items():
                yield catalogue.SERIES_LEFT_OUT, (str(level),), number
        if self.records is not None:
            for outcome in RECORD_OUTCOMES:
                yield catalogue.RECORDS, (outcome,), self.records.get(outcome, 0)
