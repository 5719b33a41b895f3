{{- define "postern.name" -}}
{{- if contains .Chart.Name .Release.Name }}{{ .Release.Name }}{{ else }}{{ .Release.Name }}-{{ .Chart.Name }}{{ end }}
{{- end }}

{{- define "postern.selector" -}}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "postern.labels" -}}
{{ include "postern.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ .Chart.Name }}-{{ .Chart.Version }}
{{- end }}

{{- /* The variables that come from Secrets. */}}
{{- define "postern.secrets" -}}
{{- $from := dict "POSTERN_DATABASE_URL" .Values.database "POSTERN_MEDIA_URL" .Values.media "POSTERN_SMTP_URL" .Values.mail "POSTERN_OIDC_CLIENT_SECRET" .Values.oidc }}
{{- range $name, $secret := $from }}
{{- if $secret.existingSecret }}
- name: {{ $name }}
  valueFrom:
    secretKeyRef:
      name: {{ $secret.existingSecret }}
      key: {{ $secret.key }}
{{- end }}
{{- end }}
{{- end }}
