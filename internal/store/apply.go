package store

import (
	"errors"
	"fmt"

	"google.golang.org/protobuf/proto"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/server/v3/etcdserver/api/membership"
	"go.etcd.io/etcd/server/v3/etcdserver/apply"
	etcderrors "go.etcd.io/etcd/server/v3/etcdserver/errors"
)

// Command is one command and its place in the order.
type Command struct {
	// Position is strictly increasing and equal on every member. Positions may be left out.
	Position uint64
	// Data was made by this package. It is not retained after Apply returns.
	Data []byte
	// Body names the command's body, which applying does without; nil if it has none.
	Body *BodyRef
	// Apply sets Result to a *[Result], or leaves it if the state already includes the command.
	Result any
}

// Result is the result of a command.
type Result struct {
	// Resp is etcd's response. Its header holds the revision at most.
	Resp proto.Message
	// Err is one of etcd's errors (mvcc, lease, auth, etcdserver/errors), [ErrBadCommand] or
	// [ErrNotPrimary].
	Err error
	// Physical, of a compaction, is closed when the old revisions are gone.
	Physical <-chan struct{}
	// replaced is closed when the state is not that of the command any more.
	replaced <-chan struct{}
	// AuthRevision, of AuthEnable, is that of the users and roles with which it took effect.
	AuthRevision uint64
}

// Apply applies commands in order and sets their results. Commands at positions that the state
// already includes are skipped, so applying a part of the order again does no harm. An error is
// fatal (see [FatalError]): some of the commands may not be applied then. If the disk has no space
// for what they write, Apply waits; see [Store.Interrupt].
//
// With a [DamageError], too, some may not be applied, and no result counts, because results may
// come from damaged data. Then the store waits for Restore.
func (s *Store) Apply(commands []Command) error {
	err := s.damage.Err()
	if err == nil {
		err = s.awaitSpace(commands)
	}
	if err == nil {
		err = s.latch.guard(func() error { return s.applyEntries(commands) })
	}
	if err == nil {
		err = s.damage.Err()
	}
	if err != nil {
		for i := range commands {
			commands[i].Result = nil
		}
		return err
	}
	s.positions.reach(s.positions.applied.Load())
	return nil
}

// applyEntries has its name because etcd's checks look for it on the stack (docs/internals/etcd.md, rule 1).
func (s *Store) applyEntries(commands []Command) error {
	for i := range commands {
		c := &commands[i]
		if c.Body != nil {
			s.db.refs.received(*c.Body)
		}
		if c.Position <= s.positions.applied.Load() {
			continue
		}
		s.db.index.SetConsistentApplyingIndex(c.Position, term)
		result := s.applyOne(c)
		// Not every command writes; the index moves all the same.
		if s.db.index.ConsistentIndex() < c.Position {
			s.db.index.SetConsistentIndex(c.Position, term)
		}
		s.positions.applied.Store(c.Position)
		c.Result = result
	}
	return nil
}

// applyOne carries out one command. What it does depends on the state and the command only.
func (s *Store) applyOne(c *Command) *Result {
	if len(c.Data) == 0 {
		return &Result{}
	}
	if result := s.applyPlain(c); result != nil {
		return result
	}
	if result := s.applyPlainGrant(c); result != nil {
		return result
	}
	cmd, err := decode(c.Data)
	if err == nil {
		err = cmd.setBody(c.Body)
	}
	if err != nil {
		return &Result{Err: err}
	}
	switch cmd.kind {
	case kindClaim:
		cmd.claim.position = c.Position
		s.leases.applyClaim(cmd.claim)
		return &Result{}
	case kindClose:
		s.applyClose(cmd.number)
		return &Result{}
	case kindQuota:
		return s.applyQuota(cmd.quota)
	case kindCount:
		return s.applyCount(cmd.prefix)
	case kindGuarded, kindNumbered:
		if cmd.guard != s.leases.position.Load() {
			return &Result{Err: ErrNotPrimary}
		}
		cmd.request.Header = s.rights.rootHeader()
		if cmd.kind == kindNumbered {
			return s.applyNumbered(c.Position, &cmd)
		}
	}
	if cmd.request.Authenticate != nil {
		// The token will name the consistent index, and members that see the token wait for
		// that position: it has to be this one. Nothing is written, so it may move now.
		s.db.index.SetConsistentIndex(c.Position, term)
	}
	if err := (comparer{s.kv, s.db.refs}).prepare(&cmd); err != nil {
		return &Result{Err: err}
	}
	if len(cmd.values) > 0 {
		large := cmd
		s.kv.command = &large
		defer s.kv.done()
	}
	if cmd.accepted {
		return s.applyAccepted(cmd.request)
	}
	return s.applyRequest(cmd.request)
}

// applyNumbered applies a checkpoint of the primary lessor. etcd's lessor writes each lease in a transaction of its
// own. The position comes with the last transaction, which has the number. So a checkpoint that a crash interrupts is
// applied again, which does no harm.
func (s *Store) applyNumbered(position uint64, cmd *command) *Result {
	if cmd.number <= s.leases.newest.number {
		return &Result{Err: ErrOvertaken}
	}
	if cmd.request.LeaseCheckpoint == nil {
		return &Result{Err: fmt.Errorf("%w: it is no checkpoint", ErrBadCommand)}
	}
	s.db.index.SetConsistentApplyingIndex(s.positions.applied.Load(), term)
	result := s.applyRequest(&pb.InternalRaftRequest{
		Header: cmd.request.Header, LeaseCheckpoint: cmd.request.LeaseCheckpoint,
	})
	s.db.index.SetConsistentApplyingIndex(position, term)
	s.leases.putNumber(cmd.number)
	s.lessor.tookEffect(cmd.number)
	return result
}

func (s *Store) applyRequest(r *pb.InternalRaftRequest) *Result {
	if r.Alarm != nil {
		if resp, mine := s.limits.alarms.apply(r.Alarm); mine {
			s.damage.alarm.Store(s.limits.raised(pb.AlarmType_CORRUPT))
			return &Result{Resp: resp}
		}
	}
	if err := s.checkPrefixesApplying(r); err != nil {
		return &Result{Err: err}
	}
	out := s.applyByEtcd(r)
	if out == nil {
		return &Result{Err: fmt.Errorf("%w: etcd has no answer", ErrBadCommand)}
	}
	if errors.Is(out.Err, etcderrors.ErrNoSpace) {
		s.limits.noSpaceFound()
	}
	result := &Result{Resp: out.Resp, Err: out.Err, Physical: out.Physc, replaced: s.replaced}
	if r.AuthEnable != nil {
		result.AuthRevision = s.rights.auth.Revision()
	}
	return result
}

// applyByEtcd has etcd's appliers carry out a request.
func (s *Store) applyByEtcd(r *pb.InternalRaftRequest) (out *apply.Result) {
	carryOut := func() {
		out = s.applier.Apply(&apply.InternalRaftRequestWrapper{InternalRaftRequest: r}, membership.ApplyBoth)
	}
	if changesUsers(r) {
		s.rights.change(carryOut)
	} else {
		carryOut()
	}
	return out
}
