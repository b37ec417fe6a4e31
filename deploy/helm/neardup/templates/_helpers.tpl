{{- define "neardup.name" -}}
{{ ternary .Release.Name (printf "%s-neardup" .Release.Name) (contains "neardup" .Release.Name) | trunc 40 | trimSuffix "-" }}
{{- end }}

{{/* The labels that select a component's pods. */}}
{{- define "neardup.selector" -}}
app.kubernetes.io/name: neardup
app.kubernetes.io/instance: {{ .root.Release.Name }}
app.kubernetes.io/component: {{ .component }}
{{- end }}

{{- define "neardup.labels" -}}
{{ include "neardup.selector" . }}
app.kubernetes.io/version: {{ .root.Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .root.Release.Service }}
helm.sh/chart: {{ .root.Chart.Name }}-{{ .root.Chart.Version }}
{{- end }}

{{/* Settings as variables of the environment: lists with commas, tables as JSON. */}}
{{- define "neardup.environment" -}}
{{- $prefix := .prefix }}
{{- range $name, $value := .settings }}
{{- $variable := printf "%s%s" $prefix (upper $name) }}
{{- if kindIs "invalid" $value }}
{{- else if and (kindIs "map" $value) (not (has $name (list "common" "consumer" "producer" "options"))) }}
{{- include "neardup.environment" (dict "prefix" (printf "%s__" $variable) "settings" $value) }}
{{- else }}
{{ $variable }}: {{ kindIs "slice" $value | ternary (join "," $value) (kindIs "string" $value | ternary $value (toJson $value)) | quote }}
{{- end }}
{{- end }}
{{- end }}

{{/* What all pods have. */}}
{{- define "neardup.pod" -}}
enableServiceLinks: false
automountServiceAccountToken: false
serviceAccountName: {{ .Values.serviceAccountName }}
securityContext:
  runAsNonRoot: true
  runAsUser: 10001
  runAsGroup: 10001
  fsGroup: 10001
  # The directory of the state is private, and stays so.
  fsGroupChangePolicy: OnRootMismatch
  seccompProfile:
    type: RuntimeDefault
{{- with .Values.image.pullSecrets }}
imagePullSecrets:
  {{- range . }}
  - name: {{ . }}
  {{- end }}
{{- end }}
{{- with .Values.nodeSelector }}
nodeSelector:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.tolerations }}
tolerations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}

{{/* What all containers have. */}}
{{- define "neardup.container" -}}
image: {{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}
imagePullPolicy: {{ .Values.image.pullPolicy }}
securityContext:
  allowPrivilegeEscalation: false
  readOnlyRootFilesystem: true
  capabilities:
    drop: [ALL]
envFrom:
  - configMapRef:
      name: {{ include "neardup.name" . }}
{{- end }}

{{- define "neardup.mounts" -}}
- name: tmp
  mountPath: /tmp
{{- range .Values.files.secrets }}
- name: secret-{{ . }}
  mountPath: /run/secrets/{{ . }}
  readOnly: true
{{- end }}
{{- range .Values.files.configMaps }}
- name: config-{{ . }}
  mountPath: /etc/neardup/{{ . }}
  readOnly: true
{{- end }}
{{- end }}

{{- define "neardup.volumes" -}}
- name: tmp
  emptyDir:
    sizeLimit: 64Mi
{{- range .Values.files.secrets }}
- name: secret-{{ . }}
  secret:
    secretName: {{ . }}
    defaultMode: 0440
{{- end }}
{{- range .Values.files.configMaps }}
- name: config-{{ . }}
  configMap:
    name: {{ . }}
{{- end }}
{{- end }}

{{/* Restores take as long as they take: only readiness waits for them. */}}
{{- define "neardup.probes" -}}
startupProbe:
  httpGet: {path: /healthz, port: http}
  periodSeconds: 2
  timeoutSeconds: 3
  failureThreshold: 60
livenessProbe:
  httpGet: {path: /healthz, port: http}
  periodSeconds: 10
  timeoutSeconds: 5
  failureThreshold: 6
readinessProbe:
  httpGet: {path: /readyz, port: http}
  periodSeconds: 5
  timeoutSeconds: 3
  failureThreshold: 3
{{- end }}

{{/* The worker ends by itself within worker.shutdown_seconds. */}}
{{- define "neardup.grace" -}}
{{ dig "worker" "shutdown_seconds" 20 .Values.settings | ceil | int | add 10 }}
{{- end }}

{{- define "neardup.claim" -}}
accessModes: [ReadWriteOnce]
{{- with .Values.storage.className }}
storageClassName: {{ . }}
{{- end }}
resources:
  requests:
    storage: {{ .Values.storage.size }}
{{- end }}

{{- define "neardup.spread" -}}
{{- range $key := list "topology.kubernetes.io/zone" "kubernetes.io/hostname" }}
- topologyKey: {{ $key }}
  maxSkew: 1
  whenUnsatisfiable: ScheduleAnyway
  labelSelector:
    matchLabels:
      {{- include "neardup.selector" $ | nindent 6 }}
{{- end }}
{{- end }}
