package sys

import (
	"bytes"
	"os"
	"strconv"
)

// ResidentBytes returns how much memory of the machine this process uses; 0: that is not known.
func ResidentBytes() int64 {
	text, err := os.ReadFile("/proc/self/statm") // pages: size, resident, …
	if err != nil {
		return 0
	}
	fields := bytes.Fields(text)
	if len(fields) < 2 {
		return 0
	}
	pages, err := strconv.ParseInt(string(fields[1]), 10, 64)
	if err != nil {
		return 0
	}
	return pages * int64(os.Getpagesize())
}
