package member

import (
	"slices"
	"time"
)

// Proposals collects a member's commands into batches until an instance takes them. While batches
// are pending the next one grows. Not safe for concurrent use.
type Proposals struct {
	MaxBatch int   // payload bytes at which a batch is full
	MaxCount int   // commands at which a batch is full; 0: no limit
	MaxBytes int64 // of everything that is proposed and not settled
	// Free is called with each settled batch. It is to call Settled in the end.
	Free func(*Batch)

	full []*Batch // oldest first; each was open once
	open *Batch   // nil or with at least one command
	// bytes is the payload of all batches not settled yet; ≤ MaxBytes plus one command.
	bytes int64
	hint  struct{ bytes, commands int } // the next batch's likely size: a bit more than the last one's
	err   error
}

// Reserve counts the cost of a command that is to be proposed, or refuses the command. Release is
// its opposite.
func (p *Proposals) Reserve(cost int64) error {
	switch {
	case p.err != nil:
		return p.err
	case p.bytes+cost > p.MaxBytes && p.bytes > 0:
		return ErrOverloaded
	}
	p.bytes += cost
	return nil
}

func (p *Proposals) Release(cost int64) { p.bytes -= cost }

// Settled gives back a settled batch's bytes.
func (p *Proposals) Settled(b *Batch) { p.bytes -= b.Cost() }

// AddWhole takes a batch that is complete and whose cost is reserved already. An error says that
// there are no proposals any more. The batch is not settled then.
func (p *Proposals) AddWhole(b *Batch) error {
	if p.err == nil {
		p.full = append(p.full, b)
	}
	return p.err
}

// NewBodyBatch makes a batch for a single command with a body.
func NewBodyBatch(born time.Duration, command, body []byte, done Done) *Batch {
	b := NewBatch(born, len(command)+8, 1)
	b.Add(command, done)
	b.SetBody(body)
	return b
}

// AddBody takes a batch of NewBodyBatch. Commands that came before it stay before it. On an error
// it is not taken, and not settled.
func (p *Proposals) AddBody(b *Batch) error {
	if err := p.Reserve(b.Cost()); err != nil {
		return err
	}
	b.Free = p.Free
	if p.open != nil {
		p.full = append(p.full, p.open)
		p.open = nil
	}
	p.full = append(p.full, b)
	return nil
}

// Add puts a command into the batch that is open. fresh says that the command began a batch, so
// that an instance has to look. Add asks for the time only then.
func (p *Proposals) Add(now func() time.Duration, command []byte, done Done) (fresh bool, err error) {
	if err := p.Reserve(CommandCost(command)); err != nil {
		return false, err
	}
	b := p.open
	if b != nil && len(b.Entry.Payload)+len(command) > p.MaxBatch {
		p.full = append(p.full, b)
		b = nil
	}
	if fresh = b == nil; fresh {
		b = NewBatch(now(), max(len(command)+8, min(p.hint.bytes, p.MaxBatch)), max(1, p.hint.commands))
		b.Free = p.Free
		p.open = b
	}
	b.Add(command, done)
	if p.MaxCount > 0 && int(b.Entry.Count) >= p.MaxCount {
		p.full = append(p.full, b)
		p.open = nil
	}
	return fresh, nil
}

// Again puts batches that were taken before in front of all others. It returns an error as
// AddWhole does.
func (p *Proposals) Again(batches []*Batch) error {
	if p.err == nil {
		p.full = append(slices.Clone(batches), p.full...)
	}
	return p.err
}

// Waiting returns the bytes of the batch that Take would return, 0 if there is none, and whether
// it is full.
func (p *Proposals) Waiting() (bytes int, full bool) {
	switch {
	case len(p.full) > 0:
		return p.full[0].Size(), true
	case p.open != nil:
		return len(p.open.Entry.Payload), false
	}
	return 0, false
}

// Take returns the oldest batch, not yet sealed, or nil.
func (p *Proposals) Take() *Batch {
	var b *Batch
	switch {
	case len(p.full) > 0:
		b = p.full[0]
		p.full[0] = nil
		p.full = p.full[1:]
	case p.open != nil:
		b, p.open = p.open, nil
	default:
		return nil
	}
	if b.Entry.BodySize > 0 {
		return b // it says nothing about the next one
	}
	p.hint.bytes = len(b.Entry.Payload) + len(b.Entry.Payload)/4
	p.hint.commands = len(b.Done) + len(b.Done)/4
	return b
}

// Expired takes out batches that were never taken and are older than limit.
func (p *Proposals) Expired(now, limit time.Duration) (out []*Batch) {
	for len(p.full) > 0 && now-p.full[0].Born > limit {
		out = append(out, p.full[0])
		p.full = p.full[1:]
	}
	if len(p.full) == 0 && p.open != nil && now-p.open.Born > limit {
		out = append(out, p.open)
		p.open = nil
	}
	return out
}

// Close refuses further commands. It returns the batches that wait.
func (p *Proposals) Close(err error) []*Batch {
	out := p.full
	if p.open != nil {
		out = append(out, p.open)
	}
	p.full, p.open, p.err = nil, nil, err
	return out
}

// Err is why there are no proposals any more, nil if there are.
func (p *Proposals) Err() error { return p.err }

// Bytes is the cost of everything not settled.
func (p *Proposals) Bytes() int64 { return p.bytes }
