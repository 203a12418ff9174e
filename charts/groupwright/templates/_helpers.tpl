{{/* The chart's name, as a label. */}}
{{- define "groupwright.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 63 | trimSuffix "-" -}}
{{- end -}}

{{/* What names begin with. 40 characters at most: a CronJob's name has 52, and suffixes follow. */}}
{{- define "groupwright.fullname" -}}
{{- $name := default .Chart.Name .Values.nameOverride -}}
{{- $whole := ternary .Release.Name (printf "%s-%s" .Release.Name $name) (contains $name .Release.Name) -}}
{{- default $whole .Values.fullnameOverride | trunc 40 | trimSuffix "-" -}}
{{- end -}}

{{- define "groupwright.chart" -}}
{{- printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" | trunc 63 | trimSuffix "-" -}}
{{- end -}}

{{/* What selects this release's pods; never changes in a release's life. */}}
{{- define "groupwright.selectorLabels" -}}
app.kubernetes.io/name: {{ include "groupwright.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{/* The labels of everything. */}}
{{- define "groupwright.labels" -}}
helm.sh/chart: {{ include "groupwright.chart" . }}
{{ include "groupwright.selectorLabels" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
app.kubernetes.io/part-of: groupwright
{{- with .Values.commonLabels }}
{{ toYaml . }}
{{- end }}
{{- end -}}
