package sim

import (
	"errors"
	"time"

	"github.com/braidlog/braid/internal/member"
	"github.com/braidlog/braid/internal/member/apply"
	"github.com/braidlog/braid/internal/member/damage"
	"github.com/braidlog/braid/protocol"
)

// What a member does about damage on its disk.

// scrubLater lets the member read everything on its disk again and again, as production does. A round
// lasts about as long as every says.
func (m *Member) scrubLater(every time.Duration) {
	m.scrub = damage.NewScrub(scrubWorld{m}, damage.ScrubFiles{Log: m.log.NewScrubber(), Snapshots: m.snaps, Bodies: m.body.access})
	var step func()
	step = func() {
		bytes := time.Duration(m.scrub.Step())
		m.later(m.w.hop()+bytes*every/damage.ScrubAtLeast, step)
	}
	m.later(m.w.Between(0, every), step)
}

// scrubWorld gives damage.Scrub what it needs of the member. If the process stopped during a step,
// the rest of the step reaches nobody.
type scrubWorld struct{ m *Member }

// Health implements damage.ScrubWorld, as the methods below do.
func (w scrubWorld) Health(use func(*damage.DiskHealth)) { use(&w.m.health) }

func (w scrubWorld) Harm(err *member.LoadError) {
	if w.m.up {
		w.m.harm(err)
	}
}

func (w scrubWorld) Rewrite(instance protocol.InstanceID) {
	if w.m.up {
		w.m.writer.Rewrite(uint32(instance), w.m.failOn)
	}
}

func (w scrubWorld) WantSnapshot() {
	if w.m.up {
		w.m.wantSnapshot()
	}
}

func (w scrubWorld) Found(err error, _ bool) {
	w.m.w.Tracef("%s   finds damage: %v", w.m.id, err)
	if errors.As(err, new(*protocol.CorruptError)) {
		w.m.w.Count(damagedSnapshotsFound)
	}
}

func (w scrubWorld) Trouble(err error) { w.m.w.Tracef("%s   cannot scrub: %v", w.m.id, err) }

// failOn stops the member if there is an error.
func (m *Member) failOn(err error) {
	if err != nil {
		m.fail(err)
	}
}

// harm notes that an entry cannot be read from the log.
func (m *Member) harm(err *member.LoadError) {
	at, _ := m.progress.At()
	if m.health.Harm(err, &at) {
		m.wantSnapshot()
	}
}

func (m *Member) wantSnapshot() {
	m.push(apply.ApplyItem{Due: true})
}
