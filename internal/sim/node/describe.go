package node

import (
	"fmt"
	"strings"

	"github.com/braidlog/braid/protocol"
)

// Mark returns the text if on, otherwise "".
func Mark(on bool, text string) string {
	if on {
		return text
	}
	return ""
}

// describe formats the important fields of a message.
func (w *Environment) describe(m *protocol.Message) string {
	var b strings.Builder
	codec := w.codec(m.Instance)
	if m.Instance > FirstInstance {
		fmt.Fprintf(&b, "i%d ", m.Instance)
	}
	fmt.Fprintf(&b, "%s term %d", codec.Name(m.Type), m.Term)
	if part := codec.PartOf(m); part != "" {
		b.WriteString(" " + part)
	}
	for _, f := range []struct {
		name  string
		value uint64
	}{{"commit", uint64(m.Commit)}, {"context", m.Context}} {
		if f.value != 0 {
			fmt.Fprintf(&b, " %s %d", f.name, f.value)
		}
	}
	if m.Reject {
		b.WriteString(" reject")
	}
	for i := range m.Holdings {
		h := &m.Holdings[i]
		fmt.Fprintf(&b, " {(%d, %d) %s}", h.Index, h.Term, h.Form)
	}
	if n := len(m.Entries); n > 0 {
		b.WriteString(" [")
		for i := range m.Entries {
			if i == 8 {
				fmt.Fprintf(&b, " … %d in all", n)
				break
			}
			b.WriteString(Mark(i > 0, " ") + describeEntry(&m.Entries[i]))
		}
		b.WriteByte(']')
	}
	return b.String()
}

func describeEntry(e *protocol.Entry) string {
	text := fmt.Sprintf("(%d, %d) %s", e.Index, e.Term, e.Kind)
	if e.Kind == protocol.EntryBatch {
		text = fmt.Sprintf("%s×%d %s.%d.%d", text, e.Count, e.ID.Session.Member, e.ID.Session.Rank(), e.ID.Seq)
	}
	if e.Kind == protocol.EntryGroup {
		text = fmt.Sprintf("%s×%d", text, e.Count)
	}
	if r, ok := e.Range(); ok {
		text = fmt.Sprintf("%s of lane %s %d…%d", text, r.Lane, r.From, r.To)
	}
	if e.Kind == protocol.EntrySkip {
		text += fmt.Sprintf(" to %d", e.Round())
	}
	if e.Kind == protocol.EntryConfig {
		text += describeConfig(e.Payload)
	}
	if e.BodySize > 0 {
		text = fmt.Sprintf("%s, %s of %d bytes k=%d", text, e.Form, e.BodySize, e.K)
	}
	return text
}

// describeConfig formats the voters of a configuration, the voters that leave, and the learners.
func describeConfig(payload []byte) string {
	c, err := protocol.DecodeConfig(payload)
	if err != nil {
		return ""
	}
	text := fmt.Sprintf(" %v", c.Voters())
	if c.Joint() {
		text += fmt.Sprintf(" after %v", c.Outgoing)
	}
	for i := range c.Members {
		if m := &c.Members[i]; m.Learner {
			text += " learner " + m.ID.String() + Mark(m.Joining, " joins")
		}
	}
	return text
}
