"""`python -m benchmarks.redraw [NAME…]`: makes the pages of docs/benchmarks again, from the kept numbers."""

import sys

from benchmarks.assignors import report as assignors
from benchmarks.consumer import report as consumer
from benchmarks.cost import exporter_report, instrumentation_report
from benchmarks.load import report as load
from benchmarks.pipeline import report as pipeline
from benchmarks.shell import KEPT

_MODULES = (assignors, consumer, exporter_report, instrumentation_report, load, pipeline)
_REPORTS = {module.REPORT.name: module.REPORT for module in _MODULES}

for name in sys.argv[1:] or _REPORTS:
    report = _REPORTS[name]
    for path in report.keep(KEPT, report.kept(KEPT)):
        sys.stdout.write(f"{path}\n")
