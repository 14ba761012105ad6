package settings

import (
	"errors"
	"fmt"
	"time"

	"github.com/spf13/pflag"
)

// Database is how the state machine's database is written and kept small. Values of 0 are its defaults.
type Database struct {
	BatchInterval   time.Duration // after which what was applied is committed to the file
	BatchLimit      int           // writes, after which it is
	freelist        string
	CompactionLimit int           // revisions that a compaction removes at once
	CompactionPause time.Duration // between these
	// DefragmentMiB is how much defragmentation has to free that a member that starts begins with it; 0: it does not.
	DefragmentMiB uint
}

// Values of --backend-bbolt-freelist-type.
const (
	freelistMap   = "map"
	freelistArray = "array"
)

func (d *Database) flags(f *pflag.FlagSet) {
	f.DurationVar(&d.BatchInterval, "backend-batch-interval", 0,
		"time after which what was applied is committed to the database file (0: 100ms)")
	f.IntVar(&d.BatchLimit, "backend-batch-limit", 0,
		"number of writes after which they are committed to the database file (0: 1000)")
	f.StringVar(&d.freelist, "backend-bbolt-freelist-type", freelistMap, "how free pages of the database are kept in "+
		"memory: map or array")
	f.IntVar(&d.CompactionLimit, "compaction-batch-limit", 0,
		"number of revisions that a compaction removes at once (0: 1000)")
	f.DurationVar(&d.CompactionPause, "compaction-sleep-interval", 0, "pause of a compaction between these (0: 10ms)")
	f.UintVar(&d.DefragmentMiB, "bootstrap-defrag-threshold-megabytes", 0, "a member that starts defragments its "+
		"database if that frees as many MiB (0: never)")
}

// ArrayFreelist reports whether free pages are kept in an array.
func (d *Database) ArrayFreelist() bool { return d.freelist == freelistArray }

func (d *Database) check() error {
	var errs []error
	if d.freelist != "" && d.freelist != freelistMap && d.freelist != freelistArray {
		errs = append(errs, fmt.Errorf("--backend-bbolt-freelist-type %q: it is map or array", d.freelist))
	}
	for flag, n := range map[string]int64{
		"backend-batch-interval": int64(d.BatchInterval), "backend-batch-limit": int64(d.BatchLimit),
		"compaction-batch-limit": int64(d.CompactionLimit), "compaction-sleep-interval": int64(d.CompactionPause),
	} {
		if n < 0 {
			errs = append(errs, fmt.Errorf("--%s: it is not negative", flag))
		}
	}
	return errors.Join(errs...)
}
