package fault

import (
	"slices"
	"time"

	"github.com/braidlog/braid/internal/sim/count"
	"github.com/braidlog/braid/internal/sim/draw"
	"github.com/braidlog/braid/internal/sim/node"
	"github.com/braidlog/braid/protocol"
)

// A leader's lease depends on promises of members. A promise is at risk when its member is about to vote: no
// heartbeat reached it for an election timeout, then one does, and a candidate's messages arrive at the same time, in
// any order. Links that stall at random hardly ever cause that. So some runs play these steps, a story, which only
// delays messages, and have hardly any other fault:
//
//   - A few members, the near ones, still get heartbeats. The others, the far ones, do not. Their earlier messages
//     reach the leader late, so that it still leads.
//   - One of the far members becomes a candidate. Its messages do not reach some of the others yet; these are called
//     back. With them and the near members the leader has a quorum.
//   - When these ask for votes too, their links with the leader continue, and the leader gets a lease. After that the
//     replies of the far members reach them, and then the requests of the candidate.
//   - No other messages reach the leader until all links continue.

// promiseStories is the source of chance for stories of promises.
var promiseStories = draw.New("promising")

var faultPromise = &Fault{Name: "promise", Does: "the leader reaches members again that are about to vote"}

func init() {
	faultPromise.Draw = (*Settings).drawPromises
	faultPromise.Strike = func(w *World, _ *node.Member) { promise(w) }
	faultPromise.End = endPromise
}

var promisesBeforeVotes = count.New("members_about_to_vote_that_hear_of_the_leader_again",
	"members about to vote that hear of the leader again", count.Staged)

// promising is a story in progress.
type promising struct {
	instance        protocol.InstanceID
	leader          protocol.MemberID
	near, far, back []protocol.MemberID
	// candidate is the first far member that campaigned in a term of its own; 0: none did.
	candidate protocol.MemberID
	// asked are the members of back that have asked for votes since then.
	asked []protocol.MemberID
}

// drawPromises draws whether a run has this fault. Clients mostly read: members that are called back would get
// entries that the leader appends meanwhile, and would not vote for a candidate without them.
func (s *Settings) drawPromises(d draw.Chance) {
	if s.Nodes < 5 || !d.Yes(0.04) {
		return
	}
	s.holdLeaders(d)
	s.Faults = rates{faultPromise: s.Election * time.Duration(4+d.Below(3))}
	s.Meet, s.Aim = meetSettings{}, aimSettings{}
	s.Drop, s.StreamBreaks = 0, 0
	s.setDrift(0)
	s.Clients, s.Operations, s.Reads = 2+d.Below(3), 300, 0.8+0.15*d.Share()
	s.Think = 2 * s.Chaos * time.Duration(s.Clients) / time.Duration(s.Operations)
	s.Load.Bursts, s.Load.Pipes, s.Load.Crowd, s.Load.Chase = 0, 0, 0, 0.2*d.Share()
}

// promise begins a story.
func promise(w *World) {
	in := w.Court.All[w.From(promiseStories).Below(len(w.Court.All))].ID
	l := w.LeaderOf(in)
	if l == nil || w.held != nil || w.promising != nil {
		return
	}
	config := l.Of(in).Witness.Latest.Config
	voters := config.Voters()
	others := slices.DeleteFunc(slices.Clone(voters), func(id protocol.MemberID) bool {
		return id == l.ID || !w.Member(id).Up
	})
	q := len(voters)/2 + 1
	if config.Joint() || !slices.Contains(voters, l.ID) || len(others) < q {
		return
	}
	w.From(promiseStories).Rand.Shuffle(len(others), func(i, j int) { others[i], others[j] = others[j], others[i] })
	near := len(others) - q
	if near > 0 && w.From(promiseStories).Yes(0.2) {
		near--
	}
	p := &promising{instance: in, leader: l.ID, near: others[:near], far: others[near:]}
	w.promising = p
	w.Count(promisesBeforeVotes)
	leader, e, h := []protocol.MemberID{l.ID}, w.Set.Election, w.Set.Heartbeat
	w.Tracef("FAULT only %v hear of %s", p.near, l.ID)
	holdBetween(w, p.far, leader, true)
	// One heartbeat reaches them.
	during(w, p, h+w.From(promiseStories).Duration(0, h/4), func() { holdBetween(w, leader, p.far, true) })
	during(w, p, e-h-w.From(promiseStories).Duration(h/4, h/2), func() { holdBetween(w, p.far, leader, false) })
	during(w, p, 3*e, func() { endPromise(w) })
}

// during schedules a step of a story. It is left out if the story is over by then.
func during(w *World, p *promising, d time.Duration, do func()) {
	w.After(d, func() {
		if w.promising == p {
			do()
		}
	})
}

// holdBetween stalls or releases the links from some members to others.
func holdBetween(w *World, from, to []protocol.MemberID, on bool) {
	for _, a := range from {
		for _, b := range to {
			if a != b {
				holdLink(w, a, b, on)
			}
		}
	}
}

// promiseStands continues a story when a member becomes a candidate or a pre-candidate.
func promiseStands(w *World, c *node.Witness) {
	p, id := w.promising, c.Member.ID
	if p == nil || c.Part.Instance != p.instance || !slices.Contains(p.far, id) {
		return
	}
	switch role := c.Latest.Role; {
	case role == protocol.Candidate && p.candidate == 0:
		callBack(w, p, id)
	case role == protocol.PreCandidate && slices.Contains(p.back, id) && !slices.Contains(p.asked, id):
		if p.asked = append(p.asked, id); len(p.asked) == len(p.back) {
			during(w, p, someTrips(w), func() { renewLease(w, p) })
		}
	}
}

// callBack chooses the members that get messages from the leader again, but none from the candidate yet.
func callBack(w *World, p *promising, candidate protocol.MemberID) {
	p.candidate = candidate
	others := slices.DeleteFunc(slices.Clone(p.far), func(id protocol.MemberID) bool { return id == candidate })
	q := (1+len(p.near)+len(p.far))/2 + 1
	p.back = others[:min(len(others), q-1-len(p.near))]
	w.Tracef("FAULT %v hear nothing of the candidate %s for a while", p.back, candidate)
	holdBetween(w, p.far, p.back, true)
	holdBetween(w, p.far, p.near, true)
	for _, id := range p.far {
		if !slices.Contains(p.back, id) {
			holdLink(w, id, p.leader, true)
		}
	}
}

// renewLease lets the leader get a lease. Then messages of the new term reach the members that are called back, the
// candidate's last.
func renewLease(w *World, p *promising) {
	w.Tracef("FAULT %v hear of %s again", p.back, p.leader)
	leader := []protocol.MemberID{p.leader}
	holdBetween(w, p.back, leader, false)
	holdBetween(w, leader, p.back, false)
	during(w, p, someTrips(w), func() {
		holdBetween(w, p.back, leader, true)
		holdBetween(w, leader, p.back, true)
		for _, id := range p.far {
			if id != p.candidate {
				holdBetween(w, []protocol.MemberID{id}, p.back, false)
			}
		}
		during(w, p, someTrips(w), func() { holdBetween(w, []protocol.MemberID{p.candidate}, p.back, false) })
		during(w, p, w.From(promiseStories).Duration(w.Set.Election/2, w.Set.Election), func() { endPromise(w) })
	})
}

// someTrips draws a time in which a message arrives, and perhaps the reply to it.
func someTrips(w *World) time.Duration {
	trip := w.Set.DelayMax + w.Set.SyncMax + 4*w.Set.HopMax
	return w.From(promiseStories).Duration(trip, 3*trip)
}

// endPromise ends the story: all links continue.
func endPromise(w *World) {
	p := w.promising
	if p == nil {
		return
	}
	w.Tracef("FAULT all hear of %s again", p.leader)
	w.promising = nil
	for _, a := range w.Members {
		for _, b := range w.Members {
			if a != b && w.Net.Link(a.ID, b.ID).Held() {
				holdLink(w, a.ID, b.ID, false)
			}
		}
	}
}
