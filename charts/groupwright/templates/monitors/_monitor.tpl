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
      {{- with $values.relabelings }}
      relabelings:
        {{- toYaml . | nindent 8 }}
      {{- end }}
      {{- with $values.metricRelabelings }}
      metricRelabelings:
        {{- toYaml . | nindent 8 }}
      {{- end }}
{{- end -}}
