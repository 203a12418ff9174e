{{/* What the drivers of the streaming job and of the batch job share. Each takes root, component, values. */}}

{{- define "groupwright.pipeline.runs" -}}
{{- if or .Values.stream.enabled .Values.batch.enabled }}true{{ end -}}
{{- end -}}

{{/* Whether anything of this chart runs at all, or it is only dashboards, alerts and monitors. */}}
{{- define "groupwright.runs" -}}
{{- if or (include "groupwright.pipeline.runs" .) .Values.doctor.enabled .Values.exporter.enabled }}true{{ end -}}
{{- end -}}

{{/* Whether the drivers make executors in pods of their own: one of them runs, and Spark is not local. */}}
{{- define "groupwright.pipeline.executors" -}}
{{- if and (include "groupwright.pipeline.runs" .) (ne .Values.pipeline.spark.mode "local") }}true{{ end -}}
{{- end -}}

{{/* Whether the Spark operator starts the drivers. */}}
{{- define "groupwright.pipeline.operator" -}}
{{- if and (include "groupwright.pipeline.runs" .) (eq .Values.pipeline.spark.mode "operator") }}true{{ end -}}
{{- end -}}

{{- define "groupwright.pipeline.claim" -}}
{{- default (printf "%s-pipeline" (include "groupwright.fullname" .)) .Values.pipeline.storage.existingClaim -}}
{{- end -}}

{{/* Whether pods on several nodes can mount the volume. */}}
{{- define "groupwright.pipeline.shared" -}}
{{- if or (not .Values.pipeline.storage.enabled) (has "ReadWriteMany" .Values.pipeline.storage.accessModes) }}true{{ end -}}
{{- end -}}

{{/* Refuses what a schema cannot see to be wrong. */}}
{{- define "groupwright.pipeline.check" -}}
{{- if and (include "groupwright.pipeline.executors" .) (not (include "groupwright.pipeline.shared" .)) -}}
{{- fail (printf "pipeline.storage.accessModes is %s, which executors on other nodes cannot mount: with pipeline.spark.mode=%s make it [ReadWriteMany], or set pipeline.storage.enabled=false and let pipeline.settings.tables be a URI" (toJson .Values.pipeline.storage.accessModes) .Values.pipeline.spark.mode) -}}
{{- end -}}
{{- $root := . -}}
{{- $mounts := list -}}
{{- if .Values.pipeline.storage.enabled }}{{ $mounts = append $mounts .Values.pipeline.storage.mountPath }}{{ end -}}
{{- range .Values.pod.extraVolumeMounts }}{{ $mounts = append $mounts .mountPath }}{{ end -}}
{{- range $job := list "stream" "batch" -}}
{{- $values := get $root.Values $job -}}
{{- $tables := get (merge (dict) $values.settings $root.Values.pipeline.settings) "tables" | default "" -}}
{{- if and $values.enabled (hasPrefix "/" $tables) -}}
{{- $mounted := false -}}
{{- range $mounts -}}
{{- if hasPrefix (printf "%s/" (trimSuffix "/" .)) (printf "%s/" $tables) }}{{ $mounted = true }}{{ end -}}
{{- end -}}
{{- if not $mounted -}}
{{- $key := printf "%s.settings.tables" (hasKey $values.settings "tables" | ternary $job "pipeline") -}}
{{- if $root.Values.pipeline.storage.enabled -}}
{{- fail (printf "%s is %s, a folder in a read-only container: let it be below pipeline.storage.mountPath (%s), or a URI, such as hdfs://namenode/groupwright" $key $tables $root.Values.pipeline.storage.mountPath) -}}
{{- else -}}
{{- fail (printf "%s is %s, a folder in a read-only container: let it be a URI, such as hdfs://namenode/groupwright, or set pipeline.storage.enabled=true" $key $tables) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- if and .Values.stream.enabled .Values.batch.enabled -}}
{{- if and .Values.pipeline.storage.enabled (has "ReadWriteOncePod" .Values.pipeline.storage.accessModes) -}}
{{- fail (printf "pipeline.storage.accessModes is %s, which one pod at a time can mount, and the stream's pod never ends: for a stream and a batch make it [ReadWriteOnce] or [ReadWriteMany], or enable one of the jobs" (toJson .Values.pipeline.storage.accessModes)) -}}
{{- end -}}
{{- $stream := merge (dict) .Values.stream.settings .Values.pipeline.settings -}}
{{- $batch := merge (dict) .Values.batch.settings .Values.pipeline.settings -}}
{{- if eq $stream.tables $batch.tables -}}
{{- fail (printf "stream and batch both write the tables %s, and only one job at a time may write: enable one of them, or set stream.settings.tables or batch.settings.tables" $stream.tables) -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{/*
The user's affinity, and for the batch job's driver a term more if the volume can be on one node alone: it goes where the
streaming driver is.
*/}}
{{- define "groupwright.pipeline.affinity" -}}
{{- $affinity := deepCopy .root.Values.pod.affinity -}}
{{- if and (eq .component "batch") .root.Values.stream.enabled (not (include "groupwright.pipeline.shared" .root)) -}}
{{- $labels := include "groupwright.selectorLabels" .root | fromYaml -}}
{{- $_ := set $labels "app.kubernetes.io/component" "stream" -}}
{{- $beside := dict "topologyKey" "kubernetes.io/hostname" "labelSelector" (dict "matchLabels" $labels) -}}
{{- $pods := get $affinity "podAffinity" | default dict -}}
{{- $terms := append (get $pods "requiredDuringSchedulingIgnoredDuringExecution" | default list) $beside -}}
{{- $_ := set $affinity "podAffinity" (set $pods "requiredDuringSchedulingIgnoredDuringExecution" $terms) -}}
{{- end -}}
{{- toYaml $affinity -}}
{{- end -}}

{{/* Variables of the user, for drivers and executors. */}}
{{- define "groupwright.pipeline.env" -}}
- name: HOME
  value: /tmp
{{- with .Values.pod.extraEnv }}
{{ toYaml . }}
{{- end }}
{{- with .Values.pipeline.extraEnv }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{- define "groupwright.pipeline.envFrom" -}}
{{- with .Values.pipeline.envFromSecrets -}}
envFrom:
  {{- range . }}
  - secretRef:
      name: {{ . }}
  {{- end }}
{{- end -}}
{{- end -}}

{{/* Mounts of drivers and executors. */}}
{{- define "groupwright.pipeline.mounts" -}}
- name: tmp
  mountPath: /tmp
{{- if .Values.pipeline.existingSecret.name }}
- name: settings
  mountPath: /etc/groupwright/settings
  readOnly: true
{{- end }}
{{- if .Values.pipeline.storage.enabled }}
- name: storage
  mountPath: {{ .Values.pipeline.storage.mountPath }}
{{- end }}
{{- with .Values.pod.extraVolumeMounts }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{/* Volumes of drivers and executors. */}}
{{- define "groupwright.pipeline.volumes" -}}
- name: tmp
  emptyDir:
    sizeLimit: 256Mi
{{- with .Values.pipeline.existingSecret.name }}
- name: settings
  secret:
    secretName: {{ . }}
    defaultMode: 0440
{{- end }}
{{- if .Values.pipeline.storage.enabled }}
- name: storage
  persistentVolumeClaim:
    claimName: {{ include "groupwright.pipeline.claim" . }}
{{- end }}
{{- with .Values.pod.extraVolumes }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{/*
Ports and probes of a driver. A batch job has neither metrics nor probes: its deadline ends it. With the Spark
operator, Spark adds three ports to the template's without a comparison (BasicDriverFeatureStep): driver-rpc-port,
blockmanager and spark-ui. Kubernetes rejects a container with two ports of one name. Takes root, component.
*/}}
{{- define "groupwright.pipeline.ports" -}}
{{- $operator := include "groupwright.pipeline.operator" .root -}}
{{- if or (eq .component "stream") (not $operator) }}
ports:
  {{- if not $operator }}
  - name: spark-ui
    containerPort: 4040
  {{- end }}
  {{- if eq .component "stream" }}
  - name: metrics
    containerPort: 9096
  {{- end }}
  {{- if and (include "groupwright.pipeline.executors" .root) (not $operator) }}
  - name: driver
    containerPort: 7078
  - name: blocks
    containerPort: 7079
  {{- end }}
{{- end }}
{{- if eq .component "stream" }}
# Until Spark has started and the lease is acquired, nothing listens.
startupProbe:
  httpGet:
    path: /healthy
    port: metrics
  periodSeconds: 10
  timeoutSeconds: 5
  failureThreshold: 60
readinessProbe:
  httpGet:
    path: /ready
    port: metrics
  periodSeconds: 10
  timeoutSeconds: 5
livenessProbe:
  httpGet:
    path: /healthy
    port: metrics
  periodSeconds: 30
  timeoutSeconds: 10
{{- end }}
{{- end -}}

{{/* The pod of a driver: metadata and spec, but for the restart policy. */}}
{{- define "groupwright.pipeline.driver" -}}
metadata:
  labels:
    {{- include "groupwright.podLabels" . | nindent 4 }}
  annotations:
    # A change of Spark's settings restarts the driver.
    checksum/spark: {{ include "groupwright.pipeline.sparkDefaults" .root | sha256sum }}
    {{- with .root.Values.pod.annotations }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
spec:
  {{- $executors := include "groupwright.pipeline.executors" .root }}
  {{- include "groupwright.pipeline.check" .root }}
  {{- $affinity := include "groupwright.pipeline.affinity" . | fromYaml }}
  {{- include "groupwright.pod" (dict "root" .root "token" (not (empty $executors)) "affinity" $affinity) | nindent 2 }}
  restartPolicy: {{ .restartPolicy }}
  terminationGracePeriodSeconds: {{ .values.terminationGracePeriodSeconds }}
  containers:
    - name: driver
      {{- include "groupwright.container" . | nindent 6 }}
      args:
        - driver
        {{- include "groupwright.pipeline.args" . | nindent 8 }}
      env:
        - name: SPARK_CONF_DIR
          value: /etc/groupwright/spark
        - name: SPARK_LOCAL_DIRS
          value: /scratch
        {{- if $executors }}
        - name: POD_NAME
          valueFrom:
            fieldRef:
              fieldPath: metadata.name
        - name: POD_IP
          valueFrom:
            fieldRef:
              fieldPath: status.podIP
        # Executors reach the driver by its address, and end with its pod, which owns theirs.
        - name: PYSPARK_SUBMIT_ARGS
          value: >-
            --conf spark.driver.host=$(POD_IP)
            --conf spark.kubernetes.driver.pod.name=$(POD_NAME)
            pyspark-shell
        {{- end }}
        {{- include "groupwright.pipeline.env" .root | nindent 8 }}
      {{- with include "groupwright.pipeline.envFrom" .root }}
      {{- . | nindent 6 }}
      {{- end }}
      {{- include "groupwright.pipeline.ports" . | trim | nindent 6 }}
      volumeMounts:
        - name: scratch
          mountPath: /scratch
        - name: spark
          mountPath: /etc/groupwright/spark
          readOnly: true
        {{- include "groupwright.pipeline.mounts" .root | nindent 8 }}
  volumes:
    - name: scratch
      emptyDir:
        sizeLimit: {{ .root.Values.pipeline.spark.scratchSize }}
    - name: spark
      configMap:
        name: {{ include "groupwright.fullname" .root }}-spark
    {{- include "groupwright.pipeline.volumes" .root | nindent 4 }}
{{- end -}}

{{/* The pod of an executor, which Spark completes. Takes root and name (the container's). */}}
{{- define "groupwright.pipeline.executor" -}}
metadata:
  labels:
    {{- include "groupwright.podLabels" (dict "root" .root "component" "executor") | nindent 4 }}
  {{- with .root.Values.pod.annotations }}
  annotations:
    {{- toYaml . | nindent 4 }}
  {{- end }}
spec:
  {{- include "groupwright.pod" (dict "root" .root) | nindent 2 }}
  containers:
    - name: {{ .name }}
      securityContext:
        {{- toYaml .root.Values.pod.containerSecurityContext | nindent 8 }}
      env:
        {{- include "groupwright.pipeline.env" .root | nindent 8 }}
      {{- with include "groupwright.pipeline.envFrom" .root }}
      {{- . | nindent 6 }}
      {{- end }}
      volumeMounts:
        {{- include "groupwright.pipeline.mounts" .root | nindent 8 }}
  volumes:
    {{- include "groupwright.pipeline.volumes" .root | nindent 4 }}
{{- end -}}

{{/* What the Spark operator submits: a SparkApplication's spec, but for the restart policy. Takes root, component, values. */}}
{{- define "groupwright.pipeline.application" -}}
{{- include "groupwright.pipeline.check" .root -}}
{{- $spark := .root.Values.pipeline.spark -}}
type: Python
mode: cluster
pythonVersion: "3"
sparkVersion: 4.0.0
image: {{ include "groupwright.image" .root }}
imagePullPolicy: {{ .root.Values.image.pullPolicy }}
{{- with .root.Values.image.pullSecrets }}
imagePullSecrets:
  {{- toYaml . | nindent 2 }}
{{- end }}
mainApplicationFile: local:///opt/groupwright/main.py
arguments:
  {{- include "groupwright.pipeline.args" . | nindent 2 }}
sparkConf:
  {{- include "groupwright.pipeline.sparkSettings" .root | nindent 2 }}
driver:
  memory: {{ $spark.driverMemory }}
  {{- with .values.resources.requests }}{{ with .cpu }}
  coreRequest: {{ . | quote }}
  {{- end }}{{ end }}
  {{- with .values.resources.limits }}{{ with .cpu }}
  coreLimit: {{ . | quote }}
  {{- end }}{{ end }}
  serviceAccount: {{ include "groupwright.serviceAccountName" .root }}
  template:
    metadata:
      labels:
        {{- include "groupwright.podLabels" . | nindent 8 }}
      {{- with .root.Values.pod.annotations }}
      annotations:
        {{- toYaml . | nindent 8 }}
      {{- end }}
    spec:
      {{- include "groupwright.pod" (dict "root" .root "token" true) | nindent 6 }}
      terminationGracePeriodSeconds: {{ .values.terminationGracePeriodSeconds }}
      {{- with .values.activeDeadlineSeconds }}
      activeDeadlineSeconds: {{ toJson . }}
      {{- end }}
      containers:
        - name: spark-kubernetes-driver
          securityContext:
            {{- toYaml .root.Values.pod.containerSecurityContext | nindent 12 }}
          env:
            {{- include "groupwright.pipeline.env" .root | nindent 12 }}
          {{- with include "groupwright.pipeline.envFrom" .root }}
          {{- . | nindent 10 }}
          {{- end }}
          {{- with include "groupwright.pipeline.ports" . | trim }}
          {{- . | nindent 10 }}
          {{- end }}
          volumeMounts:
            {{- include "groupwright.pipeline.mounts" .root | nindent 12 }}
      volumes:
        {{- include "groupwright.pipeline.volumes" .root | nindent 8 }}
executor:
  instances: {{ $spark.executors.instances }}
  cores: {{ $spark.executors.cores }}
  memory: {{ $spark.executors.memory }}
  template:
    {{- include "groupwright.pipeline.executor" (dict "root" .root "name" "spark-kubernetes-executor") | nindent 4 }}
{{- end -}}

{{/* Spark's settings as YAML, all of them text: the chart's, then the user's, which win. */}}
{{- define "groupwright.pipeline.sparkSettings" -}}
{{- $spark := .Values.pipeline.spark -}}
{{- $conf := dict
  "spark.driver.memory" $spark.driverMemory
  "spark.metrics.conf.driver.sink.prometheusServlet.class" "org.apache.spark.metrics.sink.PrometheusServlet"
  "spark.metrics.conf.driver.sink.prometheusServlet.path" "/metrics/prometheus"
  "spark.redaction.regex" "(?i)secret|password|token|access[.]?key|jaas|truststore|keystore|kafka[.]ssl"
  "spark.sql.streaming.metricsEnabled" "true"
  "spark.ui.showConsoleProgress" "false"
-}}
{{- if eq $spark.mode "local" -}}
{{- $_ := set $conf "spark.master" (printf "local[%v]" $spark.localThreads) -}}
{{- else -}}
{{- $conf = merge $conf (dict
  "spark.kubernetes.executor.disableConfigMap" "true"
  "spark.kubernetes.driver.service.deleteOnTermination" "false"
  "spark.kubernetes.driver.ownPersistentVolumeClaim" "false"
  "spark.kubernetes.driver.reusePersistentVolumeClaim" "false"
  "spark.authenticate" "true"
  "spark.network.crypto.enabled" "true"
  "spark.driver.port" "7078"
  "spark.driver.blockManager.port" "7079"
  "spark.blockManager.port" "7079"
  "spark.kubernetes.executor.limit.cores" $spark.executors.cores
) -}}
{{- end -}}
{{- if eq $spark.mode "kubernetes" -}}
{{- $conf = merge $conf (dict
  "spark.master" "k8s://https://kubernetes.default.svc"
  "spark.submit.deployMode" "client"
  "spark.kubernetes.namespace" .Release.Namespace
  "spark.kubernetes.container.image" (include "groupwright.image" .)
  "spark.kubernetes.container.image.pullPolicy" .Values.image.pullPolicy
  "spark.kubernetes.executor.podTemplateFile" "/etc/groupwright/spark/executor.yaml"
  "spark.kubernetes.executor.podTemplateContainerName" "executor"
  "spark.driver.bindAddress" "0.0.0.0"
  "spark.executor.instances" $spark.executors.instances
  "spark.executor.cores" $spark.executors.cores
  "spark.executor.memory" $spark.executors.memory
) -}}
{{- end -}}
{{- if eq $spark.mode "operator" -}}
{{- $_ := unset $conf "spark.driver.memory" -}}
{{- range $role := list "driver" "executor" -}}
{{- $volume := printf "spark.kubernetes.%s.volumes.emptyDir.spark-local-dir-1" $role -}}
{{- $_ := set $conf (printf "%s.mount.path" $volume) "/scratch" -}}
{{- $_ := set $conf (printf "%s.options.sizeLimit" $volume) $spark.scratchSize -}}
{{- end -}}
{{- end -}}
{{- $texts := dict -}}
{{- range $key, $value := merge (dict) $spark.conf $conf -}}
{{- $_ := set $texts $key (kindIs "string" $value | ternary $value (toJson $value)) -}}
{{- end -}}
{{- toYaml $texts -}}
{{- end -}}

{{/* spark-defaults.conf. */}}
{{- define "groupwright.pipeline.sparkDefaults" -}}
{{- range $key, $value := include "groupwright.pipeline.sparkSettings" . | fromYaml }}
{{ $key }} {{ $value }}
{{- end }}
{{- end -}}

{{/* A driver's command line. Settings are pairs; numbers are written in full. */}}
{{- define "groupwright.pipeline.args" -}}
{{- $pipeline := .root.Values.pipeline -}}
- {{ .component }}
{{- with $pipeline.existingSecret.name }}
- --config=/etc/groupwright/settings/{{ $pipeline.existingSecret.key }}
{{- end }}
{{- if eq .component "stream" }}
{{- $address := .root.Values.pod.listenAddress }}
- {{ printf "metrics_address=%s:9096" (contains ":" $address | ternary (printf "[%s]" $address) $address) | quote }}
{{- end }}
{{- range $key, $value := merge (dict) .values.settings $pipeline.settings }}
{{- if ne (toString $value) "" }}
- {{ printf "%s=%s" $key (kindIs "string" $value | ternary $value (toJson $value)) | quote }}
{{- end }}
{{- end }}
{{- range $key, $value := $pipeline.kafka }}
- {{ printf "kafka.%s=%s" $key (kindIs "string" $value | ternary $value (toJson $value)) | quote }}
{{- end }}
{{- end -}}
