package body

import (
	"bytes"
	"slices"

	"github.com/braidlog/braid/internal/erasure"
	"github.com/braidlog/braid/protocol"
)

// decode joins subsets of the fragments until one fits the body's digest. Each subset includes the
// last fragment, which is new. If all fragments are good, the first subset fits.
func (a *gathering) decode() []byte {
	need := a.need()
	if a.distinct() < need {
		return nil
	}
	tries := gatherTries
	last := len(a.fragments) - 1
	return a.try([]erasure.Row{row(&a.fragments[last])}, last, &tries)
}

func row(p *piece) erasure.Row {
	r, _ := p.Form.Row()
	return erasure.Row{R: r, Bytes: p.Bytes}
}

// try completes chosen with fragments that come before the one numbered before. It tries every way
// that there is, as long as tries are left.
func (a *gathering) try(chosen []erasure.Row, before int, tries *int) []byte {
	if len(chosen) == a.need() {
		*tries--
		body, err := erasure.Join(int(a.Ref.Size), a.Ref.K, chosen)
		if err == nil && protocol.Digest(body) == a.Ref.Digest {
			return body
		}
		a.failed++
		return nil
	}
	for i := before - 1; i >= 0 && *tries > 0; i-- {
		next := row(&a.fragments[i])
		if slices.ContainsFunc(chosen, func(r erasure.Row) bool { return r.R == next.R }) {
			continue
		}
		if body := a.try(append(slices.Clip(chosen), next), i, tries); body != nil {
			return body
		}
	}
	return nil
}

// wrong lists the members whose fragments are not of the body that was found. It compares them
// only if there was any doubt.
func (a *gathering) wrong(body []byte) []protocol.MemberID {
	if a.failed == 0 {
		return a.bad
	}
	for i := range a.fragments {
		p := &a.fragments[i]
		r, _ := p.Form.Row()
		if good, err := erasure.Cut(body, a.Ref.K, r); err != nil || !bytes.Equal(good, p.Bytes) {
			a.bad = append(a.bad, p.from)
		}
	}
	return a.bad
}
