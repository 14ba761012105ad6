package sim

import (
	"bytes"
	"encoding/json"
	"fmt"
	"hash/fnv"

	"github.com/braidlog/braid/internal/member"
)

// Some protocols order commands only where they have a key in common. There members' logs differ, and so do the positions of
// their commands. The judges look at each key as they look at the whole log elsewhere: its commands are numbered by its
// version. Whether a decision is kept the state machines tell, and the history.

// byKey reports whether the protocol is one of these.
func (s *Settings) byKey() bool { return s.protocol.Core.Judged.ByKey }

// fix leaves out what a protocol cannot do whose members do not change: a member that has lost its disk cannot be replaced.
func (s *Settings) fix() {
	var none []*Fault
	if s.protocol.Core.Judged.Fixed {
		s.Resize = false
		none = append(none, faultChange, faultWipe, faultOldDisk, faultHotCopy)
	}
	if s.byKey() {
		s.Durable = false // such a state cannot stay where members met last
	}
	for _, f := range none {
		s.Faults[f] = 0
	}
}

// judgeMet judges that all members whose snapshots stand at one index have the same there. Which command was last is not
// the same, and nor is the first line of the state, which speaks of all commands in their order.
func (m *Member) judgeMet(meta member.Meta, state []byte) error {
	w := m.w
	if !w.set.byKey() {
		return nil
	}
	meta.Command, state = 0, state[bytes.IndexByte(state, '\n')+1:]
	text, err := json.Marshal(&meta)
	if err != nil {
		return err
	}
	at, h := meta.Cursor.Points[0].Index, fnv.New64a()
	h.Write(text)
	h.Write(state)
	if is, known := w.met[at]; known && is != h.Sum64() {
		return fmt.Errorf("member %s has another snapshot at index %d than a member before", m.id, at)
	}
	w.met[at] = h.Sum64()
	return nil
}
