package conformance

import (
	"bytes"
	"slices"

	"github.com/braidlog/braid/protocol"
	"github.com/braidlog/braid/protocol/quorum"
)

// Bodies in the cluster in memory. Every member has a store of them alongside its log. Rows need not be rows of a
// real code, but only bytes in their place: only the number of distinct ones on members matters. A member that has
// enough gets the body from the net's own list.

// held is the part of a body on a member's disk.
type held struct {
	term  protocol.Term
	form  protocol.Form
	bytes []byte
}

// row is row r of a body coded with k; all rows differ from each other and from the body.
func (net *Net) row(body []byte, k uint8, f protocol.Form) []byte {
	if net.Rows != nil {
		r, _ := f.Row()
		out, err := net.Rows(body, k, r)
		if err != nil {
			net.t.Fatalf("row %d of %d bytes: %v", r, len(body), err)
		}
		return out
	}
	out := bytes.Repeat([]byte{byte(f) ^ body[0]}, f.Len(uint32(len(body)), k))
	if len(out) > 0 {
		out[0] = ^byte(f)
	}
	return out
}

// as returns the bytes of an entry's body in a form; false if the member cannot make them.
func (net *Net) as(n *Node, e *protocol.Entry) ([]byte, bool) {
	whole := e.Body
	if len(whole) != int(e.BodySize) {
		h := n.bodies[e.Index]
		switch {
		case e.Form == protocol.FormNone:
			return nil, true
		case h.term != e.Term:
			return nil, false
		case h.form == e.Form:
			return h.bytes, true
		case h.form != protocol.FormWhole:
			return nil, false
		}
		whole = h.bytes
	}
	switch e.Form {
	case protocol.FormNone:
		return nil, true
	case protocol.FormWhole:
		return whole, true
	}
	return net.row(whole, e.K, e.Form), true
}

// dressed returns a copy of an entry for a message: with payload and body, in its form. If the member cannot make the
// body, it is omitted if the entry is committed.
func (net *Net) dressed(n *Node, e protocol.Entry, committed bool) protocol.Entry {
	if !e.Applicable() {
		e.Payload = net.payload(n, &e)
	}
	if _, row := e.Form.Row(); row && len(e.Body) == e.BodyLen() && protocol.Digest(e.Body) != e.BodyDigest {
		return e // a row of a body that has no entry in the log
	}
	b, ok := net.as(n, &e)
	if !ok && !committed {
		net.t.Fatalf("member %s: body of %d/%d as %s is neither resident nor durable", n.ID, e.Index, e.Term, e.Form)
	}
	if !ok {
		e.Form, b = protocol.FormNone, nil
	}
	e.Body = b
	return e
}

// storeBody stores the body of a record alongside the log.
func (n *Node) storeBody(e *protocol.Entry) {
	if e.BodySize > 0 && e.Form != protocol.FormNone {
		n.bodies[e.Index] = held{e.Term, e.Form, e.Body}
	}
}

// cutBodies forgets the bodies of entries from i on, which are replaced.
func (n *Node) cutBodies(i, last protocol.Index) {
	for ; i <= last; i++ {
		delete(n.bodies, i)
	}
}

// form is the form in which a member's disk holds the body of a committed entry.
func (n *Node) form(e *protocol.Entry) protocol.Form {
	if h := n.bodies[e.Index]; h.term == e.Term {
		return h.form
	}
	return protocol.FormNone
}

// Holds is the form in which a member's disk holds the body of the entry that was committed at i.
func (net *Net) Holds(id protocol.MemberID, i protocol.Index) protocol.Form {
	e := net.judge.chosen[i]
	return net.Node(id).form(&e)
}

// reach reports whether one member can fetch from another.
func (net *Net) reach(n, from *Node) bool {
	return n == from || from.Core != nil && (net.Cut == nil || !net.Cut(n.ID, from.ID) && !net.Cut(from.ID, n.ID))
}

// gather makes a body whole from the parts on the disks of members that n can reach; nil if they do not suffice.
func (net *Net) gather(n *Node, ref protocol.BodyRef) []byte {
	whole, rows := false, quorum.Rows{}
	for _, from := range net.Nodes {
		if h := from.bodies[ref.Index]; net.reach(n, from) && h.term == ref.Term {
			whole = whole || h.form == protocol.FormWhole
			rows.Add(h.form)
		}
	}
	if !whole && rows.Len() < int(ref.K) {
		return nil
	}
	return net.judge.proposed[bodyKey{ref.Size, ref.Digest}]
}

// bodyKey identifies a proposed body.
type bodyKey struct{ size, digest uint32 }

// want puts a request for a whole body in flight, unless it is in flight already.
func (net *Net) want(n *Node, ref protocol.BodyRef) {
	if !slices.ContainsFunc(net.Queue, func(p Parcel) bool { return p.To == n.ID && p.Want != nil && *p.Want == ref }) {
		net.Queue = append(net.Queue, Parcel{From: n.ID, To: n.ID, Want: &ref})
	}
}

// bring answers a request for a whole body, if it is available.
func (net *Net) bring(n *Node, ref protocol.BodyRef) {
	body := net.gather(n, ref)
	if body == nil {
		net.tracef("%s cannot make the body of %d/%d whole", n.ID, ref.Index, ref.Term)
		return
	}
	net.tracef("%s makes the body of %d/%d whole", n.ID, ref.Index, ref.Term)
	net.Step(n.ID, protocol.BodyMade{Index: ref.Index, Term: ref.Term, Body: body})
}

// inspectBodies determines the bodies of a snapshot that are missing on a member, and informs its core. Bodies in
// pending writes are found when they are reconstructed.
func (net *Net) inspectBodies(n *Node) {
	n.lacks = n.lacks[:0]
	n.maxK = 0
	for i := protocol.Index(1); i <= n.Applied; i++ {
		if e, ok := net.judge.chosen[i]; ok && e.BodySize > 0 {
			n.maxK = max(n.maxK, e.K)
			if n.form(&e) == protocol.FormNone {
				n.lacks = append(n.lacks, i)
			}
		}
	}
	if n.told = (protocol.Bodies{Missing: -1}); n.Applied > 0 {
		net.reportBodies(n)
	}
}

// commitsBodies records the bodies of entries that were just committed on a member.
func (net *Net) commitsBodies(n *Node, entries []protocol.Entry) {
	for i := range entries {
		if e := &entries[i]; e.BodySize > 0 {
			n.maxK = max(n.maxK, e.K)
			if e.Form == protocol.FormNone && n.form(e) == protocol.FormNone && !slices.Contains(n.lacks, e.Index) {
				n.lacks = append(n.lacks, e.Index)
			}
		}
	}
}

// reportBodies informs a member's core of the state of its bodies, if it changed.
func (net *Net) reportBodies(n *Node) {
	if n.Core == nil || n.Applied == 0 {
		return
	}
	in := protocol.Bodies{Missing: len(n.lacks), MaxK: n.maxK, Restripes: n.Config.Restripes}
	for i := protocol.Index(1); i <= n.Applied; i++ {
		if e, ok := net.judge.chosen[i]; ok && e.BodySize > 0 && n.form(&e) != protocol.FormWhole {
			in.Partial = max(in.Partial, e.K)
		}
	}
	if in != n.told {
		n.told = in
		n.Core.Step(n.Now, in, &n.eff)
	}
}

// Backfill makes the bodies of committed entries that are missing on a member, if they are available: its own row, or
// the whole if the body is not coded or must be whole there.
func (net *Net) Backfill(id protocol.MemberID) {
	n := net.Node(id)
	if n.Core == nil || len(n.writes) > 0 {
		return
	}
	m := n.Config.Find(id)
	n.lacks = slices.DeleteFunc(n.lacks, func(i protocol.Index) bool {
		e := net.judge.chosen[i]
		return n.form(&e) != protocol.FormNone || m != nil && net.restore(n, &e, m)
	})
	for i := protocol.Index(1); m != nil && m.WholeAbove > 0 && i <= n.Applied; i++ {
		if e, ok := net.judge.chosen[i]; ok && e.BodySize > 0 && e.K > m.WholeAbove && n.form(&e) != protocol.FormWhole {
			net.restore(n, &e, m)
		}
	}
	net.reportBodies(n)
}

// restore makes the form of a body that a member should hold, if that is available.
func (net *Net) restore(n *Node, e *protocol.Entry, m *protocol.Member) bool {
	body := net.gather(n, e.Ref(1))
	if body == nil {
		return false
	}
	h := held{e.Term, protocol.FormWhole, body}
	if e.Coded() && (m.WholeAbove == 0 || e.K <= m.WholeAbove) {
		h.form = protocol.RowForm(m.Slot)
		h.bytes = net.row(body, e.K, h.form)
	}
	n.bodies[e.Index] = h
	return true
}

// checkBodies verifies that, without any minority, every committed body from i on is available
// (docs/internals/craft.md, C1) under a configuration. Crashed members count with their disks.
func (net *Net) checkBodies(i protocol.Index, c *protocol.Config, fresh bool) {
	holds := net.holders(c, fresh)
	for ; i <= net.judge.highest; i++ {
		e, ok := net.judge.chosen[i]
		if !ok || e.BodySize == 0 {
			continue
		}
		if !holds(int(e.K), net.ReadQuorum, func(id protocol.MemberID) protocol.Form {
			if n := net.Node(id); n != nil {
				return n.form(&e)
			}
			return protocol.FormNone
		}) {
			var forms []string
			for _, n := range net.Nodes {
				forms = append(forms, n.ID.String()+": "+n.form(&e).String())
			}
			net.t.Fatalf("the body of %d/%d, k=%d, is committed but not durable with %s: %v", e.Index, e.Term, e.K,
				DescribeConfig(c), forms)
		}
	}
}

// holders reports whether enough voters of a configuration have a body: of an entry that was just committed (fresh),
// or of any.
func (net *Net) holders(c *protocol.Config,
	fresh bool) func(k, read int, form func(protocol.MemberID) protocol.Form) bool {
	set := quorum.Of(c)
	if !net.Grid.Majority() { // bodies are whole
		return func(_, _ int, form func(protocol.MemberID) protocol.Form) bool {
			return net.Grid.Elects(set).Covered(func(id protocol.MemberID) bool { return form(id) == protocol.FormWhole })
		}
	}
	set.Need = net.WriteQuorum
	if fresh {
		return set.Durable
	}
	return set.Kept
}
