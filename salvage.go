package braid

import (
	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/braidlog/braid/internal/member"
	"github.com/braidlog/braid/internal/registry"
	"github.com/braidlog/braid/internal/replica"
	"github.com/braidlog/braid/protocol"
)

// Salvaged is what [Salvage] found; see there.
type Salvaged = replica.Salvaged

// Salvage is for a cluster that has lost a majority for good. It applies to sm everything that the log of one member has, whether this
// member knows that it was decided or not, so that no write is missing that was acknowledged with this member's help. The
// member does not run; dir is its directory (Options.Dir), and sm is as it was when the member stopped, or a copy of it. others are
// directories of further members, which may have what is missing of large bodies. From the state a new cluster
// is to begin: the member must not go on in the old one, because what was not decided may be missing there.
//
// [Salvaged.Body] returns large bodies until [Salvaged.Close].
func Salvage(dir string, others []string, sm DurableStateMachine) (*Salvaged, error) {
	return replica.Salvage(replica.SalvageOptions{
		FS: vfs.Default, Dir: dir, Others: others, Guess: func() member.KindGuess { return registry.NewGuess() },
		Behind: func(core string) func(*protocol.Recovered) []protocol.Entry {
			for _, c := range registry.Cores() {
				if c.Name == core {
					return c.Behind
				}
			}
			return nil
		},
	}, sm)
}

// FurthestFirst orders directories of members that do not run and of which one is to be salvaged: the one whose
// logs go furthest comes first. With several instances another one may go further in one of them: more are such
// directories, and what only they have is not in what is salvaged. It only reads.
func FurthestFirst(dirs []string) (ordered, more []string, err error) {
	return replica.FurthestFirst(vfs.Default, dirs)
}
