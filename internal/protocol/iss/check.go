package iss

import (
	"errors"
	"fmt"
	"slices"

	"github.com/braidlog/braid/internal/protocol/paxos"
	"github.com/braidlog/braid/internal/protocol/slots"
	"github.com/braidlog/braid/protocol"
)

// Check is protocol.Core's.
func (s *ISS) Check() error {
	for _, check := range [...]func(*ISS) error{checkLog, checkEpoch, checkQueue, checkTold} {
		if err := check(s); err != nil {
			return fmt.Errorf("iss: member %s epoch %d log %d: %w", s.cfg.Self, s.number(), s.log.Last(), err)
		}
	}
	for _, b := range s.parts {
		if err := checkSegment(b); err != nil {
			return fmt.Errorf("iss: member %s epoch %d log %d: segment of %s: %w", s.cfg.Self, s.number(), s.log.Last(),
				b.leader, err)
		}
	}
	return nil
}

func checkLog(s *ISS) error {
	if err := s.log.Check(); err != nil {
		return err
	}
	if err := s.disk.Check(s.log.Last()); err != nil {
		return err
	}
	switch h := &s.hard; {
	case s.committed > s.settled() || s.committed < s.settled() && s.out != nil:
		return fmt.Errorf("settled %d, handed over %d", s.settled(), s.committed)
	case h.logged > s.log.Last() || h.commit > h.logged:
		return fmt.Errorf("disk: written %d of %d, decided %d", h.logged, s.log.Last(), h.commit)
	case len(s.conf.Members) > 0:
		return errors.Join(s.conf.Validate(), slots.Fit(s.quorums, &s.conf), checkProfile(s))
	}
	return nil
}

// checkProfile verifies that the settings are those of the active profile, unless this member stops because of that.
func checkProfile(s *ISS) error {
	if s.stopped {
		return nil
	}
	return s.tuning.Check(&s.epochConf.Profile)
}

func checkEpoch(s *ISS) error {
	if s.epoch == nil {
		return nil
	}
	if err := s.history.Check(); err != nil {
		return err
	}
	switch e := s.history.Epoch(); {
	case s.fillAt > 0 && (s.own == nil || !s.own.zero() || s.fillAt > s.now+s.opt.skipWait):
		return fmt.Errorf("free slots wait until %s, it is %s", s.fillAt, s.now)
	case s.unsettled > 0 && s.unsettled != s.log.ConfigAt:
		return fmt.Errorf("the change %d was made before %d was settled (R2)", s.log.ConfigAt, s.unsettled)
	case e != s.epoch || s.history.Next() > s.log.Last()+1:
		return fmt.Errorf("the history is at slot %d of epoch %d", s.history.Next(), e.Number)
	case s.log.Last()+1 < e.First || s.log.Last() >= e.Last || len(s.parts) != len(e.Leaders):
		return fmt.Errorf("epoch of the slots %d to %d with %d segments", e.First, e.Last, len(s.parts))
	}
	return nil
}

func checkQueue(s *ISS) error {
	queued := 0
	for i := range s.proposals.queue {
		queued += s.proposals.queue[i].Bytes()
	}
	if queued != s.proposals.queued {
		return fmt.Errorf("%d bytes wait, says %d", queued, s.proposals.queued)
	}
	return nil
}

func checkTold(s *ISS) error {
	told := 0
	for _, m := range s.catchUp.pending {
		told += paxos.Bytes(m.Entries)
	}
	if told != s.catchUp.pendingBytes || told > s.cfg.MaxInflightBytes {
		return fmt.Errorf("%d bytes were told early, says %d", told, s.catchUp.pendingBytes)
	}
	for _, o := range s.others {
		if o.has > o.commit {
			return fmt.Errorf("%s has %d, more than it ever said: %d", o.id, o.has, o.commit)
		}
		if err := o.sending.check(); err != nil {
			return fmt.Errorf("telling %s: %w", o.id, err)
		}
	}
	return nil
}

// check verifies that flights follow each other and the request.
func (t *sending) check() error {
	bytes, after := 0, t.after
	for _, f := range t.flights {
		if f.Last <= after {
			return fmt.Errorf("a message up to %d, after %d", f.Last, after)
		}
		bytes, after = bytes+f.Bytes, f.Last
	}
	if bytes != t.bytes || len(t.flights) > t.window {
		return fmt.Errorf("%d messages of %d bytes in a window of %d, says %d bytes", len(t.flights), bytes, t.window,
			t.bytes)
	}
	return nil
}

// checkSegment verifies the invariants of a segment.
func checkSegment(b *broadcast) error {
	if err := checkDecided(b); err != nil {
		return err
	}
	if err := b.acc.Check(b.upto); err != nil {
		return err
	}
	if b.prop.Phase != paxos.Idle {
		if err := b.prop.Check(b.upto); err != nil {
			return err
		}
	}
	if most := maxReach(b.votes.reach); most != b.votes.most {
		return fmt.Errorf("others have all up to %d, says %d", most, b.votes.most)
	}
	if err := b.gather.Check(b.s.cfg.Self); err != nil {
		return err
	}
	return checkProposer(b)
}

// maxReach is the highest slot that any member has reached.
func maxReach(reach map[protocol.MemberID]protocol.Index) (most protocol.Index) {
	for _, at := range reach { // any order: the highest counts
		most = max(most, at)
	}
	return most
}

func checkDecided(b *broadcast) error {
	last := b.s.log.Last()
	decided, ahead := 0, 0
	for i := b.seg.After(last); i <= b.seg.Last; i = b.seg.After(i) {
		_, known := b.decided[i]
		if known {
			decided++
		}
		if b.acc.Ahead[i] {
			ahead++
		}
		if known != (i <= b.upto || b.acc.Ahead[i]) {
			return fmt.Errorf("slot %d: decided %t, and all up to %d", i, known, b.upto)
		}
	}
	if decided != len(b.decided) || ahead != len(b.acc.Ahead) {
		return fmt.Errorf("%d slots are decided and %d ahead after %d, says %d and %d", decided, ahead, last, len(b.decided),
			len(b.acc.Ahead))
	}
	if next := b.seg.After(b.upto); next <= b.seg.Last && b.isDecided(next) {
		return fmt.Errorf("slot %d is decided, says %d", next, b.upto)
	}
	return nil
}

func checkProposer(b *broadcast) error {
	switch {
	case b.prop.Phase == paxos.Idle && len(b.peers)+len(b.values) > 0:
		return fmt.Errorf("does not propose, but has %d peers and %d values", len(b.peers), len(b.values))
	case b.prop.Phase != paxos.Idle && b.prop.Ballot != b.acc.Promised:
		return fmt.Errorf("proposes under %s, promised %s", b.prop.Ballot, b.acc.Promised)
	case b.quiet && slices.ContainsFunc(b.peers, func(p *paxos.Peer) bool { return !b.upToDate(p) }):
		return fmt.Errorf("rests, although there is something to be sent up to %+v", b.covered)
	case b.zero() && b.zeroState != active:
		return fmt.Errorf("proposes under ballot 0 in life %d", b.zeroState)
	}
	if b.prop.Phase == paxos.Ready && b.counts() == b.counted {
		for i := b.seg.After(b.upto); i <= min(b.agreed(), b.prop.End); i = b.seg.After(i) {
			if _, ok := b.values[i]; ok {
				return fmt.Errorf("a quorum has slot %d, and it is not decided", i)
			}
		}
	}
	for i := b.seg.After(b.upto); b.prop.Phase == paxos.Ready && i <= b.prop.End; i = b.seg.After(i) {
		if _, ok := b.values[i]; !ok && !b.isDecided(i) {
			return fmt.Errorf("slot %d of %d has no value", i, b.prop.End)
		}
	}
	open, mine := 0, 0
	for i := b.seg.After(b.upto); i <= b.seg.Last; i = b.seg.After(i) {
		if e, ok := b.ownValues[i]; ok && !b.isDecided(i) {
			open, mine = open+e.Bytes(), mine+1
		}
	}
	if open != b.open || mine != len(b.ownValues) {
		return fmt.Errorf("%d entries of %d bytes are proposed, says %d of %d", mine, open, len(b.ownValues), b.open)
	}
	return nil
}
