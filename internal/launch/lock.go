package launch

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/braidlog/braid/internal/durable"
	"github.com/braidlog/braid/internal/vfs"
)

// Files of a data directory that record which launcher uses it.
const (
	lockName  = "LOCK"
	ownerName = "owner"
)

// LockFiles are the files that a launcher leaves in a directory in which it started no cluster.
var LockFiles = []string{lockName, ownerName}

// InUseError is a data directory that another launcher uses. Nothing was done.
type InUseError struct{ Dir, Owner string }

func (e *InUseError) Error() string {
	return fmt.Sprintf("%s is in use by another running cluster (%s): stop it, or choose another --data", e.Dir, e.Owner)
}

// lock creates dir if it is missing and excludes other launchers until the result is closed or this process ends.
func lock(dir string) (io.Closer, error) {
	if err := durable.MakeDir(vfs.OS, dir, 0o700); err != nil {
		return nil, err
	}
	l, err := vfs.OS.Lock(filepath.Join(dir, lockName))
	if err != nil {
		owner, readErr := os.ReadFile(filepath.Join(dir, ownerName))
		if readErr != nil {
			return nil, fmt.Errorf("lock %s: %w", dir, err)
		}
		return nil, &InUseError{dir, strings.TrimSpace(string(owner))}
	}
	owner := fmt.Sprintf("process %d\n", os.Getpid())
	if err := os.WriteFile(filepath.Join(dir, ownerName), []byte(owner), 0o600); err != nil {
		l.Close()
		return nil, err
	}
	return l, nil
}
