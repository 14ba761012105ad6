package main

import (
	"os"
	"path"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"

	"github.com/braidlog/braid/internal/settings"
)

// tune configures the process: less garbage collection while there is memory, and at least two processors' worth of
// goroutines, without which the loops starve each other.
func tune(s *settings.Settings) {
	if os.Getenv("GOGC") == "" {
		boundGarbage(s.GCPercent)
	}
	limit := s.MemoryLimit
	if limit == 0 {
		limit = machineMemory() / 2
	}
	if os.Getenv("GOMEMLIMIT") == "" && limit > 0 {
		debug.SetMemoryLimit(limit)
	}
	runtime.GOMAXPROCS(max(2, runtime.GOMAXPROCS(0)))
}

// machineMemory is the memory that this process may use, in bytes; 0 if that is not known.
func machineMemory() int64 {
	total := int64(0)
	if data, err := os.ReadFile("/proc/meminfo"); err == nil {
		if fields := strings.Fields(string(data)); len(fields) > 1 {
			if kib, err := strconv.ParseInt(fields[1], 10, 64); err == nil {
				total = kib << 10
			}
		}
	}
	own, _ := os.ReadFile("/proc/self/cgroup")
	for _, name := range limitFiles(string(own)) {
		data, _ := os.ReadFile(name)
		limit, err := strconv.ParseInt(strings.TrimSpace(string(data)), 10, 64)
		if err == nil && (total == 0 || limit < total) {
			total = limit
		}
	}
	return total
}

// limitFiles are the files with the limits of the control groups that /proc/self/cgroup lists, and of those around
// them. In a container they are at the top.
func limitFiles(own string) (names []string) {
	const v2, v1 = "/sys/fs/cgroup", "/sys/fs/cgroup/memory"
	for line := range strings.Lines(own) {
		fields := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(fields) < 3 || fields[1] != "" && fields[1] != "memory" {
			continue
		}
		top, file := v2, "memory.max"
		if fields[1] != "" {
			top, file = v1, "memory.limit_in_bytes"
		}
		for group := path.Join("/", fields[2]); ; group = path.Dir(group) {
			names = append(names, path.Join(top, group, file))
			if group == "/" {
				break
			}
		}
	}
	return names
}
