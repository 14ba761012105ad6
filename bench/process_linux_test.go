package bench

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// A process ends with the program that started it, even if that is killed.
func TestProcessesEndWithTheirParent(t *testing.T) {
	t.Setenv(rivalEnv, parentProcess)
	t.Setenv("TMPDIR", t.TempDir())
	parent := exec.Command(os.Args[0])
	out, err := parent.StdoutPipe()
	if err == nil {
		err = parent.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	said, err := bufio.NewReader(out).ReadString('\n')
	child, failed := strconv.Atoi(strings.TrimSpace(said))
	if err != nil || failed != nil {
		t.Fatal(said, err)
	}
	_ = parent.Process.Kill()
	_ = parent.Wait()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for limit := time.After(20 * time.Second); running(child); {
		select {
		case <-tick.C:
		case <-limit:
			_ = syscall.Kill(child, syscall.SIGKILL)
			t.Fatal("the process did not end")
		}
	}
}

// running reports whether a process runs. One that has ended may remain as a zombie until its new parent waits for it.
func running(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	_, state, _ := strings.Cut(string(stat), ") ")
	return err == nil && !strings.HasPrefix(state, "Z")
}
