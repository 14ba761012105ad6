package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"

	"github.com/braidlog/braid/bench"
)

// programs are the paths of the binaries.
type programs struct{ braid, rivals, apiserver, manager string }

// build builds all into a folder. The programs of Kubernetes are built together, because they have most packages in
// common.
func build(ctx context.Context, dir string) (*programs, error) {
	runtime.LockOSThread() // a build ends with the thread that started it
	defer runtime.UnlockOSThread()
	p := &programs{
		braid: filepath.Join(dir, "braid"), rivals: filepath.Join(dir, bench.RivalsProgram),
		apiserver: filepath.Join(dir, "kube-apiserver"), manager: filepath.Join(dir, "kube-controller-manager"),
	}
	for _, b := range []struct {
		folder, to string
		packages   []string
	}{
		{"../../..", p.braid, []string{"./cmd/braid"}},
		{"../../../bench/rivals", p.rivals, []string{"."}},
		{"kube", dir, []string{"k8s.io/kubernetes/cmd/kube-apiserver",
			"k8s.io/kubernetes/cmd/kube-controller-manager"}},
	} {
		c := exec.CommandContext(ctx, "go", append([]string{"-C", b.folder, "build", "-o", b.to}, b.packages...)...)
		c.Stderr, c.SysProcAttr = os.Stderr, bench.EndWithParent()
		if err := c.Run(); err != nil {
			return nil, fmt.Errorf("%s: %w", c, err)
		}
	}
	return p, nil
}
