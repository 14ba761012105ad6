package main

import (
	"context"
	"fmt"
	"os"
	"strings"
	"time"
)

// withGo returns a context that ends when the go command that runs this program, by go run, has ended: it may have been
// killed. It changes nothing for a program that something else started, or on a system without /proc.
func withGo(ctx context.Context) (context.Context, context.CancelFunc) {
	const pause = time.Second
	ctx, cancel := context.WithCancel(ctx)
	parent := os.Getppid()
	name, err := os.ReadFile(fmt.Sprintf("/proc/%d/comm", parent))
	if err != nil || strings.TrimSpace(string(name)) != "go" {
		return ctx, cancel
	}
	go func() {
		defer cancel()
		for sleep(ctx, pause) && os.Getppid() == parent {
		}
	}()
	return ctx, cancel
}
