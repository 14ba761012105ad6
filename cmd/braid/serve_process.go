package main

import (
	"os"
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
	if data, err := os.ReadFile("/sys/fs/cgroup/memory.max"); err == nil {
		if limit, err := strconv.ParseInt(strings.TrimSpace(string(data)), 10, 64); err == nil &&
			(total == 0 || limit < total) {
			total = limit
		}
	}
	return total
}
