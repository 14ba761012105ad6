package filespace

import (
	"errors"
	"io/fs"
	"os"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/braidlog/braid/internal/sys"
)

// Fallocate is the system's; tests have signals interrupt it.
var Fallocate = unix.Fallocate

// Allocate allocates blocks of a file for a number of bytes; its size does not change.
func Allocate(path string, size int64) error {
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	err = sys.Again(func() error { return Fallocate(int(f.Fd()), unix.FALLOC_FL_KEEP_SIZE, 0, size) })
	return errors.Join(err, f.Close())
}

// IsFull reports whether an error means that the disk, or the quota of its user, has no space.
func IsFull(err error) bool {
	return errors.Is(err, unix.ENOSPC) || errors.Is(err, unix.EDQUOT)
}

func allocatedBytes(info fs.FileInfo) int64 {
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		return st.Blocks * 512
	}
	return 0
}
