{{/* What follows an alert's expression. Takes alerts (the values), rule (its own), page, summary and description. */}}
{{- define "groupwright.alert" -}}
for: {{ .rule.for }}
{{- with .rule.keepFiringFor }}
keep_firing_for: {{ . }}
{{- end }}
labels:
  severity: {{ .rule.severity }}
  {{- with merge (dict) .rule.labels .alerts.labels }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
annotations:
  summary: {{ .summary | quote }}
  description: {{ .description | quote }}
  runbook_url: {{ printf "%s/%s.md" (trimSuffix "/" .alerts.runbookUrl) .page | quote }}
  {{- with .alerts.grafanaUrl }}
  {{- $board := ternary "cluster" "group" (has $.page (list "cluster-group-stuck" "cluster-lag" "cluster-unread-deleted" "offsets-topic-held")) }}
  {{- $board = ternary "services" $board (regexMatch "^(exporter|pipeline)-" $.page) }}
  # Each variable only if the alert has its label.
  dashboard_url: >-
    {{ trimSuffix "/" . }}/d/groupwright-{{ $board }}?from=now-6h
    {{- range $label := list "cluster" "namespace" "group" -}}
    {{ printf "{{ with $labels.%s }}&var-%s={{ . | urlquery }}{{ end }}" $label $label }}
    {{- end }}
  {{- end }}
{{- end -}}

{{/*
How often a group has rebalanced in a window. All members see the same rebalances, so the group's number is that of the
member that saw most. Takes by, window, and `and`: matchers after a comma, or nothing.
*/}}
{{- define "groupwright.rebalances" -}}
max by ({{ .by }}) (sum without (protocol, outcome) (increase(groupwright_rebalances_total{outcome!="failed"{{ .and }}}[{{ .window }}])))
{{- end -}}
