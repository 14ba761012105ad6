package server

import (
	"context"
	"errors"
	"time"

	"github.com/braidlog/braid"
	"github.com/braidlog/braid/server/internal/metrics"
)

// passage is the context of a unary call. It notes when the call passed its stages.
type passage struct {
	context.Context
	began time.Time
	// kind is what the call wanted of the log last, and handed when it did, since began.
	kind   passageKind
	handed time.Duration
	unsent bool             // the log did not come to give the command to the protocol
	wrote  braid.Stages     // since handed
	read   braid.ReadStages // since handed
}

type passageKind uint8

const (
	passedNothing passageKind = iota // it did not need the log
	passedWrite
	passedRead
)

type passageKey struct{}

// Value implements context.Context.
func (p *passage) Value(key any) any {
	if key == (passageKey{}) {
		return p
	}
	return p.Context.Value(key)
}

// passageOf is the passage of a call; nil: it has none.
func passageOf(ctx context.Context) *passage {
	p, _ := ctx.Value(passageKey{}).(*passage)
	return p
}

// writes notes that the call has the log order a command, and returns where the log notes its stages.
func (p *passage) writes() *braid.Stages {
	if p == nil {
		return nil
	}
	p.kind, p.handed, p.unsent, p.wrote = passedWrite, time.Since(p.began), false, braid.Stages{}
	return &p.wrote
}

// fails notes that the log did not order the command.
func (p *passage) fails(err error) {
	if p != nil {
		p.unsent = errors.Is(err, braid.ErrNotSent)
	}
}

// reads is writes for a read.
func (p *passage) reads() *braid.ReadStages {
	if p == nil {
		return nil
	}
	p.kind, p.handed, p.read = passedRead, time.Since(p.began), braid.ReadStages{}
	return &p.read
}

// count counts the stages of a call that took so long, if all are known.
func (p *passage) count(m *metrics.Counts, took time.Duration) {
	switch {
	case p.kind == passedWrite && p.wrote.Applied > 0:
		m.Wrote(p.handed, took-p.handed-p.wrote.Applied)
	case p.kind == passedRead && p.read.Served > 0:
		m.Read(p.handed, took-p.handed-p.read.Served)
	}
}

// passed is a stage of a call, since the call began.
type passed struct {
	stage    string
	from, to time.Duration
}

// stageLog is the time in the log if its stages are not known: see docs/using/operations.md.
const stageLog = "log"

// stages are those of a call that took so long. All but "append", which is a part of "replicate", follow each other.
func (p *passage) stages(took time.Duration) []passed {
	if p == nil || p.kind == passedNothing {
		return nil
	}
	all := make([]passed, 1, 7)
	all[0] = passed{"check", 0, p.handed}
	at := p.handed
	next := func(stage string, to time.Duration) {
		all = append(all, passed{stage, at, to})
		at = to
	}
	w, r := &p.wrote, &p.read
	switch {
	case p.kind == passedWrite && w.Applied > 0:
		next("queue", p.handed+w.Proposed)
		if w.Appended > 0 {
			all = append(all, passed{"append", at, p.handed + w.Appended})
		}
		next("replicate", p.handed+w.Committed)
		next("order", p.handed+w.Ordered)
		next("apply", p.handed+w.Applied)
		next("answer", took)
	case p.kind == passedWrite && w.Proposed > 0: // it failed there
		next("queue", p.handed+w.Proposed)
		next("replicate", took)
	case p.kind == passedWrite && p.unsent:
		next("queue", took)
	case p.kind == passedRead && r.Served > 0:
		next("queue", p.handed+r.Asked)
		next("confirm", p.handed+r.Confirmed)
		next("wait", p.handed+r.Served)
		next("read", took)
	default:
		next(stageLog, took)
	}
	return all
}
