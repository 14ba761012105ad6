package judge

import (
	"bytes"
	"encoding/json"
	"fmt"
	"hash/fnv"

	"github.com/braidlog/braid/internal/member"
	"github.com/braidlog/braid/protocol"
)

// Snapshot checks, if members' logs differ, that all snapshots at the same index are equal, except for the last
// command and the first line of the state, which depends on the order of all commands.
func (c *Court) Snapshot(by protocol.MemberID, meta member.Meta, state []byte) error {
	if !c.First.Core.Judged.ByKey {
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
	if is, known := c.met[at]; known && is != h.Sum64() {
		return fmt.Errorf("member %s has another snapshot at index %d than a member before", by, at)
	}
	c.met[at] = h.Sum64()
	return nil
}

// Derived judges the sections that a member's core derived from its log: all members that have applied an instance up
// to the same entry derive the same. If logs differ, members at the same index have not applied the same entries.
func (c *Court) Derived(index protocol.Index, s *member.SectionState) error {
	j := c.Of(s.Instance)
	if err := s.Valid(); err != nil || j.Core.Judged.ByKey {
		return err
	}
	is := fmt.Sprintf("%s, version %d: %x", s.Name, s.Version, s.Data)
	was := j.sections[index]
	if j.sections[index] = is; was != "" && was != is {
		return fmt.Errorf("sections: up to %d of instance %d it derives %s, another member %s", index, s.Instance, is, was)
	}
	return nil
}
