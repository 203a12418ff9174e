"""The page and the plot of the instrumentation's benchmark."""

from collections.abc import Iterator
from pathlib import Path
from statistics import median

from benchmarks.cost.instrumentation_results import LEAST_RATIO, Results
from benchmarks.layout import Report, Table, markdown
from benchmarks.pictures import new_figure, save

_CPU = [f"{whose} CPU µs {which}" for whose in ("thread", "process") for which in ("without", "with")]


def table(results: Results) -> Table:
    """Return the throughput: medians over the rounds."""
    return Table(
        "Throughput",
        ["method", "messages/s without", "messages/s with", "ratio", *_CPU],
        [
            [
                method,
                f"{median(rates.without):,.0f}",
                f"{median(rates.with_it):,.0f}",
                f"{rates.interval.estimate:.3f}",
                f"{median(rates.thread_cpu_without):.3f}",
                f"{median(rates.thread_cpu_with_it):.3f}",
                f"{median(rates.process_cpu_without):.2f}",
                f"{median(rates.process_cpu_with_it):.2f}",
            ]
            for method, rates in results.rates.items()
        ],
    )


def _page(results: Results, plot: str | None) -> Iterator[str]:
    yield "# What the instrumentation costs"
    yield ""
    yield f"Made by `{results.command}` on {results.date}."
    yield ""
    yield from (f"- {name}: {value}" for name, value in results.machine.items())
    yield f"""
A consumer of {results.partitions:,} partitions with instrumentation, and one without, on a real broker: [how
each is measured](../../benchmarks/cost/README.md#the-instrumentation). Of confluent-kafka's consumer, the
instrumentation wraps `poll` and `consume`; Groupwright's measures them itself, with instrumentation and
without. The broker runs on the same cores, and nothing but the processor limits the rates.

*CPU* is the processor time per message: of the application's thread, and of the whole process with
librdkafka's threads. Statistics are parsed once in `statistics.interval.ms`, in the polling thread.
"""
    if plot is not None:
        yield f"![Ratio of each round, and times of scrapes]({plot})"
        yield ""
    yield "## Summary"
    yield ""
    yield from (f"- {finding}" for finding in results.findings())
    yield (
        f"- one set of statistics, {results.statistics_bytes / 1e6:.1f} MB: {results.statistics_ms:.1f} ms "
        "of the polling thread"
    )
    polls = results.rates["poll"]
    micros = median(polls.thread_cpu_with_it) - median(polls.thread_cpu_without)
    yield (
        f"- a call of confluent-kafka's `poll` takes {micros:.2f} µs more of the application's thread: 1 % "
        f"of it at {10_000 / micros:,.0f} messages a second"
    )
    yield ""
    yield from markdown(table(results))
    yield ""


def _draw(path: Path, results: Results) -> bool:
    figure = new_figure(10, 3.6)
    ratios, scrapes = figure.subplots(1, 2)
    for method, rates in results.rates.items():
        ratios.plot(range(1, 1 + len(rates.ratios)), rates.ratios, label=method)
    ratios.axhline(LEAST_RATIO, color="tab:red", linestyle="--", label="limit")
    ratios.set(title="throughput with over without: more is better", xlabel="round")
    ratios.legend(fontsize="small")
    for scrape in results.scrapes:
        label = f"{scrape.series:,} series"
        scrapes.hist(scrape.milliseconds, bins=40, alpha=0.7, label=label)
    scrapes.set(title="time of a scrape: less is better", xlabel="ms", ylabel="scrapes")
    scrapes.legend(fontsize="small")
    save(figure, path)
    return True


REPORT = Report("instrumentation", Results, lambda results: [table(results)], Results.findings, _page, _draw)
