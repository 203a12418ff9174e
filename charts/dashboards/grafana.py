"""Dashboards as Grafana's JSON, built with Grafana's own models."""
# ruff: noqa: FBT003 - its builders take booleans so

import itertools
import json
import string
from typing import TypeAlias

from grafana_foundation_sdk.builders import (
    common,
    dashboard,
    prometheus,
    stat,
    statetimeline,
    table,
    timeseries,
)
from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.models import common as options
from grafana_foundation_sdk.models import dashboard as models
from grafana_foundation_sdk.models.prometheus import PromQueryFormat

from charts.dashboards.limits import alerts
from charts.dashboards.model import Board, Kind, Panel, Scope, Stacking, expression

_Builder: TypeAlias = stat.Panel | timeseries.Panel | statetimeline.Panel | table.Panel

_SOURCE = models.DataSourceRef(type_val="prometheus", uid="${datasource}")
_TAG = "groupwright"
_BOARDS = {"groupwright-group": "A group at a glance", "groupwright-rebalance": "One rebalance in detail"}


def page(board: Board) -> str:
    """Return a dashboard's JSON."""
    return json.dumps(_dashboard(board).build(), cls=JSONEncoder, indent=1, ensure_ascii=False) + "\n"


def _dashboard(board: Board) -> dashboard.Dashboard:
    built = (
        dashboard.Dashboard(board.title)
        .uid(board.uid)
        .description(board.description)
        .tags([_TAG, "kafka"])
        .timezone("browser")
        .tooltip(models.DashboardCursorSync.CROSSHAIR)
        .time(board.since, "now")
        .refresh("30s")
        .link(
            dashboard.DashboardLink("Groupwright")
            .type(models.DashboardLinkType.DASHBOARDS)
            .tags([_TAG])
            .include_vars(True)
            .keep_time(True)
        )
        .link(_link("Runbooks", "${runbooks}/README.md").type(models.DashboardLinkType.LINK).icon("doc"))
        .annotation(_annotation(board.scope))
    )
    for variable in _variables(board.scope):
        built.with_variable(variable)
    numbers = itertools.count(1)
    for row in board.rows:
        built.with_row(dashboard.Row(row.title).id(next(numbers)))
        for panel in row.panels:
            built.with_panel(_panel(panel, board.scope).id(next(numbers)))
    return built


# --- Variables and annotations ------------------------------------------------------------------------


def _variables(
    scope: Scope,
) -> list[dashboard.DatasourceVariable | dashboard.QueryVariable | dashboard.ConstantVariable]:
    in_cluster = 'cluster=~"$cluster"'
    in_namespace = f'{in_cluster}, namespace=~"$namespace"'
    of_group = f"{in_namespace}, group{_of_group(scope)}"
    group = _query("group", "Group", f"label_values({_known(scope, in_namespace)}, group)")
    clients = _query("client", "Client", f"label_values({_known(scope, of_group)}, client_id)")
    return [
        dashboard.DatasourceVariable("datasource").label("Data source").type("prometheus"),
        _all(_query("cluster", "Cluster", f"label_values({_known(scope)}, cluster)")),
        _all(_query("namespace", "Namespace", f"label_values({_known(scope, in_cluster)}, namespace)")),
        *([] if scope is Scope.SERVICES else [group if scope is Scope.GROUP else _all(group)]),
        *([_all(clients)] if scope in (Scope.GROUP, Scope.FLEET) else []),
        dashboard.ConstantVariable("runbooks").label("Runbooks").value(alerts()["runbookUrl"]),
    ]


def _known(scope: Scope, matchers: str = "") -> str:
    """Return the selector of series whose labels a dashboard's variables offer."""
    match scope:
        case Scope.SERVICES:  # either of the two may not run
            name = '__name__=~"groupwright_(exporter|pipeline)_build_info"'
            return f"{{{name}, {matchers}}}" if matchers else f"{{{name}}}"
        case Scope.CLUSTER:
            name = "groupwright_cluster_group_info"
        case _:
            name = "groupwright_consumer_info"
    return f"{name}{{{matchers}}}" if matchers else name


def _of_group(scope: Scope) -> str:
    return '="$group"' if scope is Scope.GROUP else '=~"$group"'


def _query(name: str, label: str, query: str) -> dashboard.QueryVariable:
    return (
        dashboard.QueryVariable(name)
        .label(label)
        .datasource(_SOURCE)
        .query({"query": query, "refId": name})
        .refresh(models.VariableRefresh.ON_TIME_RANGE_CHANGED)
        .sort(models.VariableSort.ALPHABETICAL_ASC)
    )


def _all(variable: dashboard.QueryVariable) -> dashboard.QueryVariable:
    """A multi-value variable, all by default; `.*` also matches series without the label."""
    everything = models.VariableOption(selected=True, text=["All"], value=["$__all"])
    return variable.multi(True).include_all(True).all_value(".*").current(everything)


def _annotation(scope: Scope) -> dashboard.AnnotationQuery:
    """Annotate changes of the group's generation, or starts; hidden by default for several groups."""
    in_namespace = 'cluster=~"$cluster", namespace=~"$namespace"'
    if scope is Scope.SERVICES:
        name, by = "Starts", "job"
        changed = f"groupwright_pipeline_start_timestamp_seconds{{{in_namespace}}}"
    else:
        name, by = "Rebalances", "group"
        generation = (
            "groupwright_cluster_group_rebalances_total"
            if scope is Scope.CLUSTER
            else "groupwright_generation"
        )
        changed = f"{generation}{{{in_namespace}, group{_of_group(scope)}}}"
    return (
        dashboard.AnnotationQuery()
        .name(name)
        .datasource(_SOURCE)
        .enable(scope in (Scope.GROUP, Scope.SERVICES))
        .icon_color("orange")
        .expr(f"max by (cluster, namespace, {by}) (changes({changed}[$__rate_interval])) > 0")
    )


# --- Panels -------------------------------------------------------------------------------------------


def _panel(panel: Panel, scope: Scope) -> _Builder:
    built: _Builder
    match panel.kind:
        case Kind.STAT:
            built = _stat(panel)
        case Kind.LINES:
            built = _lines(panel)
        case Kind.STATES:
            built = (
                statetimeline.Panel()
                .row_height(0.8)
                .merge_values(True)
                .show_value(options.VisibilityMode.NEVER)
                .legend(common.VizLegendOptions().show_legend(True))
            )
        case Kind.TABLE:
            built = _table(panel)
    built.title(panel.title).description(panel.description).datasource(_SOURCE).unit(panel.unit)
    built.height(panel.height).span(panel.width)
    built.thresholds(_thresholds(panel))
    built.links([_link("Runbook", f"${{runbooks}}/{panel.runbook or 'README'}.md").target_blank(True)])
    if panel.decimals is not None:
        built.decimals(panel.decimals)
    if panel.no_value:
        built.no_value(panel.no_value)
    if panel.values:
        names = {
            f"{value:g}": models.ValueMappingResult(text=text, color=colour, index=index)
            for index, (value, (text, colour)) in enumerate(panel.values.items())
        }
        built.mappings([models.ValueMap(options=names)])
    for letter, query in zip(string.ascii_uppercase, panel.queries, strict=False):
        target = prometheus.Dataquery().expr(expression(query, scope)).ref_id(letter)
        if panel.kind is Kind.TABLE:
            target.instant().format(PromQueryFormat.TABLE)
        else:
            target.range().legend_format(query.legend)
        built.with_target(target)
    return built


def _thresholds(panel: Panel) -> dashboard.ThresholdsConfig:
    steps = [models.Threshold(color=panel.base)]
    steps += [models.Threshold(value=limit.value, color=limit.colour) for limit in panel.limits]
    return dashboard.ThresholdsConfig().mode(models.ThresholdsMode.ABSOLUTE).steps(steps)


def _stat(panel: Panel) -> stat.Panel:
    built = (
        stat.Panel()
        .graph_mode(options.BigValueGraphMode.AREA)
        .color_mode(options.BigValueColorMode.VALUE)
        .reduce_options(common.ReduceDataOptions().calcs(["lastNotNull"]))
    )
    return built.decimals(0) if panel.unit == "percentunit" else built


def _lines(panel: Panel) -> timeseries.Panel:
    built = (
        timeseries.Panel()
        .line_width(1)
        .fill_opacity(10)
        .show_points(options.VisibilityMode.AUTO)
        .legend(common.VizLegendOptions().display_mode(options.LegendDisplayMode.LIST).show_legend(True))
        .tooltip(
            common.VizTooltipOptions()
            .mode(options.TooltipDisplayMode.MULTI)
            .sort(options.SortOrder.DESCENDING)
        )
        .color_scheme(dashboard.FieldColor().mode(models.FieldColorModeId.PALETTE_CLASSIC_BY_NAME))
    )
    if panel.limits:
        style = common.GraphThresholdsStyleConfig().mode(options.GraphThresholdsStyleMode.DASHED)
        built.thresholds_style(style)
    if panel.unit == "percentunit":
        built.min(0)
    if panel.stacking is not Stacking.NONE:
        built.stacking(common.StackingConfig().mode(options.StackingMode.NORMAL)).fill_opacity(60)
    if panel.stacking is Stacking.BARS:
        built.draw_style(options.GraphDrawStyle.BARS)
    return built


def _table(panel: Panel) -> table.Panel:
    letters = string.ascii_uppercase[: len(panel.queries)]
    names = {f"Value #{letter}": query.legend for letter, query in zip(letters, panel.queries, strict=True)}
    if len(panel.queries) == 1:
        names["Value"] = panel.queries[0].legend
    built = (
        table.Panel()
        .with_transformation(models.DataTransformerConfig(id_val="merge", options={}))
        .with_transformation(
            models.DataTransformerConfig(
                id_val="organize", options={"excludeByName": {"Time": True}, "renameByName": names}
            )
        )
        .sort_by([common.TableSortByFieldState().display_name(panel.queries[0].legend).desc(True)])
    )
    for column, unit in panel.units.items():
        built.override_by_name(column, [models.DynamicConfigValue(id_val="unit", value=unit)])
    if panel.limits:
        coloured = models.DynamicConfigValue(id_val="custom.cellOptions", value={"type": "color-text"})
        for query in panel.queries:
            built.override_by_name(query.legend, [coloured])
    if panel.group_links:
        links = [
            {
                "title": title,
                # Other clusters and namespaces may have a group of this name. A label that the row lacks is
                # passed as an empty value, which matches series without the label.
                "url": f"/d/{uid}?var-group=${{__value.raw:percentencode}}"
                "&var-cluster=${__data.fields.cluster:percentencode}"
                "&var-namespace=${__data.fields.namespace:percentencode}"
                "&${datasource:queryparam}&${__url_time_range}",
            }
            for uid, title in _BOARDS.items()
        ]
        built.override_by_name("group", [models.DynamicConfigValue(id_val="links", value=links)])
    return built


def _link(title: str, url: str) -> dashboard.DashboardLink:
    return dashboard.DashboardLink(title).url(url)
