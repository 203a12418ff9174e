"""`python -m benchmarks.redraw [NAME…]`: makes the pages of docs/benchmarks again, from the kept numbers."""

import sys
from pathlib import Path

import benchmarks.assignors.report
import benchmarks.consumer.report
import benchmarks.instrumentation.report
import benchmarks.load.report
import benchmarks.pipeline.report
from benchmarks.layout import read_results

_PAGES = Path(__file__).parents[1] / "docs" / "benchmarks"
_REPORTS = {
    "assignors": benchmarks.assignors.report,
    "consumer": benchmarks.consumer.report,
    "instrumentation": benchmarks.instrumentation.report,
    "load": benchmarks.load.report,
    "pipeline": benchmarks.pipeline.report,
}
for name in sys.argv[1:] or _REPORTS:
    report = _REPORTS[name]
    for path in report.keep(_PAGES, read_results(_PAGES / f"{name}.json", report.Results)):
        sys.stdout.write(f"{path}\n")
