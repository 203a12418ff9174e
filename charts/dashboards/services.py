"""Dashboard of what the chart runs: the pipeline's streaming job and `groupwright exporter`."""

from charts.dashboards.limits import SOME, limit
from charts.dashboards.model import Board, Kind, Limit, Panel, Query, Row, Scope

_BEHIND = limit("pipelineBehind", "seconds")
_STOPPED = limit("pipelineStopped", "seconds")
_AGE = limit("exporterFailing", "seconds")
_SLOW = limit("exporterSlow", "seconds")


def _stat(title: str, description: str, expr: str, unit: str = "short", **more: object) -> Panel:
    return Panel(title, description, unit, (Query(expr),), Kind.STAT, width=4, height=4, **more)  # type: ignore[arg-type] # passed on


_NOW = Row(
    "Now",
    (
        _stat(
            "Streaming jobs",
            "Jobs that are scraped.",
            "count(groupwright_pipeline_build_info{@namespace}) or vector(0)",
            runbook="pipeline-stopped",
        ),
        _stat(
            "Behind the cluster",
            "Time since which records may not be in the tables, of the job that is behind most.",
            "max(groupwright_pipeline_behind_seconds{@namespace})",
            "s",
            limits=(_BEHIND,),
            runbook="pipeline-behind",
        ),
        _stat(
            "Since the last progress",
            "Since a batch ended or nothing was left to read, of the job that waits longest.",
            "time() - min(groupwright_pipeline_last_progress_timestamp_seconds{@namespace} > 0)",
            "s",
            limits=(_STOPPED,),
            runbook="pipeline-stopped",
        ),
        _stat(
            "Exporters",
            "Exporters that are scraped.",
            "count(groupwright_exporter_build_info{@namespace}) or vector(0)",
            runbook="exporter-absent",
        ),
        _stat(
            "Since the last refresh",
            "Of the exporter that shows the oldest values.",
            "time() - min(groupwright_exporter_last_refresh_timestamp_seconds{@namespace} > 0)",
            "s",
            limits=(_AGE,),
            runbook="exporter-failing",
        ),
        _stat(
            "Duration of a refresh",
            "The last one, of the slowest exporter.",
            "max(groupwright_exporter_last_refresh_duration_seconds{@namespace})",
            "s",
            limits=(_SLOW,),
            runbook="exporter-slow",
        ),
    ),
)

_PIPELINE = Row(
    "The pipeline's streaming jobs",
    (
        Panel(
            "Delay",
            "Time since which records may not be in the tables.",
            "s",
            (Query("max by (@target, job) (groupwright_pipeline_behind_seconds{@namespace})", "{{job}}"),),
            limits=(_BEHIND,),
            runbook="pipeline-behind",
        ),
        Panel(
            "Records that are not read",
            "Behind the ends of the logs; and behind open transactions, which must end first.",
            "short",
            (
                Query(
                    "sum by (@target, job) (groupwright_pipeline_behind_records{@namespace})",
                    "{{job}} not read",
                ),
                Query(
                    "sum by (@target, job) (groupwright_pipeline_held_records{@namespace})",
                    "{{job}} in transactions",
                ),
            ),
            runbook="pipeline-behind",
        ),
        Panel(
            "Records read",
            "Records per second, by kind.",
            "ops",
            (
                Query(
                    "sum by (@target, kind) (rate("
                    "groupwright_pipeline_records_total{@namespace}[$__rate_interval]))",
                    "{{kind}}",
                ),
            ),
            runbook="pipeline-behind",
        ),
        Panel(
            "Batches",
            "Share of five minutes in which a batch ran. At 100 % the job cannot read faster.",
            "percentunit",
            (
                Query(
                    "max by (@target, job) "
                    "(rate(groupwright_pipeline_task_seconds_total{@namespace, "
                    'task="batch"}[5m]))',
                    "{{job}}",
                ),
            ),
            limits=(Limit(0.8, "orange"),),
            runbook="pipeline-behind",
        ),
        Panel(
            "Duration of tasks",
            "The last run of each: a batch, derived tables, samples of log-end offsets, compaction.",
            "s",
            (
                Query(
                    "max by (@target, job, task) ("
                    "groupwright_pipeline_task_last_duration_seconds{@namespace})",
                    "{{job}} {{task}}",
                ),
            ),
            runbook="pipeline-behind",
        ),
        Panel(
            "Since the last run of a task",
            "Derived tables and compactions have their own intervals, and need nothing if nothing is new.",
            "s",
            (
                Query(
                    "time() - max by (@target, job, task) "
                    "(groupwright_pipeline_task_last_end_timestamp_seconds{@namespace} > 0)",
                    "{{job}} {{task}}",
                ),
            ),
            runbook="pipeline-stopped",
        ),
        Panel(
            "Quarantine",
            "Records in one hour that could not be decoded, or are of an unknown kind.",
            "short",
            (
                Query(
                    "sum by (@target, job) (increase("
                    "groupwright_pipeline_quarantined_records_total{@namespace}[1h]))",
                    "{{job}}",
                ),
            ),
            limits=SOME,
            runbook="pipeline-quarantining",
        ),
        Panel(
            "Losses",
            "Losses of unread records after which a job went on, by what happened to the topic.",
            "short",
            (
                Query(
                    "sum by (@target, job, kind) (groupwright_pipeline_losses_total{@namespace})",
                    "{{job}} {{kind}}",
                ),
            ),
            limits=SOME,
            runbook="pipeline-data-loss",
        ),
        Panel(
            "Leases",
            "1 while the job may write its tables.",
            "short",
            (Query("min by (@target, job) (groupwright_pipeline_lease_held{@namespace})", "{{job}}"),),
            limits=(Limit(1, "green"),),
            base="red",
            runbook="pipeline-lease-lost",
        ),
        Panel(
            "Runs of tasks",
            "Successful runs per second. A task that fails ends the job.",
            "ops",
            (
                Query(
                    "sum by (@target, job, task) "
                    "(rate(groupwright_pipeline_task_runs_total{@namespace}[$__rate_interval]))",
                    "{{job}} {{task}}",
                ),
            ),
            runbook="pipeline-stopped",
        ),
        Panel(
            "Starts",
            "Starts of a job in one hour, after the first. Many in a row: it ends with an error each time.",
            "short",
            (
                Query(
                    "sum by (@target, job) (changes("
                    "groupwright_pipeline_start_timestamp_seconds{@namespace}[1h]))",
                    "{{job}}",
                ),
            ),
            limits=SOME,
            runbook="pipeline-stopped",
        ),
        Panel(
            "What runs",
            "Streaming jobs by version and format of their tables.",
            "short",
            (Query("count by (version, format) (groupwright_pipeline_build_info{@namespace})", "Jobs"),),
            Kind.TABLE,
            runbook="pipeline-stopped",
        ),
    ),
)

_EXPORTER = Row(
    "The exporters",
    (
        Panel(
            "Refreshes",
            "Refreshes in five minutes, by outcome.",
            "short",
            (
                Query(
                    "sum by (@target, job, outcome) (increase("
                    "groupwright_exporter_refreshes_total{@namespace}[5m]))",
                    "{{job}} {{outcome}}",
                ),
            ),
            runbook="exporter-failing",
        ),
        Panel(
            "Duration of refreshes",
            "The last one.",
            "s",
            (
                Query(
                    "max by (@target, job) (groupwright_exporter_last_refresh_duration_seconds{@namespace})",
                    "{{job}}",
                ),
            ),
            limits=(_SLOW,),
            runbook="exporter-slow",
        ),
        Panel(
            "Age of the values",
            "Time since the last successful refresh.",
            "s",
            (
                Query(
                    "time() - min by (@target, job) ("
                    "groupwright_exporter_last_refresh_timestamp_seconds{@namespace} > 0)",
                    "{{job}}",
                ),
            ),
            limits=(_AGE,),
            runbook="exporter-failing",
        ),
        Panel(
            "Series",
            "On the page of an exporter, and left out.",
            "short",
            (
                Query("sum by (@target, job) (groupwright_exporter_series{@namespace})", "{{job}}"),
                Query(
                    "sum by (@target, job) (groupwright_exporter_series_left_out{@namespace})",
                    "{{job}} left out",
                ),
            ),
            runbook="exporter-slow",
        ),
        Panel(
            "Brokers without an answer",
            "In the last refresh: groups may be missing.",
            "short",
            (Query("sum by (@target, job) (groupwright_exporter_silent_brokers{@namespace})", "{{job}}"),),
            limits=SOME,
            runbook="exporter-slow",
        ),
        Panel(
            "Which exporters run",
            "By version and source of the committed offsets.",
            "short",
            (Query("count by (version, source) (groupwright_exporter_build_info{@namespace})", "Exporters"),),
            Kind.TABLE,
            runbook="exporter-absent",
        ),
    ),
)

BOARD = Board(
    "groupwright-services",
    "Groupwright / The pipeline and the exporter",
    "The pipeline's streaming job and groupwright exporter themselves: whether "
    "they run, and how old their data is.",
    Scope.SERVICES,
    (_NOW, _PIPELINE, _EXPORTER),
)
