package bench

import (
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// CPUTime returns the CPU time that this process has used, in user and kernel mode.
func CPUTime() time.Duration { return cpuTimeOf(unix.RUSAGE_SELF) }

func cpuTimeOf(who int) time.Duration {
	var u unix.Rusage
	if unix.Getrusage(who, &u) != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// diskBytes are the bytes that were written to disks until a reading.
type diskBytes struct {
	device    int64 // to the device of the data, by all processes; 0: not known
	processes int64 // by the processes, in whole pieces of the page cache, which may be much larger than a write
}

// bytesWritten reads the bytes that reached the device of a directory, and those of processes (0: this one).
func bytesWritten(dir string, pids ...int) (b diskBytes) {
	if dir != "" {
		b.device = deviceBytes(dir)
	}
	for _, pid := range pids {
		b.processes += writtenBytes(pid)
	}
	return b
}

// since returns the bytes that were written since an earlier reading: what reached the device, if that is known.
func (b diskBytes) since(earlier diskBytes) float64 {
	if b.device > 0 && earlier.device > 0 {
		return float64(b.device - earlier.device)
	}
	return max(0, float64(b.processes-earlier.processes))
}

// writtenBytes returns the bytes that a process (0: this one) caused to be written to disks, 0 if the kernel does not
// report it.
func writtenBytes(pid int) int64 { return procField(procFile(pid, "io"), "write_bytes:") }

// ResidentBytes returns the memory of this process, 0 if the kernel does not report it.
func ResidentBytes() uint64 { return uint64(residentBytes(0)) }

// residentBytes returns the memory of a process (0: this one).
func residentBytes(pid int) int64 { return procField(procFile(pid, "status"), "VmRSS:") << 10 }

// procFile returns the path of a kernel's file on a process (0: this one).
func procFile(pid int, name string) string {
	if pid == 0 {
		return filepath.Join("/proc/self", name)
	}
	return filepath.Join("/proc", strconv.Itoa(pid), name)
}

// procField returns the number behind a key in a file of lines "key number", 0 if absent.
func procField(path, key string) int64 {
	data, err := os.ReadFile(path)
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(data)) {
		if f := strings.Fields(line); len(f) >= 2 && f[0] == key {
			n, _ := strconv.ParseInt(f[1], 10, 64)
			return n
		}
	}
	return 0
}

// processCPU returns the CPU time of a process, 0 if the kernel does not report it.
func processCPU(pid int) time.Duration {
	data, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "stat"))
	if err != nil {
		return 0
	}
	// The name in parentheses may have blanks: the fields are counted after it.
	_, rest, ok := strings.Cut(string(data[strings.LastIndexByte(string(data), ')'):]), " ")
	f := strings.Fields(rest)
	if !ok || len(f) < 13 {
		return 0
	}
	user, _ := strconv.ParseInt(f[11], 10, 64)
	system, _ := strconv.ParseInt(f[12], 10, 64)
	return time.Duration(user+system) * time.Second / ticksPerSecond
}

// CPUShares are the shares of the machine's CPU time that did not go to the measured processes: the higher they are,
// the less reliable are the figures.
type CPUShares struct {
	// StolenPercent is the share of the host.
	StolenPercent float64 `json:"stolen_cpu_percent"`
	// OthersPercent is the share of other processes.
	OthersPercent float64 `json:"others_cpu_percent"`
}

// CPUMeter measures the shares over a time.
type CPUMeter struct {
	from cpuTicks
	own  time.Duration
}

// StartCPUMeter begins to measure the shares. The measured processes are this one, and those that it started and that
// ended in between.
func StartCPUMeter() CPUMeter { return CPUMeter{from: readCPUTicks(), own: ownCPUTime()} }

func ownCPUTime() time.Duration { return CPUTime() + cpuTimeOf(unix.RUSAGE_CHILDREN) }

// Shares returns the shares since the meter was started.
func (m CPUMeter) Shares() CPUShares { return m.from.shares(readCPUTicks(), ownCPUTime()-m.own) }

// cpuTicks are the kernel's counters of time over all CPUs.
type cpuTicks struct{ total, idle, stolen int64 }

// Fields of the first line of /proc/stat.
const (
	idleField   = 4
	iowaitField = 5
	stolenField = 8
)

func readCPUTicks() (s cpuTicks) {
	data, _ := os.ReadFile("/proc/stat")
	line, _, _ := strings.Cut(string(data), "\n")
	f := strings.Fields(line)
	for i := 1; i < len(f) && i <= stolenField; i++ {
		n, _ := strconv.ParseInt(f[i], 10, 64)
		s.total += n
		switch i {
		case idleField, iowaitField:
			s.idle += n
		case stolenField:
			s.stolen = n
		}
	}
	return s
}

// ticksPerSecond is USER_HZ, fixed in Linux's interface.
const ticksPerSecond = 100

// shares returns the shares between two readings, between which the measured processes used own.
func (from cpuTicks) shares(to cpuTicks, own time.Duration) (s CPUShares) {
	total := float64(to.total - from.total)
	if total <= 0 {
		return s // the kernel does not report it
	}
	stolen := float64(to.stolen - from.stolen)
	busy := total - float64(to.idle-from.idle) - stolen
	s.StolenPercent = 100 * stolen / total
	s.OthersPercent = max(0, 100*(busy-own.Seconds()*ticksPerSecond)/total)
	return s
}

// MachineInfo describes the machine that a figure was measured on.
type MachineInfo struct {
	Cores      int    `json:"cores"`
	CPU        string `json:"cpu"`
	Kernel     string `json:"kernel"`
	Filesystem string `json:"filesystem"`
	Go         string `json:"go"`
	// GCPercent is the growth of this process's heap between garbage collections.
	GCPercent uint64 `json:"gc_percent"`
}

// DescribeMachine describes this machine, with the file system that holds dir.
func DescribeMachine(dir string) MachineInfo {
	m := MachineInfo{Cores: runtime.NumCPU(), CPU: runtime.GOARCH, Filesystem: Filesystem(dir), Go: runtime.Version()}
	if data, err := os.ReadFile("/proc/cpuinfo"); err == nil {
		for line := range strings.Lines(string(data)) {
			if k, v, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(k) == "model name" {
				m.CPU = strings.TrimSpace(v)
				break
			}
		}
	}
	m.GCPercent = gcPercent()
	var u unix.Utsname
	if unix.Uname(&u) == nil {
		m.Kernel = unix.ByteSliceToString(u.Sysname[:]) + " " + unix.ByteSliceToString(u.Release[:])
	}
	return m
}
