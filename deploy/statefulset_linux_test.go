package deploy

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"

	"github.com/braidlog/braid/internal/testsize"
)

// pods are members as the StatefulSet of kubernetes/braid.yaml runs them, with addresses of loopback for their names.
type pods struct {
	t       *testing.T
	braid   string
	dir     string            // their volumes
	config  map[string]string // the ConfigMap
	args    []string
	env     []struct{ Name, Value string }
	running map[int]*program
}

func newPods(t *testing.T) *pods {
	t.Helper()
	p := &pods{t: t, braid: filepath.Join(release(t), "braid"), dir: t.TempDir(), running: map[int]*program{}}
	text, err := os.ReadFile("kubernetes/braid.yaml")
	require.NoError(t, err)
	for _, document := range bytes.Split(text, []byte("\n---\n")) {
		var o struct {
			Kind string
			Data map[string]string
			Spec struct {
				Template struct {
					Spec struct {
						Containers []struct {
							Args []string
							Env  []struct{ Name, Value string }
						}
					}
				}
			}
		}
		require.NoError(t, yaml.Unmarshal(document, &o))
		switch o.Kind {
		case "ConfigMap":
			p.config = o.Data
		case "StatefulSet":
			p.args, p.env = o.Spec.Template.Spec.Containers[0].Args, o.Spec.Template.Spec.Containers[0].Env
		}
	}
	return p
}

// address returns the address that takes the place of a pod's name.
func address(n int) string { return fmt.Sprintf("127.0.77.%d", n+1) }

// volume is a pod's.
func (p *pods) volume(n int) string { return filepath.Join(p.dir, fmt.Sprint(n)) }

// local replaces names, and the address of all interfaces, by addresses of this machine.
func (p *pods) local(n int, s string) string {
	all := []string{"$(POD_NAME)", fmt.Sprintf("braid-%d", n), "$(POD_NAMESPACE)", "default", ".default.svc", "",
		"0.0.0.0", address(n), "/var/lib/braid", p.volume(n)}
	for before := ""; before != s; s = strings.NewReplacer(all...).Replace(s) {
		before = s
	}
	for i := range 9 {
		s = strings.ReplaceAll(s, fmt.Sprintf("braid-%d.braid-peers", i), address(i))
	}
	return s
}

func (p *pods) start(n int) {
	p.t.Helper()
	env := []string{}
	for name, value := range p.config {
		env = append(env, name+"="+p.local(n, value))
	}
	for _, v := range p.env {
		env = append(env, v.Name+"="+p.local(n, v.Value))
	}
	require.NoError(p.t, os.MkdirAll(p.volume(n), 0o700))
	p.running[n] = begin(p.t, p.dir, env, p.braid, p.args...)
}

func (p *pods) ready(n int) {
	p.t.Helper()
	eventually(p.t, fmt.Sprintf("braid-%d is ready", n), func(ctx context.Context) bool {
		return answers(ctx, "http://"+address(n)+":2381/readyz")
	})
}

// exec runs braid as kubectl exec does in the first pod.
func (p *pods) exec(args ...string) string {
	p.t.Helper()
	return do(p.t, p.dir, p.braid, append(args, "--endpoints", address(0)+":2379")...)
}

// TestStatefulSet: members run with the arguments and variables of the StatefulSet, and one is added and one replaced
// as docs/using/deploy.md, Kubernetes says.
func TestStatefulSet(t *testing.T) {
	testsize.Only(t, testsize.Deploy)
	t.Parallel()
	p := newPods(t)
	for n := range 3 {
		p.start(n)
	}
	for n := range 3 {
		p.ready(n)
	}
	require.Equal(t, "OK", p.exec("ctl", "put", "k", "v"))
	p.config["ETCD_INITIAL_CLUSTER_STATE"] = "existing"

	p.exec("ctl", "member", "add", "braid-3", "--peer-urls", p.local(0, "http://braid-3.braid-peers:2380"))
	p.config["ETCD_INITIAL_CLUSTER"] += ",braid-3=http://braid-3.braid-peers:2380"
	p.start(3)
	p.ready(3)

	p.running[1].stop(t, syscall.SIGKILL)
	require.NoError(t, os.RemoveAll(p.volume(1)))
	p.start(1)
	<-p.running[1].ended
	require.Equal(t, 3, p.running[1].ProcessState.ExitCode(), "its volume was lost")
	p.exec("replace", "braid-1")
	require.NoError(t, os.RemoveAll(p.volume(1)))
	p.start(1)
	p.ready(1)

	for _, n := range []int{2, 3, 0} { // kubectl rollout restart
		p.running[n].stop(t, syscall.SIGTERM)
		require.Zero(t, p.running[n].ProcessState.ExitCode())
		p.start(n)
		p.ready(n)
	}
	for n := range 4 {
		require.Equal(t, "k\nv", do(t, p.dir, p.braid, "ctl", "get", "k", "--endpoints", address(n)+":2379"))
	}
	require.Equal(t, 4, strings.Count(p.exec("ctl", "member", "list"), "started"))
}
