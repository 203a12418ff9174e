{{/* Relabelings of a scraped target: the user's, then the cluster's name. Takes root and, optionally, relabelings. */}}
{{- define "groupwright.relabelings" -}}
{{- $cluster := ternary (list (dict "targetLabel" "cluster" "replacement" .root.Values.cluster)) list (not (empty .root.Values.cluster)) -}}
{{- with concat (default list .relabelings) $cluster -}}
relabelings:
  {{- toYaml . | nindent 2 }}
{{- end -}}
{{- end -}}

{{/* What a PodMonitor and a ServiceMonitor share. Takes root, kind, values, endpoints (its field's name). */}}
{{- define "groupwright.monitor" -}}
{{- $values := .values -}}
apiVersion: monitoring.coreos.com/v1
kind: {{ .kind }}
metadata:
  name: {{ include "groupwright.fullname" .root }}-consumers
  namespace: {{ .root.Release.Namespace }}
  labels:
    {{- include "groupwright.labels" .root | nindent 4 }}
    {{- with $values.additionalLabels }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
spec:
  selector:
    {{- toYaml $values.selector | nindent 4 }}
  namespaceSelector:
    matchNames:
      {{- toYaml (default (list .root.Release.Namespace) $values.namespaces) | nindent 6 }}
  {{ .endpoints }}:
    - port: {{ $values.port }}
      path: {{ $values.path }}
      scheme: {{ $values.scheme }}
      interval: {{ $values.interval }}
      scrapeTimeout: {{ $values.scrapeTimeout }}
      {{- with include "groupwright.relabelings" (dict "root" .root "relabelings" $values.relabelings) }}
      {{- . | nindent 6 }}
      {{- end }}
      {{- with $values.metricRelabelings }}
      metricRelabelings:
        {{- toYaml . | nindent 8 }}
      {{- end }}
{{- end -}}
