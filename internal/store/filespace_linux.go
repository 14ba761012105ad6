package store

import (
	"errors"
	"io/fs"
	"os"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/braidlog/braid/internal/sys"
)

// fallocate is the system's; tests have signals interrupt it.
var fallocate = unix.Fallocate

// allocate gives a file blocks for so many bytes; its size stays what it is.
func allocate(path string, size int64) error {
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	err = sys.Again(func() error { return fallocate(int(f.Fd()), unix.FALLOC_FL_KEEP_SIZE, 0, size) })
	return errors.Join(err, f.Close())
}

func isFull(err error) bool {
	return errors.Is(err, unix.ENOSPC) || errors.Is(err, unix.EDQUOT)
}

func allocatedBytes(info fs.FileInfo) int64 {
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		return st.Blocks * 512
	}
	return 0
}
