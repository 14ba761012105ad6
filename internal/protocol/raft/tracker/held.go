package tracker

import (
	"cmp"
	"slices"

	"github.com/braidlog/braid/protocol"
)

// held is in what form a peer's disk holds the body of an entry.
type held struct {
	Index protocol.Index
	Form  protocol.Form
}

// Holds returns in what form p's disk certainly holds the body of a coded entry.
func (p *Progress) Holds(i protocol.Index) protocol.Form {
	if k, ok := p.find(i); ok {
		return p.Held[k].Form
	}
	return protocol.FormNone
}

func (p *Progress) find(i protocol.Index) (int, bool) {
	return slices.BinarySearchFunc(p.Held, i, func(h held, i protocol.Index) int { return cmp.Compare(h.Index, i) })
}

// Note takes in what p holds and reports whether it is more than was known.
func (p *Progress) Note(i protocol.Index, f protocol.Form) bool {
	k, ok := p.find(i)
	switch {
	case !ok && f.Better(protocol.FormNone):
		p.Held = slices.Insert(p.Held, k, held{i, f})
	case ok && f.Better(p.Held[k].Form):
		p.Held[k].Form = f
	default:
		return false
	}
	return true
}

// ForgetHeld forgets what is known of entries up to the commit index.
func (p *Progress) ForgetHeld(commit protocol.Index) {
	n, found := p.find(commit)
	if found {
		n++
	}
	p.Held = slices.Delete(p.Held, 0, n)
}
