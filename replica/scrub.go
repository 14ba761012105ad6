package replica

import (
	"time"

	"github.com/braidlog/braid/member"
	"github.com/braidlog/braid/protocol"
	"github.com/braidlog/braid/wal"
)

const (
	// scrubChunk is how many bodies are listed at a time.
	scrubChunk = 4096
	// censusBit tells the contexts of questions who holds a body from those for its bytes.
	censusBit = 1 << 63
	// maxCensuses is how many bodies are looked into at the same time.
	maxCensuses = 64
)

// scrubBodies reads all bodies on disk, slowly, so that damage is found while others can
// still repair it. spend waits for as long as so many bytes may take; false: the member stops.
func (b *bodies) scrubBodies(spend func(int64) bool) bool {
	for chunk := b.after(protocol.BodyRef{}); len(chunk) > 0; chunk = b.after(chunk[len(chunk)-1]) {
		for _, ref := range chunk {
			if !spend(b.verify(ref)) {
				return false
			}
		}
	}
	return true
}

// after lists bodies after one, in order.
func (b *bodies) after(last protocol.BodyRef) (refs []protocol.BodyRef) {
	b.store.Each(func(held wal.Body) bool {
		ref := member.RefOf(&held)
		later := ref.Instance > last.Instance || ref.Instance == last.Instance && ref.Index > last.Index
		if later && held.Form != uint8(protocol.FormNone) {
			refs = append(refs, ref)
		}
		return len(refs) < scrubChunk
	})
	return refs
}

// verify reads a body and has it repaired if it is damaged. It returns how much was read.
func (b *bodies) verify(ref protocol.BodyRef) int64 {
	have := b.local(ref)
	if b.r.opt.TrimWhole && have.Form == protocol.FormWhole && ref.K > 1 && b.cold(ref) {
		b.mu.Lock()
		if len(b.trims) < maxCensuses {
			b.trims = append(b.trims, ref)
		}
		b.mu.Unlock()
		poke(b.wake)
	}
	return int64(len(have.Bytes))
}

// cold reports whether a body is committed, alive, and not needed any more to bring others
// up to date.
func (b *bodies) cold(ref protocol.BodyRef) bool {
	b.kmu.Lock()
	defer b.kmu.Unlock()
	k := b.of(ref.Instance)
	return k != nil && k.retention.Cold(ref)
}

// trim asks who else holds these bodies, and gives up questions that are too old.
func (b *bodies) trim(now time.Duration, refs []protocol.BodyRef) {
	for len(b.censuses) > 0 && (b.censuses[0].Until <= now || len(b.censuses) > maxCensuses) {
		b.censuses = b.censuses[1:]
	}
	for _, ref := range refs {
		config := b.r.apply.config(ref.Instance)
		b.context++
		n := member.NewCensus(ref, b.context|censusBit, now+bodyPatience, &config, b.r.opt.Self)
		if n == nil {
			continue
		}
		b.censuses = append(b.censuses, n)
		for _, m := range n.Questions() {
			b.send(m)
		}
	}
}

// counted takes an answer to trim's questions; when enough members hold a body, the whole
// copy becomes a row.
func (b *bodies) counted(m *protocol.Message) {
	for i, n := range b.censuses {
		if n.Receive(m); !n.Enough() {
			continue
		}
		b.censuses = append(b.censuses[:i:i], b.censuses[i+1:]...)
		have := b.local(n.Ref)
		if own, err := have.Cut(n.Ref.K, n.Own); err == nil && have.Form == protocol.FormWhole && own != nil {
			b.replace(n.Ref, n.Own, own)
		}
		return
	}
}

// replace makes a row durable in place of the whole.
func (b *bodies) replace(ref protocol.BodyRef, form protocol.Form, row []byte) {
	b.inLoop(ref, func(upgrading bool) {
		if !b.cold(ref) || upgrading {
			return
		}
		b.kmu.Lock()
		k := b.of(ref.Instance)
		b.kmu.Unlock()
		may := false
		b.with(k, func(t *member.Retention) { may = t.Trim(ref) })
		if !may {
			return // it is to be held whole, since the question was asked
		}
		b.r.writer.Submit([]wal.Record{member.BodyRecord(ref, form, row)}, func(err error) {
			if err != nil {
				b.r.fail(err)
				return
			}
			b.with(k, func(t *member.Retention) { t.Stored(ref) })
			b.count.trimmed.Add(1)
		})
	})
}

// answerCensus says what is held of a body, once that is durable.
func (b *bodies) answerCensus(answer *protocol.Message) {
	b.kmu.Lock()
	h := &answer.Holdings[0]
	k := b.of(answer.Instance)
	lost := k == nil || k.retention.Missing(protocol.BodyRef{Instance: answer.Instance, Index: h.Index, Term: h.Term})
	b.kmu.Unlock()
	if lost {
		*answer = protocol.Message{
			Type: answer.Type, Instance: answer.Instance, From: answer.From, To: answer.To, Context: answer.Context, Reject: true,
			Holdings: []protocol.Holding{{Index: h.Index, Term: h.Term}},
		}
	}
	b.r.writer.Submit(nil, func(err error) {
		if err == nil {
			b.send(answer)
		}
	})
}
