package deploy_test

import (
	"io"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"helm.sh/helm/v4/pkg/action"
	"helm.sh/helm/v4/pkg/chart/common"
	"helm.sh/helm/v4/pkg/chart/common/util"
	"helm.sh/helm/v4/pkg/chart/loader"
	"helm.sh/helm/v4/pkg/engine"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
)

const chart = "../../deploy/helm/postern"

// values are settings of a chart, by their names.
type values = map[string]any

func secret(name string) values { return values{"existingSecret": name} }

// one is a server with the embedded database; several share PostgreSQL and media storage.
func one() values { return values{"trustedProxies": []any{"10.0.0.0/8"}} }

func several() values {
	return values{
		"trustedProxies": []any{"10.0.0.0/8"}, "replicas": 3, "database": secret("db"), "media": secret("media"),
		"mail": secret("mail"), "oidc": secret("oidc"),
		"settings": values{"base-url": "https://postern.example.com", "retention-events": "14d", "oidc-issuer": "https://id.example.com", "oidc-client-id": "postern"},
		"ingress":  values{"enabled": true, "host": "postern.example.com", "className": "nginx", "tlsSecret": "tls"},
		"networkPolicy": values{"enabled": true, "metricsFrom": []any{values{"namespaceSelector": values{
			"matchLabels": values{"kubernetes.io/metadata.name": "monitoring"},
		}}}},
		"podAnnotations": values{"example.com/team": "chat"}, "nodeSelector": values{"disk": "fast"},
		"tolerations": []any{values{"key": "chat", "operator": "Exists"}}, "persistence": values{"storageClassName": "fast"},
		"imagePullSecrets": []any{values{"name": "registry"}},
	}
}

func TestChartIsLinted(t *testing.T) {
	for name, v := range map[string]values{"one": one(), "several": several()} {
		lint := action.NewLint()
		lint.Strict = true // a warning fails, too
		result := lint.Run([]string{chart}, v)
		for _, m := range result.Messages {
			if m.Severity > 1 {
				t.Errorf("%s: %s", name, m)
			}
		}
		for _, err := range result.Errors {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// render returns the objects of the chart, decoded as the API of Kubernetes would: an unknown or mistyped field is an error.
func render(v values) ([]runtime.Object, error) {
	c, err := loader.Load(chart)
	if err != nil {
		return nil, err
	}
	all, err := util.ToRenderValues(c, v, common.ReleaseOptions{Name: "chat", Namespace: "default", IsInstall: true}, nil)
	if err != nil {
		return nil, err
	}
	files, err := engine.Render(c, all)
	if err != nil {
		return nil, err
	}
	var objects []runtime.Object
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if filepath.Ext(name) != ".yaml" {
			continue
		}
		more, err := decode(files[name])
		if err != nil {
			return nil, err
		}
		objects = append(objects, more...)
	}
	return objects, nil
}

func decode(file string) ([]runtime.Object, error) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		appsv1.AddToScheme, corev1.AddToScheme, networkingv1.AddToScheme, policyv1.AddToScheme,
	} {
		if err := add(scheme); err != nil {
			return nil, err
		}
	}
	decoder := serializer.NewCodecFactory(scheme, serializer.EnableStrict).UniversalDeserializer()
	var objects []runtime.Object
	documents := utilyaml.NewDocumentDecoder(io.NopCloser(strings.NewReader(file)))
	for {
		document := make([]byte, 1<<20)
		n, err := documents.Read(document)
		if err == io.EOF {
			return objects, nil
		}
		if err != nil {
			return nil, err
		}
		if strings.TrimSpace(string(document[:n])) == "" {
			continue
		}
		object, _, err := decoder.Decode(document[:n], nil, nil)
		if err != nil {
			return nil, err
		}
		objects = append(objects, object)
	}
}

// must renders the chart and returns the only object of a type.
func must[T runtime.Object](t *testing.T, v values) T {
	t.Helper()
	objects, err := render(v)
	if err != nil {
		t.Fatal(err)
	}
	var found []T
	for _, o := range objects {
		if o, ok := o.(T); ok {
			found = append(found, o)
		}
	}
	if len(found) != 1 {
		t.Fatalf("%d objects of type %T, want 1", len(found), *new(T))
	}
	return found[0]
}

func TestChartRefusesWhatCannotWork(t *testing.T) {
	for name, c := range map[string]struct {
		change values
		want   string
	}{
		"several servers with the embedded database": {values{"replicas": 2}, "needs PostgreSQL"},
		"several servers without media storage":      {values{"replicas": 2, "database": secret("db")}, "media storage"},
		"plain HTTP from everywhere":                 {values{"trustedProxies": []any{}}, "trustedProxies"},
		"an ingress without a host":                  {values{"ingress": values{"enabled": true}}, "ingress.host"},
		"a mistyped value":                           {values{"replica": 2}, "replica"},
		"no secret key":                              {values{"secretKey": secret("")}, "secretKey"},
		"a password among the settings":              {values{"settings": values{"database-url": "postgres://"}}, "database-url"},
		"a setting that a variable overrides":        {values{"settings": values{"addr": ":80"}}, "addr"},
	} {
		v := one()
		maps.Copy(v, c.change)
		if _, err := render(v); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want an error with %q", name, err, c.want)
		}
	}
}

func TestServersHaveNoRights(t *testing.T) {
	pod := must[*appsv1.StatefulSet](t, several()).Spec.Template.Spec
	if p := pod.SecurityContext; !*p.RunAsNonRoot || *p.RunAsUser == 0 || p.SeccompProfile.Type != corev1.SeccompProfileTypeRuntimeDefault {
		t.Errorf("security context of the pod = %v", p)
	}
	c := pod.Containers[0].SecurityContext
	if !*c.ReadOnlyRootFilesystem || *c.AllowPrivilegeEscalation || !slices.Equal(c.Capabilities.Drop, []corev1.Capability{"ALL"}) {
		t.Errorf("security context of the container = %v", c)
	}
	if *pod.AutomountServiceAccountToken || *pod.EnableServiceLinks {
		t.Error("the pod has a service account token or service links")
	}
}

func TestProbesAskTheOperationsPort(t *testing.T) {
	c := must[*appsv1.StatefulSet](t, one()).Spec.Template.Spec.Containers[0]
	ports := map[string]int32{}
	for _, p := range c.Ports {
		ports[p.Name] = p.ContainerPort
	}
	for _, p := range []struct {
		name  string
		probe *corev1.Probe
		path  string
	}{
		{"startup", c.StartupProbe, "/healthz"}, {"liveness", c.LivenessProbe, "/healthz"}, {"readiness", c.ReadinessProbe, "/readyz"},
	} {
		if get := p.probe.HTTPGet; get.Path != p.path || ports[get.Port.StrVal] != 9090 {
			t.Errorf("%s probe = %s at port %s, want %s at the port 9090", p.name, get.Path, get.Port.String(), p.path)
		}
	}
}

func TestServersHaveTimeToStop(t *testing.T) {
	v := one()
	v["shutdownDelaySeconds"] = 30
	pod := must[*appsv1.StatefulSet](t, v).Spec.Template.Spec
	if got, want := *pod.TerminationGracePeriodSeconds, int64(90); got != want {
		t.Errorf("grace period = %d s, want %d", got, want)
	}
	if got := environment(pod.Containers[0])["POSTERN_SHUTDOWN_DELAY"]; got != "30s" {
		t.Errorf("delay = %q, want 30s", got)
	}
}

func TestTheSecretKeyIsMountedFromASecret(t *testing.T) {
	pod := must[*appsv1.StatefulSet](t, one()).Spec.Template.Spec
	path := environment(pod.Containers[0])["POSTERN_SECRET_KEY_FILE"]
	for _, m := range pod.Containers[0].VolumeMounts {
		i := slices.IndexFunc(pod.Volumes, func(v corev1.Volume) bool { return v.Name == m.Name })
		if i < 0 || pod.Volumes[i].Secret == nil {
			continue
		}
		s := pod.Volumes[i].Secret
		if got := m.MountPath + "/" + s.Items[0].Path; got != path || s.SecretName != "postern-key" || !m.ReadOnly {
			t.Errorf("%s has the key of %s, want %s", got, s.SecretName, path)
		}
		return
	}
	t.Error("no Secret is mounted")
}

func TestOnlySeveralServersHaveADisruptionBudget(t *testing.T) {
	if got := must[*policyv1.PodDisruptionBudget](t, several()).Spec.MaxUnavailable.IntValue(); got != 1 {
		t.Errorf("%d servers may be unavailable, want 1", got)
	}
	objects, err := render(one())
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range objects {
		if _, ok := o.(*policyv1.PodDisruptionBudget); ok {
			t.Error("a single server has a disruption budget, so no node can be drained")
		}
	}
}

// environment returns the variables of a container; those that come from a Secret have an example of their value.
func environment(c corev1.Container) map[string]string {
	examples := map[string]string{
		"POSTERN_DATABASE_URL": "postgres://postern@db/postern", "POSTERN_MEDIA_URL": "s3://key:secret@storage.example.com/files",
		"POSTERN_SMTP_URL": "smtps://mail.example.com:465?from=postern@example.com", "POSTERN_OIDC_CLIENT_SECRET": "secret",
	}
	env := map[string]string{}
	for _, v := range c.Env {
		env[v.Name] = v.Value
		if v.ValueFrom != nil {
			env[v.Name] = examples[v.Name]
		}
	}
	return env
}
