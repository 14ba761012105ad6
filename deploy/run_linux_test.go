package deploy

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/braidlog/braid/internal/ports"
)

// limit bounds each command, and each wait for a condition.
const limit = 2 * time.Minute

// built is the folder for the release.
var built string

func TestMain(m *testing.M) {
	var err error
	if built, err = os.MkdirTemp("", "braid-deploy-"); err != nil {
		panic(err)
	}
	code := m.Run()
	if err := os.RemoveAll(built); err != nil {
		panic(err)
	}
	os.Exit(code)
}

// unpacked is a release of this source for this machine, as its users unpack it.
var unpacked = sync.OnceValues(func() (string, error) {
	for _, command := range [][]string{
		{"go", "run", "../internal/release", "--out", built, "--platforms", "linux/" + runtime.GOARCH},
		{"sh", "-c", "cd " + built + " && sha256sum -c SHA256SUMS && tar xzf *.tar.gz && rm *.tar.gz"},
	} {
		if out, err := exec.Command(command[0], command[1:]...).CombinedOutput(); err != nil {
			return "", fmt.Errorf("%v: %w: %s", command, err, out)
		}
	}
	found, err := filepath.Glob(filepath.Join(built, "braid-*-linux-"+runtime.GOARCH))
	if err != nil || len(found) != 1 {
		return "", fmt.Errorf("the release has the folders %v: %w", found, err)
	}
	return found[0], nil
})

// release is the folder with braid, deploy and the rest of a release.
func release(t *testing.T) string {
	t.Helper()
	dir, err := unpacked()
	require.NoError(t, err)
	return dir
}

// do runs a program to its end, requires success, and returns all that it printed.
func do(t *testing.T, dir, name string, args ...string) string {
	t.Helper()
	out, err := try(t.Context(), dir, name, args...)
	require.NoError(t, err, "%s %v: %s", name, args, out)
	return out
}

func try(ctx context.Context, dir, name string, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	return strings.TrimSpace(string(out)), err
}

// program is a process that ends with the test.
type program struct {
	*exec.Cmd
	log   string        // file for all that it prints
	ended chan struct{} // closed when it has ended
}

// begin starts a program with an environment of its own; nil: the test's.
func begin(t *testing.T, dir string, env []string, name string, args ...string) *program {
	t.Helper()
	log, err := os.Create(filepath.Join(t.TempDir(), "log"))
	require.NoError(t, err)
	p := &program{Cmd: exec.Command(name, args...), log: log.Name(), ended: make(chan struct{})}
	p.Dir, p.Env, p.Stdout, p.Stderr = dir, env, log, log
	require.NoError(t, p.Start())
	go func() { // ends with the process
		defer close(p.ended)
		_ = p.Wait()
		_ = log.Close()
	}()
	t.Cleanup(func() { p.stop(t, syscall.SIGTERM) })
	return p
}

// stop ends the program with a signal, and after 20 s with SIGKILL.
func (p *program) stop(t *testing.T, by syscall.Signal) {
	t.Helper()
	if t.Failed() {
		text, _ := os.ReadFile(p.log)
		t.Logf("%v:\n%s", p.Args, text)
	}
	for _, s := range []syscall.Signal{by, syscall.SIGKILL} {
		_ = p.Process.Signal(s)
		select {
		case <-p.ended:
			return
		case <-time.After(20 * time.Second):
		}
	}
	<-p.ended
}

// eventually tries until it succeeds.
func eventually(t *testing.T, what string, attempt func(context.Context) bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for !attempt(ctx) {
		select {
		case <-ctx.Done():
			require.Fail(t, "it did not happen", what)
		case <-tick.C:
		}
	}
}

// answers reports whether a URL answers with success.
func answers(ctx context.Context, url string) bool {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return false
	}
	response, err := http.DefaultClient.Do(request)
	return err == nil && response.Body.Close() == nil && response.StatusCode == http.StatusOK
}

// free returns an address of loopback with a free port.
func free(t *testing.T) string {
	t.Helper()
	found, err := ports.Free("127.0.0.1", 1)
	require.NoError(t, err)
	return fmt.Sprintf("127.0.0.1:%d", found[0])
}

// commands are the lines of the code block that follows a text of docs/using/deploy.md.
func commands(t *testing.T, after string) []string {
	t.Helper()
	page, err := os.ReadFile("../docs/using/deploy.md")
	require.NoError(t, err)
	_, rest, ok := strings.Cut(string(page), after)
	require.True(t, ok, after)
	_, rest, ok = strings.Cut(rest, "\n```\n")
	require.True(t, ok, after)
	block, _, ok := strings.Cut(rest, "\n```")
	require.True(t, ok, after)
	return strings.Split(block, "\n")
}
