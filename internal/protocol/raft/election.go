package raft

import (
	"time"

	"github.com/braidlog/braid/internal/protocol/raft/message"
	"github.com/braidlog/braid/internal/protocol/raft/tracker"
	"github.com/braidlog/braid/protocol"
	"github.com/braidlog/braid/protocol/quorum"
)

// rest postpones the election: the next one is due after a timeout.
func (r *Raft) rest() { r.votes.stand = r.now + r.timeout() }

// soonTries is how often a member that did not win asks again soon, where ranks keep members from
// standing at the same time. Asking disturbs no one.
const soonTries = 2

// timeout draws how long to wait before standing for election. If no leader is preferred, random
// timeouts keep members apart. Otherwise they stand in the order of their ranks, the first one as
// soon as votes may be given again. If that failed twice, chance decides.
func (r *Raft) timeout() time.Duration {
	random := r.chance.draw()
	promise, _ := r.members.Promise(r.commit)
	switch ranked := r.cfg.Leaders != protocol.LeadersAny; {
	case ranked && r.votes.tries == 0:
		return promise + r.turn(random)
	case ranked && r.votes.tries <= soonTries && r.role != protocol.Candidate:
		return r.cfg.Stagger + r.turn(random)
	}
	return promise + time.Duration(random%uint64(promise))
}

// turn is how long this member waits for those with a lower rank (docs/internals/niagara.md, 3.4: rank ×
// stagger), with a small random part, because members may know different configurations.
func (r *Raft) turn(random uint64) time.Duration {
	rank := r.cfg.Leaders.Rank(r.members.Config.Turns(), r.members.Seat, r.cfg.Self, r.leader)
	return time.Duration(rank)*r.cfg.Stagger + time.Duration(random%uint64(max(1, r.cfg.Stagger/2)))
}

// suspect: another instance on this member has lost the same leader. Then all instances stand at
// the same time, but none before its own leader's lease is over and votes may be given again.
func (r *Raft) suspect(id protocol.MemberID) {
	if r.cfg.Leaders != protocol.LeadersAny && r.role == protocol.Follower && r.leader == id {
		promise, _ := r.members.Promise(r.commit)
		r.votes.stand = min(r.votes.stand, max(r.now, r.votes.heard+promise)+r.turn(r.chance.draw()))
	}
}

// sticky reports whether a leader was heard from so recently that its lease may be valid and no one
// else may be elected (Raft §4.2.3, §6.4.1). A restarted member cannot know what it promised, so
// with leases it is as if it had just heard from the leader. One whose log is new has promised nothing.
func (r *Raft) sticky() bool {
	if r.role == protocol.Leader {
		return true // check-quorum ends it in time
	}
	promise, leases := r.members.Promise(r.commit)
	return r.now < r.votes.heard+promise && (r.leader != 0 || leases && r.votes.promised)
}

// alone reports whether this member decides on its own. Then it need not wait before it leads,
// unless a leader that it followed may hold a lease.
func (r *Raft) alone() bool {
	return r.role == protocol.Follower && !r.sticky() && r.members.Alone(r.cfg.Self)
}

// candidacy is how a member campaigns.
type candidacy int

const (
	// preVote: it asks first whether it would win, and disturbs no leader.
	preVote candidacy = iota
	// firstVote: without pre-votes. A new instance has no leader who could be disturbed.
	firstVote
	// forcedVote: without pre-votes, after a transfer. Voters grant it although they just heard from the leader.
	forcedVote
)

// campaign stands for election. A member that may not stand, as a learner, forgets the leader instead: who waits for
// one must see that there is none.
func (r *Raft) campaign(how candidacy) {
	if r.closed() {
		return
	}
	may := r.mayStand() && !r.diskStalled()
	if may {
		r.votes.tries++
	}
	r.rest()
	if !may {
		if how == preVote && r.role == protocol.Follower {
			r.leader = 0 // it was not heard for long
		}
		return
	}
	if how != preVote {
		r.elect(how == forcedVote)
		return
	}
	r.role, r.leader = protocol.PreCandidate, 0
	r.votes.ballots = r.votes.ballots[:0]
	r.askVotes(message.PreVote, r.term+1, false)
	r.votes.add(r.cfg.Self, true)
	r.tally()
}

// elect enters a new term as its candidate. The requests leave when the vote for itself is
// durable, and the vote counts only then. A candidate that forgot it after a crash could lead the
// same term twice.
func (r *Raft) elect(force bool) {
	r.term++
	r.vote, r.leader, r.role = r.cfg.Self, 0, protocol.Candidate
	r.verified = r.commit
	r.votes.ballots = r.votes.ballots[:0]
	if r.cfg.Leaders != protocol.LeadersAny {
		r.rest() // votes take longer than asking for them
	}
	r.writeVote()
	r.askVotes(message.Vote, r.term, force)
}

// mayStand reports whether this member may lead. A member that is not in the newest configuration may still lead until
// it knows that this configuration is committed. It may be the only one that has the entry, and then no one else can be
// elected (Raft §4.2.2). A learner may stand too while someone needs its vote who can never have it. An undecided
// change elsewhere may make the learner a voter, and a leader that is lost may have sent an entry to it alone. Only the
// voters elect it. It resigns when it has committed that entry.
func (r *Raft) mayStand() bool {
	if m := r.members.Config.Find(r.cfg.Self); r.votes.needed && m != nil && m.Learner {
		return true
	}
	before := r.members.Before()
	return r.members.Voters.Has(r.cfg.Self) || r.members.At > r.commit && before != nil && before.Voter(r.cfg.Self)
}

func (r *Raft) askVotes(t protocol.MessageType, term protocol.Term, force bool) {
	for _, id := range r.members.Config.All() {
		if id == r.cfg.Self || !r.members.Voters.Has(id) {
			continue
		}
		m := message.With(protocol.Message{Type: t, To: id, Term: term},
			message.Part{Force: force, Index: r.log.Last, LogTerm: r.log.LastTerm})
		if t == message.Vote {
			r.release(m)
		} else {
			r.answer(m)
		}
	}
}

func (r *Raft) tally() {
	result := r.members.Deciders().Vote(r.votes.of)
	switch {
	case result == quorum.Won && r.role == protocol.PreCandidate:
		r.elect(false)
	case result == quorum.Won:
		r.takeLead()
	case result == quorum.Lost:
		r.follow(r.term, 0)
	}
}

func onPreVoteResp(r *Raft, m message.Message) {
	if m.Term == r.term && !m.Reject {
		return // an answer about a term that has come since
	}
	if m.Term > r.term+1 {
		return
	}
	r.votes.add(m.From, !m.Reject)
	r.tally()
}

func onVoteResp(r *Raft, m message.Message) {
	r.votes.add(m.From, !m.Reject)
	r.tally()
}

// onVote answers a candidate (Raft §5.2, §5.4.1) or one that asks whether it should be one. The
// candidate need not be in our configuration: ours may be the older one.
func onVote(r *Raft, m message.Message) {
	pre := m.Type == message.PreVote
	grant := r.log.UpToDate(m.Index, m.LogTerm) || r.cfg.Mutant == MutantVoteIgnoresLog
	r.votes.needed = r.votes.needed || !grant
	if pre {
		grant = grant && m.Term > r.term && !r.sticky()
		resp := message.With(protocol.Message{Type: message.PreVoteResp, To: m.From, Reject: !grant}, message.Part{})
		if grant {
			resp.Term = m.Term
		}
		r.answer(resp)
		return
	}
	// This member's term says nothing about what it promised: any answer of a higher term takes it into that term, and
	// its promise to the leader of the term before continues. It may not vote for a candidate that it did not vote for
	// before.
	promised := r.sticky() && r.cfg.Mutant != MutantPromiseOfTerm
	grant = grant && (r.vote == m.From || r.vote == 0 && r.leader == 0 && (m.Force || !promised))
	if !grant {
		r.answer(message.With(protocol.Message{Type: message.VoteResp, To: m.From, Reject: true}, message.Part{}))
		return
	}
	if r.vote != m.From {
		r.vote = m.From
		r.writeVote()
	}
	r.votes.tries = 0
	r.rest()
	r.release(message.With(protocol.Message{Type: message.VoteResp, To: m.From}, message.Part{}))
}

// follow makes this member a follower in term, which may be its own, of leader, if known.
func (r *Raft) follow(term protocol.Term, leader protocol.MemberID) {
	if r.role == protocol.Leader {
		r.stepDown(leader)
	}
	if term > r.term {
		r.term, r.vote = term, 0
		r.verified = r.commit
		r.writeVote()
		r.leader = 0
	}
	if r.role != protocol.Follower {
		r.role, r.leader = protocol.Follower, 0
		r.votes.ballots = r.votes.ballots[:0]
		r.rest()
	}
	if leader != 0 {
		r.leader = leader
	}
}

// heardLeader notes a message of this term's leader.
func (r *Raft) heardLeader(m message.Message) {
	r.follow(m.Term, m.From)
	r.noteLeader()
}

// noteLeader puts off the election, for the leader is well.
func (r *Raft) noteLeader() {
	r.votes.heard, r.votes.promised, r.votes.tries, r.votes.needed = r.now, true, 0, false
	r.rest()
}

// takeLead makes this member the leader of its term. It leads once bodies are whole; see prepare.
func (r *Raft) takeLead() {
	r.role, r.leader = protocol.Leader, r.cfg.Self
	r.lead = leading{beat: r.now + r.cfg.Heartbeat, round: r.lead.round, beaten: r.commit}
	r.lead.first = r.log.Last + 1
	r.lanes.Begin()
	r.see().Rest()
	r.lead.track(&r.members, r.cfg.Self, r.log.Last, r.now)
	for _, b := range r.votes.ballots {
		if p := r.lead.peer(b.from); p != nil {
			p.Heard = message.Stamp(r.now)
		}
	}
	r.votes.ballots = r.votes.ballots[:0]
	for i := r.commit + 1; i <= r.log.Last; i++ {
		r.lead.uncommitted += r.log.At(i).Bytes()
	}
}

// prepare makes a new leader lead as soon as the bodies after the commit index are whole here: its
// first entry commits those of earlier terms (Raft §5.4.2). Until then it only sends heartbeats,
// and neither appends nor commits.
func (r *Raft) prepare() {
	if r.role != protocol.Leader || r.lead.ready || r.closed() || !r.prepared() {
		return
	}
	r.lead.ready = true
	r.lead.first = r.log.Last + 1
	for _, p := range r.lead.peers {
		p.Become(tracker.Probe, r.lead.first, r.now)
	}
	e := protocol.Entry{Kind: protocol.EntryNoop}
	r.appendOwn(&e, make([]byte, protocol.HeadSize))
	r.advance()
	r.replicateAll()
}

// stepDown ends this member's leadership. Those that wait for it are told to ask another member.
func (r *Raft) stepDown(leader protocol.MemberID) {
	r.lead.reads.fail(&r.out, protocol.ReasonNotLeader, leader)
	r.lanes.Resign(r.seeLanes(), leader)
	r.view.Place.Reset()
	r.lead = leading{round: r.lead.round}
	r.role, r.leader = protocol.Follower, 0
	r.noteLeader()
}

func (r *Raft) tickLeader() {
	if r.now >= r.lead.heard(r.members.Confirmers(r.members.Voters), r.cfg.Self, r.now)+r.members.Strict(r.commit) ||
		r.diskStalled() {
		r.follow(r.term, 0)
		return
	}
	if h := &r.lead.hand; h.to != 0 && r.now >= h.until {
		*h = handover{sent: h.sent}
	}
	r.lead.letLateGo(r.now)
	if r.now >= r.lead.beat {
		r.lead.beat = r.now + r.cfg.Heartbeat
		for _, p := range r.lead.peers {
			r.heartbeat(p)
		}
		r.promote()
		r.lead.beaten = r.commit
	}
	if r.lead.ready {
		r.tickBodies()
	}
}
