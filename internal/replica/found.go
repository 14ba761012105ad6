package replica

import (
	"io"

	"github.com/braidlog/braid/internal/datadir"
	"github.com/braidlog/braid/internal/member"
)

// Found begins a member's new directory with a state. The member does not run; Open continues from there. All first
// members of a cluster must begin with the same state, which has a name. The error is a [*member.DirError], or that of
// the disk or of write.
func Found(o Options, name string, write func(io.Writer) error) error {
	o.outside()
	if datadir.Begun(o.FS, o.Dir) {
		return &member.DirError{Dir: o.Dir,
			Detail: "is of a member that has started: a cluster begins with a state in new directories only. " +
				"If it was given a state and that failed, remove it"}
	}
	c := o.directory(discarding{})
	c.State = &datadir.State{Name: name, Write: write}
	dir, err := datadir.Open(c)
	if err != nil {
		return err
	}
	return dir.Close()
}

// discarding is a state machine whose state is not needed.
type discarding struct{}

func (discarding) Apply([]member.Command) error       { return nil }
func (discarding) Snapshot() (member.Snapshot, error) { return nil, io.ErrUnexpectedEOF }
func (discarding) Restore(r io.Reader) error {
	_, err := io.Copy(io.Discard, r)
	return err
}
