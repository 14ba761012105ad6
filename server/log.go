package server

import (
	"context"

	"github.com/braidlog/braid"
)

// Log is the replicated log as the services need it. *braid.Node is one.
type Log interface {
	// Propose orders a command and returns the result of applying it here.
	Propose(ctx context.Context, command []byte) (any, error)
	// ProposeAsync is Propose that calls back, once, unless it returns an error.
	ProposeAsync(command []byte, done func(result any, err error)) error
	// ProposeWith is Propose with options. A body must not change again. The answer may be a *braid.Accepted.
	ProposeWith(ctx context.Context, command, body []byte, o braid.ProposeOptions) (any, error)
	// Client returns a client whose commands take effect in the order in which it proposed them.
	Client() *braid.Client
	// AnswersEarly reports whether commands may be answered before they are applied.
	AnswersEarly() bool
	// MayAnswerEarly reports whether that may be so on any member, now or later.
	MayAnswerEarly() bool
	// Body returns the bytes of a body, which no one may change.
	Body(ctx context.Context, ref braid.BodyRef) ([]byte, error)
	// ReleaseBody deletes a body to which nothing refers any more.
	ReleaseBody(ref braid.BodyRef)
	// ReadBarrier returns when this member has applied everything acknowledged before.
	ReadBarrier(ctx context.Context) error
	// Read is ReadBarrier with options.
	Read(ctx context.Context, o braid.ReadOptions) error
	ChangeMembers(ctx context.Context, changes ...braid.Change) error
	TransferLeader(ctx context.Context, to braid.MemberID) error
	// Reshape changes the number of instances from which the log is merged.
	Reshape(ctx context.Context, instances int) error
	// Tune changes settings that members share, and Tunables lists them.
	Tune(ctx context.Context, t braid.Tuning) (braid.Profile, error)
	Tunables() []braid.Tunable
	// Switch changes the protocol, and PlanSwitch returns what that would do.
	Switch(ctx context.Context, s braid.Switch) (braid.Profile, error)
	PlanSwitch(ctx context.Context, s braid.Switch) (braid.SwitchPlan, error)
	// Advise returns which change would fit the load better.
	Advise(ctx context.Context) (braid.Advice, error)
	// Ask sends a request to another member, whose Options.Answer replies.
	Ask(ctx context.Context, to braid.MemberID, request []byte) ([]byte, error)
	// CheckState reports that the state may be damaged.
	CheckState()
	Status() braid.Status
	// DiskNeed returns how many bytes should be free for the log.
	DiskNeed() int64
	// Changes holds a token whenever leader, term or membership changed.
	Changes(ctx context.Context) <-chan struct{}
	// SetNet changes how links are emulated.
	SetNet(net string) error
	// Drain makes this member lead nothing, or lets it lead again.
	Drain(on bool)
	// HandOver transfers what this member leads to others, before it stops.
	HandOver(ctx context.Context)
	Done() <-chan struct{}
	Err() error
	Close() error
}

var _ Log = (*braid.Node)(nil)
