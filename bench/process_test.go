package bench

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// parentProcess is the value of rivalEnv with which the executable is runParent.
const parentProcess = "parent"

// runParent is a program that starts another one, prints its process id, and waits for its end.
func runParent() {
	p, err := StartProcess("sleep", []string{"600"}, filepath.Join(os.TempDir(), "log"))
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Println(p.PID())
	<-p.Ended()
}

func TestProcessIsStoppedAndStartedAgain(t *testing.T) {
	log := filepath.Join(t.TempDir(), "log")
	p, err := StartProcess("sh", []string{"-c", "echo begun; trap '' TERM; while :; do sleep 1; done"}, log)
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Failed(); err != nil {
		t.Error(err)
	}
	first := p.PID()
	p.Kill()
	if err := p.Failed(); err == nil || !strings.Contains(err.Error(), "signal: killed") {
		t.Error(err)
	}
	if err := p.Restart(); err != nil || p.PID() == first {
		t.Fatal(err, p.PID())
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	p.Stop(ended) // it takes no notice of SIGTERM
	if p.Failed() == nil {
		t.Error("it runs")
	}
}
