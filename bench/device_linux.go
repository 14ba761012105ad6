package bench

import (
	"fmt"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// sectorBytes is the unit of the kernel's counters, also for devices with sectors of another size.
const sectorBytes = 512

// deviceBytes returns how many bytes have been written to the device of a directory's file system since the machine
// started, by all processes; 0 if that is not known.
func deviceBytes(dir string) int64 {
	var st unix.Stat_t
	if unix.Stat(dir, &st) != nil {
		return 0
	}
	data, err := os.ReadFile(fmt.Sprintf("/sys/dev/block/%d:%d/stat", unix.Major(st.Dev), unix.Minor(st.Dev)))
	if err != nil {
		return 0
	}
	f := strings.Fields(string(data))
	const sectorsWritten = 6 // Linux: Documentation/block/stat.rst
	if len(f) <= sectorsWritten {
		return 0
	}
	n, _ := strconv.ParseInt(f[sectorsWritten], 10, 64)
	return n * sectorBytes
}
