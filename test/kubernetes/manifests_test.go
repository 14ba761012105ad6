package main

import (
	"bytes"
	"crypto/tls"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/kubernetes/scheme"
	strict "sigs.k8s.io/yaml"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// With the address and token that ./apiserver --serve prints, a kube-apiserver validates and stores the manifests, too.
var (
	apiserver = flag.String("apiserver", "", "URL of a kube-apiserver that validates and stores the manifests, too")
	token     = flag.String("token", "", "token of its administrator")
)

// manifests are the documents of deploy/kubernetes, as they are and decoded. Fields that Kubernetes does not know are
// errors.
func manifests(t *testing.T) (texts [][]byte, objects []any) {
	t.Helper()
	file, err := os.Open("../../deploy/kubernetes/braid.yaml")
	require.NoError(t, err)
	defer file.Close()
	for documents := yaml.NewDocumentDecoder(file); ; {
		text := make([]byte, 1<<20)
		n, err := documents.Read(text)
		if errors.Is(err, io.EOF) {
			return texts, objects
		}
		require.NoError(t, err)
		text = bytes.Clone(text[:n])
		var kind metav1.TypeMeta
		require.NoError(t, strict.Unmarshal(text, &kind))
		object, err := scheme.Scheme.New(schema.FromAPIVersionAndKind(kind.APIVersion, kind.Kind))
		require.NoError(t, err)
		require.NoError(t, strict.UnmarshalStrict(text, object), kind.Kind)
		texts, objects = append(texts, text), append(objects, object)
	}
}

// TestManifests: references from one manifest to another are right.
func TestManifests(t *testing.T) {
	texts, objects := manifests(t)
	var services []*corev1.Service
	var set *appsv1.StatefulSet
	var budget *policyv1.PodDisruptionBudget
	var settings *corev1.ConfigMap
	for _, o := range objects {
		switch o := o.(type) {
		case *corev1.Service:
			services = append(services, o)
		case *appsv1.StatefulSet:
			set = o
		case *policyv1.PodDisruptionBudget:
			budget = o
		case *corev1.ConfigMap:
			settings = o
		}
	}
	pod := labels.Set(set.Spec.Template.Labels)
	container := &set.Spec.Template.Spec.Containers[0]
	for _, selector := range []*metav1.LabelSelector{set.Spec.Selector, budget.Spec.Selector} {
		s, err := metav1.LabelSelectorAsSelector(selector)
		require.NoError(t, err)
		require.True(t, s.Matches(pod))
	}
	for _, s := range services {
		require.True(t, labels.SelectorFromSet(s.Spec.Selector).Matches(pod), s.Name)
		for _, p := range s.Spec.Ports {
			require.True(t, hasPort(container, p.TargetPort.StrVal), "%s: %s", s.Name, p.Name)
		}
	}
	i := slices.IndexFunc(services, func(s *corev1.Service) bool { return s.Name == set.Spec.ServiceName })
	require.True(t, services[i].Spec.PublishNotReadyAddresses)
	require.Equal(t, settings.Name, container.EnvFrom[0].ConfigMapRef.Name)
	require.Equal(t, set.Spec.VolumeClaimTemplates[0].Name, container.VolumeMounts[0].Name)
	for _, p := range []*corev1.Probe{container.StartupProbe, container.ReadinessProbe, container.LivenessProbe} {
		require.True(t, hasPort(container, p.HTTPGet.Port.StrVal))
	}
	var founders []string
	for n := range int(*set.Spec.Replicas) {
		name := fmt.Sprintf("%s-%d", set.Name, n)
		founders = append(founders, fmt.Sprintf("%s=http://%s.%s:2380", name, name, set.Spec.ServiceName))
	}
	require.Equal(t, strings.Join(founders, ","), settings.Data["ETCD_INITIAL_CLUSTER"])
	if *apiserver != "" {
		create(t, texts, objects)
	}
}

func hasPort(c *corev1.Container, name string) bool {
	return slices.ContainsFunc(c.Ports, func(p corev1.ContainerPort) bool { return p.Name == name })
}

// create sends the manifests to a kube-apiserver, which validates and stores them.
func create(t *testing.T, texts [][]byte, objects []any) {
	t.Helper()
	client := http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}
	for i, o := range objects {
		url := *apiserver
		switch o.(type) {
		case *corev1.Service:
			url += "/api/v1/namespaces/default/services"
		case *corev1.ConfigMap:
			url += "/api/v1/namespaces/default/configmaps"
		case *policyv1.PodDisruptionBudget:
			url += "/apis/policy/v1/namespaces/default/poddisruptionbudgets"
		case *appsv1.StatefulSet:
			url += "/apis/apps/v1/namespaces/default/statefulsets"
		}
		request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url+"?fieldValidation=Strict",
			bytes.NewReader(texts[i]))
		require.NoError(t, err)
		request.Header.Set("Content-Type", "application/yaml")
		request.Header.Set("Authorization", "Bearer "+*token)
		response, err := client.Do(request)
		require.NoError(t, err)
		answer, err := io.ReadAll(response.Body)
		require.NoError(t, err)
		require.NoError(t, response.Body.Close())
		require.Equal(t, http.StatusCreated, response.StatusCode, "%s: %s", url, answer)
		require.Empty(t, response.Header.Values("Warning"))
	}
}
