{{/* What the pods of this chart share. They take root, component, and values (those of the component). */}}

{{- define "groupwright.image" -}}
{{- $image := .Values.image -}}
{{- if $image.digest -}}
{{ $image.repository }}@{{ $image.digest }}
{{- else -}}
{{ $image.repository }}:{{ default .Chart.AppVersion $image.tag }}
{{- end -}}
{{- end -}}

{{- define "groupwright.serviceAccountName" -}}
{{- if .Values.serviceAccount.create -}}
{{ default (include "groupwright.fullname" .) .Values.serviceAccount.name }}
{{- else -}}
{{ default "default" .Values.serviceAccount.name }}
{{- end -}}
{{- end -}}

{{/* Without the versions of chart and app: an upgrade that changes nothing else restarts no driver. */}}
{{- define "groupwright.podLabels" -}}
{{ include "groupwright.selectorLabels" .root }}
app.kubernetes.io/component: {{ .component }}
app.kubernetes.io/part-of: groupwright
{{- with .root.Values.commonLabels }}
{{ toYaml . }}
{{- end }}
{{- with .root.Values.pod.labels }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{/* A pod's fields up to its containers. Takes root and, optionally, token, and affinity in place of the user's. */}}
{{- define "groupwright.pod" -}}
serviceAccountName: {{ include "groupwright.serviceAccountName" .root }}
automountServiceAccountToken: {{ .token | default false }}
enableServiceLinks: false
{{- with .root.Values.image.pullSecrets }}
imagePullSecrets:
  {{- range . }}
  - name: {{ . }}
  {{- end }}
{{- end }}
securityContext:
  {{- toYaml .root.Values.pod.securityContext | nindent 2 }}
{{- with .root.Values.pod.priorityClassName }}
priorityClassName: {{ . }}
{{- end }}
{{- with .root.Values.pod.nodeSelector }}
nodeSelector:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .root.Values.pod.tolerations }}
tolerations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with default .root.Values.pod.affinity .affinity }}
affinity:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .root.Values.pod.initContainers }}
initContainers:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end -}}

{{/* A container's fields up to its arguments. */}}
{{- define "groupwright.container" -}}
image: {{ include "groupwright.image" .root }}
imagePullPolicy: {{ .root.Values.image.pullPolicy }}
securityContext:
  {{- toYaml .root.Values.pod.containerSecurityContext | nindent 2 }}
resources:
  {{- toYaml .values.resources | nindent 2 }}
{{- end -}}
