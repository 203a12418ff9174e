{{/* What the drivers of the streaming job and of the batch job share. Each takes root, component, values. */}}

{{- define "groupwright.pipeline.runs" -}}
{{- if or .Values.stream.enabled .Values.batch.enabled }}true{{ end -}}
{{- end -}}

{{/* Whether anything of this chart runs at all, or it is only dashboards, alerts and monitors. */}}
{{- define "groupwright.runs" -}}
{{- if or (include "groupwright.pipeline.runs" .) .Values.doctor.enabled .Values.exporter.enabled }}true{{ end -}}
{{- end -}}

{{/* Whether the drivers make executors in pods of their own: one of them runs, and Spark is in that mode. */}}
{{- define "groupwright.pipeline.executors" -}}
{{- if and (include "groupwright.pipeline.runs" .) (eq .Values.pipeline.spark.mode "kubernetes") }}true{{ end -}}
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
{{- fail (printf "pipeline.storage.accessModes is %s, which executors on other nodes cannot mount: with pipeline.spark.mode=kubernetes make it [ReadWriteMany], or set pipeline.storage.enabled=false and let pipeline.settings.tables be a URI" (toJson .Values.pipeline.storage.accessModes)) -}}
{{- end -}}
{{- $tables := .Values.pipeline.settings.tables -}}
{{- if and (not .Values.pipeline.storage.enabled) (hasPrefix "/" $tables) -}}
{{- fail (printf "pipeline.settings.tables is %s, a folder in a read-only container: let it be a URI, such as hdfs://namenode/groupwright, or set pipeline.storage.enabled=true" $tables) -}}
{{- end -}}
{{- range $job := list "stream" "batch" -}}
{{- $settings := merge (dict) (index $.Values $job).settings $.Values.pipeline.settings -}}
{{- if and (index $.Values $job).enabled (eq (default "parquet" $settings.format) "parquet") (regexMatch "^[a-z0-9]+://" $settings.tables) (not (regexMatch "^(hdfs|file)://" $settings.tables)) -}}
{{- fail (printf "the %s job's tables are %s, an object store, where renames are not atomic: set pipeline.settings.format to delta or iceberg" $job $settings.tables) -}}
{{- end -}}
{{- end -}}
{{- if and .Values.stream.enabled .Values.batch.enabled -}}
{{- $stream := merge (dict) .Values.stream.settings .Values.pipeline.settings -}}
{{- $batch := merge (dict) .Values.batch.settings .Values.pipeline.settings -}}
{{- if eq $stream.tables $batch.tables -}}
{{- fail (printf "stream and batch both write the tables %s, and only one job at a time may write: enable one of them, or set stream.settings.tables or batch.settings.tables" $stream.tables) -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{/* The batch job's driver goes where the streaming driver has the volume, if it can be on one node alone. */}}
{{- define "groupwright.pipeline.affinity" -}}
{{- if and (eq .component "batch") .root.Values.stream.enabled (not (include "groupwright.pipeline.shared" .root)) -}}
podAffinity:
  requiredDuringSchedulingIgnoredDuringExecution:
    - topologyKey: kubernetes.io/hostname
      labelSelector:
        matchLabels:
          {{- include "groupwright.selectorLabels" .root | nindent 10 }}
          app.kubernetes.io/component: stream
{{- else -}}
{}
{{- end -}}
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
        {{- include "groupwright.pipeline.args" . | nindent 8 }}
      env:
        - name: HOME
          value: /tmp
        - name: SPARK_CONF_DIR
          value: /etc/groupwright/spark
        - name: SPARK_LOCAL_DIRS
          value: /scratch
        {{- with .root.Values.pod.extraEnv }}
        {{- toYaml . | nindent 8 }}
        {{- end }}
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
        {{- with .root.Values.pipeline.extraEnv }}
        {{- toYaml . | nindent 8 }}
        {{- end }}
      {{- with .root.Values.pipeline.envFromSecrets }}
      envFrom:
        {{- range . }}
        - secretRef:
            name: {{ . }}
        {{- end }}
      {{- end }}
      ports:
        - name: spark-ui
          containerPort: 4040
        {{- if $executors }}
        - name: driver
          containerPort: 7078
        - name: blocks
          containerPort: 7079
        {{- end }}
      volumeMounts:
        - name: tmp
          mountPath: /tmp
        - name: scratch
          mountPath: /scratch
        - name: spark
          mountPath: /etc/groupwright/spark
          readOnly: true
        {{- if .root.Values.pipeline.existingSecret.name }}
        - name: settings
          mountPath: /etc/groupwright/settings
          readOnly: true
        {{- end }}
        {{- if .root.Values.pipeline.storage.enabled }}
        - name: storage
          mountPath: {{ .root.Values.pipeline.storage.mountPath }}
        {{- end }}
        {{- with .root.Values.pod.extraVolumeMounts }}
        {{- toYaml . | nindent 8 }}
        {{- end }}
  volumes:
    - name: tmp
      emptyDir:
        sizeLimit: 256Mi
    - name: scratch
      emptyDir:
        sizeLimit: {{ .root.Values.pipeline.spark.scratchSize }}
    - name: spark
      configMap:
        name: {{ include "groupwright.fullname" .root }}-spark
    {{- with .root.Values.pipeline.existingSecret.name }}
    - name: settings
      secret:
        secretName: {{ . }}
        defaultMode: 0440
    {{- end }}
    {{- if .root.Values.pipeline.storage.enabled }}
    - name: storage
      persistentVolumeClaim:
        claimName: {{ include "groupwright.pipeline.claim" .root }}
    {{- end }}
    {{- with .root.Values.pod.extraVolumes }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
{{- end -}}

{{/* spark-defaults.conf: the chart's settings, then the user's, which win. */}}
{{- define "groupwright.pipeline.sparkDefaults" -}}
{{- $spark := .Values.pipeline.spark -}}
{{- $conf := dict
  "spark.driver.memory" $spark.driverMemory
  "spark.metrics.conf.driver.sink.prometheusServlet.class" "org.apache.spark.metrics.sink.PrometheusServlet"
  "spark.metrics.conf.driver.sink.prometheusServlet.path" "/metrics/prometheus"
  "spark.redaction.regex" "(?i)secret|password|token|access[.]?key|jaas|truststore|keystore|kafka[.]ssl"
  "spark.sql.streaming.metricsEnabled" "true"
  "spark.ui.showConsoleProgress" "false"
-}}
{{- $formats := list -}}
{{- range $job := list "stream" "batch" -}}
{{- if (index $.Values $job).enabled -}}
{{- $formats = append $formats (merge (dict) (index $.Values $job).settings $.Values.pipeline.settings).format -}}
{{- end -}}
{{- end -}}
{{- $extensions := list -}}
{{- if has "delta" $formats -}}
{{- $extensions = append $extensions "io.delta.sql.DeltaSparkSessionExtension" -}}
{{- $_ := set $conf "spark.sql.catalog.spark_catalog" "org.apache.spark.sql.delta.catalog.DeltaCatalog" -}}
{{- end -}}
{{- if has "iceberg" $formats -}}
{{- $extensions = append $extensions "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions" -}}
{{- end -}}
{{- with $extensions -}}
{{- $_ := set $conf "spark.sql.extensions" (join "," .) -}}
{{- end -}}
{{- if eq $spark.mode "local" -}}
{{- $_ := set $conf "spark.master" (printf "local[%v]" $spark.localThreads) -}}
{{- else -}}
{{- $executors := $spark.executors -}}
{{- $conf = merge $conf (dict
  "spark.master" "k8s://https://kubernetes.default.svc"
  "spark.submit.deployMode" "client"
  "spark.kubernetes.namespace" .Release.Namespace
  "spark.kubernetes.container.image" (include "groupwright.image" .)
  "spark.kubernetes.container.image.pullPolicy" .Values.image.pullPolicy
  "spark.kubernetes.executor.podTemplateFile" "/etc/groupwright/spark/executor.yaml"
  "spark.kubernetes.executor.podTemplateContainerName" "executor"
  "spark.kubernetes.executor.disableConfigMap" "true"
  "spark.kubernetes.driver.service.deleteOnTermination" "false"
  "spark.kubernetes.driver.ownPersistentVolumeClaim" "false"
  "spark.kubernetes.driver.reusePersistentVolumeClaim" "false"
  "spark.authenticate" "true"
  "spark.network.crypto.enabled" "true"
  "spark.driver.bindAddress" "0.0.0.0"
  "spark.driver.port" "7078"
  "spark.driver.blockManager.port" "7079"
  "spark.blockManager.port" "7079"
  "spark.executor.instances" $executors.instances
  "spark.executor.cores" $executors.cores
  "spark.executor.memory" $executors.memory
  "spark.kubernetes.executor.limit.cores" $executors.cores
) -}}
{{- end -}}
{{- range $key, $value := merge (dict) $spark.conf $conf }}
{{ $key }} {{ $value }}
{{- end }}
{{- end -}}

{{/* A driver's command line. Settings are pairs; numbers are written in full. */}}
{{- define "groupwright.pipeline.args" -}}
{{- $pipeline := .root.Values.pipeline -}}
- driver
- {{ .component }}
{{- with $pipeline.existingSecret.name }}
- --config=/etc/groupwright/settings/{{ $pipeline.existingSecret.key }}
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
