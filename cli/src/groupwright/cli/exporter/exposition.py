"""Samples as a page of Prometheus's text format, written by prometheus-client."""

from collections.abc import Iterator

from prometheus_client import Metric, generate_latest

from groupwright.cli.exporter.state import Samples


def text(samples: Samples) -> bytes:
    """Return the page of some samples."""
    return generate_latest(_Families(samples))


class _Families:
    def __init__(self, samples: Samples) -> None:
        self._samples = samples

    def collect(self) -> Iterator[Metric]:
        for spec, series in self._samples.items():
            family = Metric(spec.family, spec.help, spec.type)
            for values, value in series.items():
                family.add_sample(spec.name, dict(zip(spec.labels, values, strict=True)), value)
            yield family
