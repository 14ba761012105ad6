package lane

import (
	"time"

	"github.com/braidlog/braid/internal/protocol/raft/code"
	"github.com/braidlog/braid/internal/protocol/raft/effects"
	"github.com/braidlog/braid/protocol"
)

// View is what lanes see of their member. Its owner brings it up to date before each call. The parts that it points to
// stay the same.
type View struct {
	code.View
	Out   *effects.Out
	Place code.Placement

	Role   protocol.Role
	Term   protocol.Term
	Leader protocol.MemberID
	// On: the active profile has lanes.
	On bool
	// Given is how far committed entries were handed over.
	Given protocol.Index
	// Ready: a leader has prepared. Waits: a read waits for all that was accepted. Uncommitted is the bytes of its
	// entries that are not committed, and Beaten what was committed at the last heartbeat.
	Ready, Waits bool
	Uncommitted  int
	Beaten       protocol.Index
}

// window is how many bytes of one lane may be held and not committed. Any single batch may be.
func (v *View) window() int { return v.Settings.MaxInflightBytes }

// tail is how many bytes of the own lane are kept for members that miss them, after they are committed. It is what
// comes in the time of a few answers.
func (v *View) tail() int { return v.window() / 4 }

// owing is for how long an answer waits for an Append.
func (v *View) owing() time.Duration { return v.Settings.Heartbeat / 8 }

// Patience is for how long a signal waits for its batches. A leader that does not learn of a frame for a heartbeat
// takes it for lost.
func (v *View) Patience() time.Duration { return v.Settings.Heartbeat / 2 }
