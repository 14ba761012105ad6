package main

import (
	"fmt"
	"os"
	"os/exec"
)

// compile builds a static binary that depends on the source and Go's version alone: without the machine's paths, C
// compiler, flags and newer instructions of its processor. It names the commit.
func compile(root, binary, goos, goarch string) error {
	cmd := exec.Command("go", "build", "-ldflags=-s -w", "-o", binary, "./cmd/braid")
	cmd.Dir = root
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS=-trimpath -buildvcs=true", "GOOS="+goos, "GOARCH="+goarch,
		"GOAMD64=v1", "GOARM64=v8.0", "GOEXPERIMENT=")
	if text, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("go build for %s/%s: %w: %s", goos, goarch, err, text)
	}
	return nil
}
