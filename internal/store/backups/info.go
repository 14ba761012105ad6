package backups

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"time"

	"github.com/braidlog/braid/internal/store/increment"
	"github.com/braidlog/braid/internal/store/sums"
)

// Kinds of backups.
const (
	// Full is a whole state: a snapshot file as etcdctl saves it.
	Full = "full"
	// Increment has the changes since the backup before.
	Increment = "increment"
)

// Info describes a backup.
type Info struct {
	// Number is the place in the order of the directory's backups, from 1 on.
	Number int    `json:"number"`
	Kind   string `json:"kind"`
	// Cluster is the id of the cluster, in hexadecimal.
	Cluster string `json:"cluster"`
	// Now is where the backup ends, and Since where an increment begins.
	Now   increment.Point  `json:"now"`
	Since *increment.Point `json:"since,omitempty"`
	Bytes int64            `json:"bytes"`
	Time  time.Time        `json:"time"`
	File  string           `json:"file"`
	// SHA256 is the digest at the end of the file, in hexadecimal. Base is that of the backup that an increment
	// continues.
	SHA256 string `json:"sha256"`
	Base   string `json:"base,omitempty"`
	// Problem is the reason why the backup cannot be restored; "": none is known.
	Problem string `json:"problem,omitempty"`
}

// Path is the file's name with its directory.
func (i *Info) Path(dir string) string { return filepath.Join(dir, i.File) }

// named matches the names of complete backups: number, kind and cluster.
var named = regexp.MustCompile(`^(\d{6,})-(full|increment)-([0-9a-f]{1,16})\.(db|braid)$`)

// nameOf is a backup's file name.
func nameOf(number int, kind string, cluster uint64) string {
	end := "braid"
	if kind == Full {
		end = "db" // as of etcd's snapshot files
	}
	return fmt.Sprintf("%06d-%s-%x.%s", number, kind, cluster, end)
}

// parseName reads a file name; false if it is not one of a backup.
func parseName(name string) (i Info, ok bool) {
	m := named.FindStringSubmatch(name)
	if m == nil {
		return i, false
	}
	number, err := strconv.Atoi(m[1])
	return Info{Number: number, Kind: m[2], Cluster: m[3], File: name}, err == nil
}

// read sets the fields that the name does not have, from the beginning and the end of the file.
func (i *Info) read(dir string) error {
	if i.Kind == Full {
		return i.readFull(i.Path(dir))
	}
	f, err := increment.Open(i.Path(dir))
	if err != nil {
		return err
	}
	defer f.Close()
	i.Now, i.Since, i.Bytes, i.Time, i.SHA256, i.Base = f.Now, &f.Since, f.Bytes, f.Time, f.Sum, f.Base
	if cluster := strconv.FormatUint(f.Cluster, 16); cluster != i.Cluster {
		return fmt.Errorf("%s is of cluster %s, which is not that of its name", i.File, cluster)
	}
	return nil
}

func (i *Info) readFull(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	i.Bytes, i.Time = info.Size(), info.ModTime()
	if i.Bytes%512 != sha256.Size {
		return fmt.Errorf("%s is cut off: it has %d bytes, and no digest at its end", i.File, i.Bytes)
	}
	digest := make([]byte, sha256.Size)
	if _, err := f.ReadAt(digest, i.Bytes-sha256.Size); err != nil {
		return err
	}
	i.SHA256 = hex.EncodeToString(digest)
	pages, err := sums.PagesOfFile(f)
	if err == nil {
		i.Now, err = increment.PointOf(pages, nil)
	}
	if err != nil {
		return fmt.Errorf("%s is damaged: %w", i.File, err)
	}
	return nil
}
