package raft

import (
	"cmp"
	"slices"

	"github.com/braidlog/braid/protocol"
)

// held is in what form a peer's disk holds the body of an entry.
type held struct {
	index protocol.Index
	form  protocol.Form
}

// holds returns in what form p's disk certainly holds the body of a coded entry.
func (p *progress) holds(i protocol.Index) protocol.Form {
	if k, ok := p.find(i); ok {
		return p.held[k].form
	}
	return protocol.FormNone
}

func (p *progress) find(i protocol.Index) (int, bool) {
	return slices.BinarySearchFunc(p.held, i, func(h held, i protocol.Index) int { return cmp.Compare(h.index, i) })
}

// note takes in what p holds and reports whether it is more than was known.
func (p *progress) note(i protocol.Index, f protocol.Form) bool {
	k, ok := p.find(i)
	switch {
	case !ok && f.Better(protocol.FormNone):
		p.held = slices.Insert(p.held, k, held{i, f})
	case ok && f.Better(p.held[k].form):
		p.held[k].form = f
	default:
		return false
	}
	return true
}

// forgetHeld forgets what is known of entries up to the commit index.
func (p *progress) forgetHeld(commit protocol.Index) {
	n, found := p.find(commit)
	if found {
		n++
	}
	p.held = slices.Delete(p.held, 0, n)
}
