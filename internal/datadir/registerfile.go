package datadir

import (
	"errors"
	"os"
	"path/filepath"

	"github.com/braidlog/braid/internal/member"
	"github.com/braidlog/braid/internal/member/cluster"
	"github.com/braidlog/braid/internal/vfs"
	"github.com/braidlog/braid/internal/wal"
)

// registerFile is the file of a register.
const registerFile = "peers.json"

// LoadRegister reads the register of a member from its directory.
func LoadRegister(fs vfs.FS, dir string, own cluster.OwnIdentity) (*cluster.Register, error) {
	b, err := wal.ReadFile(fs, filepath.Join(dir, registerFile), 1<<24)
	if errors.Is(err, os.ErrNotExist) {
		return cluster.NewRegister(own), nil
	}
	if err != nil {
		return nil, err
	}
	r, err := cluster.ReadRegister(own, b)
	if err != nil {
		return nil, &member.DirError{Dir: dir, Detail: registerFile + " " + err.Error()}
	}
	return r, nil
}

// SaveRegister writes the register durably.
func SaveRegister(fs vfs.FS, dir string, r *cluster.Register) error {
	b, err := r.Content()
	if err != nil {
		return err
	}
	return wal.WriteFile(fs, filepath.Join(dir, registerFile), b)
}
