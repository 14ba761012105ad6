package paper

import (
	"os"
	"runtime"
	"runtime/metrics"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/braidlog/braid/bench"
)

// describeMachine describes this machine, with the file system that holds dir.
func describeMachine(dir string) bench.MachineInfo {
	m := bench.MachineInfo{Cores: runtime.NumCPU(), CPU: runtime.GOARCH, Filesystem: bench.Filesystem(dir), Go: runtime.Version()}
	if data, err := os.ReadFile("/proc/cpuinfo"); err == nil {
		for line := range strings.Lines(string(data)) {
			if k, v, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(k) == "model name" {
				m.CPU = strings.TrimSpace(v)
				break
			}
		}
	}
	gc := []metrics.Sample{{Name: "/gc/gogc:percent"}}
	if metrics.Read(gc); gc[0].Value.Kind() == metrics.KindUint64 {
		m.GCPercent = gc[0].Value.Uint64()
	}
	var u unix.Utsname
	if unix.Uname(&u) == nil {
		m.Kernel = unix.ByteSliceToString(u.Sysname[:]) + " " + unix.ByteSliceToString(u.Release[:])
	}
	return m
}
