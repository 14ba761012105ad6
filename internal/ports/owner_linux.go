package ports

import (
	"bufio"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// Owner returns the process that listens on a TCP port of this machine.
func Owner(port int) Process {
	inodes := listeners(port)
	if len(inodes) == 0 {
		return Process{}
	}
	dirs, err := filepath.Glob("/proc/[0-9]*/fd")
	if err != nil {
		return Process{}
	}
	for _, dir := range dirs {
		fds, err := os.ReadDir(dir)
		if err != nil {
			continue // gone, or another user's
		}
		for _, fd := range fds {
			target, err := os.Readlink(filepath.Join(dir, fd.Name()))
			if err == nil && inodes[target] {
				return process(filepath.Dir(dir))
			}
		}
	}
	return Process{}
}

// listeners returns the sockets that listen on a port, as links in /proc/PID/fd name them.
func listeners(port int) map[string]bool {
	const localAddress, state, inode, listening = 1, 3, 9, "0A"
	found := map[string]bool{}
	suffix := fmt.Sprintf(":%04X", port)
	for _, table := range []string{"/proc/net/tcp", "/proc/net/tcp6"} {
		file, err := os.Open(table)
		if err != nil {
			continue // no IPv6
		}
		for lines := bufio.NewScanner(file); lines.Scan(); {
			f := strings.Fields(lines.Text())
			if len(f) > inode && f[state] == listening && strings.HasSuffix(f[localAddress], suffix) {
				found["socket:["+f[inode]+"]"] = true
			}
		}
		file.Close()
	}
	return found
}

func process(dir string) Process {
	pid, err := strconv.Atoi(filepath.Base(dir))
	if err != nil {
		return Process{}
	}
	name, err := os.ReadFile(filepath.Join(dir, "comm"))
	if err != nil {
		return Process{PID: pid, Name: "a process"}
	}
	return Process{PID: pid, Name: strings.TrimSpace(string(name))}
}
