package node

import (
	"errors"
	"time"

	"github.com/braidlog/braid/internal/member"
	"github.com/braidlog/braid/internal/member/apply"
	"github.com/braidlog/braid/internal/member/damage"
	"github.com/braidlog/braid/protocol"
)

// Scrubbing and repair of a member's disk.

// ScrubLater lets the member read everything on its disk again and again, as production does. A round takes about
// every.
func (m *Member) ScrubLater(every time.Duration) {
	m.scrub = damage.NewScrub(scrubWorld{m}, damage.ScrubFiles{Log: m.Log.NewScrubber(), Snapshots: m.Snaps, Bodies: m.Body.access})
	var step func()
	step = func() {
		bytes := time.Duration(m.scrub.Step())
		m.Later(m.Env.hop()+bytes*every/damage.ScrubAtLeast, step)
	}
	m.Later(m.Env.Between(0, every), step)
}

// scrubWorld is the member as damage.Scrub needs it. If the process stopped during a step, the rest of the step has
// no effect.
type scrubWorld struct{ m *Member }

// Health implements damage.ScrubWorld, as the methods below do.
func (w scrubWorld) Health(use func(*damage.DiskHealth)) { use(&w.m.health) }

func (w scrubWorld) Harm(err *member.LoadError) {
	if w.m.Up {
		w.m.harm(err)
	}
}

func (w scrubWorld) Rewrite(instance protocol.InstanceID) {
	if w.m.Up {
		w.m.Writer.Rewrite(uint32(instance), w.m.failOn)
	}
}

func (w scrubWorld) WantSnapshot() {
	if w.m.Up {
		w.m.wantSnapshot()
	}
}

func (w scrubWorld) Found(err error, _ bool) {
	w.m.Env.Tracef("%s   finds damage: %v", w.m.ID, err)
	if errors.As(err, new(*protocol.CorruptError)) {
		w.m.Env.Count(damagedSnapshotsFound)
	}
}

func (w scrubWorld) Trouble(err error) { w.m.Env.Tracef("%s   cannot scrub: %v", w.m.ID, err) }

// failOn stops the member if there is an error.
func (m *Member) failOn(err error) {
	if err != nil {
		m.fail(err)
	}
}

// harm records that an entry cannot be read from the log.
func (m *Member) harm(err *member.LoadError) {
	at, _ := m.Progress.At()
	if m.health.Harm(err, &at) {
		m.wantSnapshot()
	}
}

func (m *Member) wantSnapshot() {
	m.Push(apply.ApplyItem{Due: true})
}
