package braid

import (
	"context"

	"github.com/braidlog/braid/internal/member"
	"github.com/braidlog/braid/internal/registry"
	"github.com/braidlog/braid/internal/replica"
	"github.com/braidlog/braid/internal/vfs"
	"github.com/braidlog/braid/protocol"
)

// Salvaged is the result of [Salvage]. It is not safe for concurrent use.
type Salvaged struct {
	s *replica.Salvaged
	// Kind is the kind of the log, behind its last seal. Position is how far the state came. Behind is how many
	// entries of it this member did not know to be decided.
	Kind     LogKind
	Position Position
	Behind   int
	// LastTerm and LastIndex are those of the last entry of the first instance's log. Of several members the one with
	// the highest term, and of these the one with the highest index, knows most. See [FurthestFirst].
	LastTerm  Term
	LastIndex Index
}

// Salvage is for a cluster that has lost a majority permanently. It applies to sm everything that the log of one member
// has, whether this member knows that it was decided or not, so that no write is missing that was acknowledged with
// this member's help. The member does not run; dir is its directory (Options.Dir), and sm is as it was when the member
// stopped, or a copy of it. others are directories of further members, which may have what is missing of large bodies.
// From the state a new cluster is to begin: the member must not continue in the old one, because what was not decided
// may be missing there. [Salvaged.Body] returns bodies until [Salvaged.Close]. For a state machine that keeps its state
// in memory, [RecoverAlone] does all of it.
func Salvage(dir string, others []string, sm StateMachine) (*Salvaged, error) {
	s, err := replica.Salvage(replica.SalvageOptions{
		FS: vfs.OS, Dir: dir, Others: others, Behind: behind,
		Guess: func() member.KindGuess { return registry.NewGuess() },
	}, sm)
	if err != nil {
		return nil, err
	}
	return &Salvaged{
		s: s, Kind: s.Kind, Position: s.Position, Behind: s.Behind, LastTerm: s.Last.Term, LastIndex: s.Last.Index,
	}, nil
}

// behind returns what reads entries behind an instance's log that a core has on disk; nil: there are none.
func behind(core string) func(*protocol.Recovered) []protocol.Entry {
	if c := registry.CoreOf(core); c != nil {
		return c.Behind
	}
	return nil
}

// Body makes a body whole from what the directories have of it. If that is not enough, the error is a [*BodyError].
func (s *Salvaged) Body(ctx context.Context, ref BodyRef) ([]byte, error) { return s.s.Body(ctx, ref) }

// Close closes the directories.
func (s *Salvaged) Close() error { return s.s.Close() }

// FurthestFirst orders directories of members that do not run, to choose the one to be salvaged: the one whose logs go
// furthest comes first. With several instances another one may go further in one of them: more are such directories,
// and what only they have is not in what is salvaged. It only reads.
func FurthestFirst(dirs []string) (ordered, more []string, err error) {
	return replica.FurthestFirst(vfs.OS, dirs)
}
