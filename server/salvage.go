package server

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/braidlog/braid"
	"github.com/braidlog/braid/internal/store"
)

// SalvageConfig names what is left of a cluster that has lost a majority permanently.
type SalvageConfig struct {
	// NodeDir and StoreDir are the directories of a member that does not run (Config.Node.Dir and Config.Store.Dir).
	// OtherNodeDirs are those of others, which may have missing parts of large values.
	NodeDir, StoreDir string
	OtherNodeDirs     []string
	// WorkDir is a new directory for a copy of the database. The caller removes it.
	WorkDir string
}

// SalvageReport describes what a snapshot has of it.
type SalvageReport struct {
	// Revision is the state's. Position is how far it came in the log, of which Behind entries were not known to be
	// decided.
	Revision int64
	Position braid.Position
	Behind   int
	// Lost are the large values of which too little is left. Their keys count as deleted.
	Lost []store.Lost
}

// Salvage writes to out a snapshot of everything that a member has: its state, and all that its log has behind it. See
// [braid.Salvage]. A new cluster can be restored from it.
func Salvage(ctx context.Context, c SalvageConfig, out io.Writer) (report SalvageReport, err error) {
	if err := store.CopyState(c.StoreDir, c.WorkDir); err != nil {
		return report, err
	}
	found := &leftBodies{}
	st, err := store.Open(store.Options{
		Dir: c.WorkDir, ClusterID: 1, MemberID: 1, QuotaBytes: -1, ReserveBytes: -1, Bodies: found,
	})
	if err != nil {
		return report, fmt.Errorf("server: open the store: %w", err)
	}
	defer func() { err = errors.Join(err, st.Close()) }()
	s, err := braid.Salvage(c.NodeDir, c.OtherNodeDirs, &machine{store: st})
	if err != nil {
		return report, err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	found.left = s
	report.Position, report.Behind = s.Position, s.Behind
	snapshot, err := st.SnapshotOfRest(ctx, func(l store.Lost) { report.Lost = append(report.Lost, l) })
	if err != nil {
		return report, err
	}
	defer snapshot.Close()
	report.Revision = st.Revision()
	return report, snapshot.WriteTo(ctx, out)
}

// leftBodies are the large values of which enough is left.
type leftBodies struct{ left *braid.Salvaged }

// Body implements store.Bodies.
func (b *leftBodies) Body(ctx context.Context, ref store.BodyRef) ([]byte, error) {
	if b.left == nil {
		return nil, errors.New("server: the log is not open yet")
	}
	return b.left.Body(ctx, logRef(ref))
}

// Release implements store.Bodies. The directories stay as they are.
func (b *leftBodies) Release(store.BodyRef) {}
