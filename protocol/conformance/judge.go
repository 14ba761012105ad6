package conformance

import (
	"slices"
	"testing"

	"github.com/braidlog/braid/protocol"
)

// judge checks the commits of members and the reads that they may serve.
type judge struct {
	t testing.TB
	// chosen is the first entry that was committed at every index, on any member.
	chosen map[protocol.Index]protocol.Entry
	// rounds is the number of rounds of the global log that all entries up to an index fill.
	rounds map[protocol.Index]protocol.Round
	// at is the first instance's configuration that this one followed last.
	at int
	// config is the configuration that was committed last.
	config protocol.Config
	// highest is the highest index that was committed anywhere.
	highest protocol.Index
	// visible is the highest index that a read must not miss. skips: a no-op may be decided without votes, and has
	// nothing to see.
	visible protocol.Index
	skips   bool
	// asked is, for every read in progress, the index that it must not miss, and the member.
	asked  map[uint64]question
	served map[uint64]protocol.Index
	// refused counts refusals by reason; gone are contexts refused.
	refused map[protocol.Reason]int
	gone    map[uint64]protocol.Reason
	// took are the committed proposals.
	took map[protocol.ProposalID]protocol.Index
	// accepted are proposals that were answered before they were committed, or just then. All will be
	// committed.
	accepted map[protocol.ProposalID]protocol.MemberID
	// leaders are the leaders of the terms.
	leaders map[protocol.Term]protocol.MemberID
	// proposed are all proposed bodies.
	proposed map[bodyKey][]byte
	context  uint64
	keyed    keyed
	// sealed is the first EntrySeal that was committed and may count. void are those that do not.
	sealed protocol.Entry
	void   map[protocol.Index]bool
}

type question struct {
	from   protocol.MemberID
	least  protocol.Index
	places []int // places in the orders of keys, if there are any
}

func (j *judge) init(t testing.TB) {
	*j = judge{
		t: t, chosen: map[protocol.Index]protocol.Entry{}, rounds: map[protocol.Index]protocol.Round{},
		asked: map[uint64]question{}, served: map[uint64]protocol.Index{},
		refused: map[protocol.Reason]int{}, gone: map[uint64]protocol.Reason{},
		took: map[protocol.ProposalID]protocol.Index{}, accepted: map[protocol.ProposalID]protocol.MemberID{},
		leaders: map[protocol.Term]protocol.MemberID{}, proposed: map[bodyKey][]byte{},
		void: map[protocol.Index]bool{},
	}
}

func (j *judge) effects(n *Node, e *protocol.Effects) {
	if e.Diverged != nil {
		j.t.Fatalf("member %s stops: %s", n.ID, e.Diverged)
	}
	if e.Unusable != nil {
		j.t.Fatalf("member %s stops: %s", n.ID, e.Unusable)
	}
	next := n.Applied + 1
	if e.Install != nil {
		if e.Install.Index < next {
			j.t.Fatalf("member %s installs a snapshot at %d, behind %d", n.ID, e.Install.Index, n.Applied)
		}
		if !slices.ContainsFunc(n.offered, func(b protocol.Base) bool {
			return b.Index == e.Install.Index && b.Round == e.Install.Round
		}) {
			j.t.Fatalf("member %s installs a snapshot at %d, round %d, that nobody offered", n.ID, e.Install.Index,
				e.Install.Round)
		}
		next = e.Install.Index + 1
		j.startKeyed(n, e.Install)
	}
	for i := range e.Commit {
		if c := &e.Commit[i]; e.Install == nil || c.Index > e.Install.Index {
			j.committed(n, c, next)
			next++
		}
	}
	for _, id := range e.Accepted {
		if id.Session.Member != n.ID {
			j.t.Fatalf("member %s is told that a proposal of %s is accepted", n.ID, id.Session.Member)
		}
		j.accepted[id] = n.ID
	}
	for _, r := range e.Reads {
		j.read(n, r)
	}
	for _, r := range e.Reject {
		j.rejected(n, r)
	}
	s := n.Core.Status()
	if made := s.Config.Profile.Version; !s.Undecided && j.keyed.keys == 0 && made > j.config.Profile.Version {
		j.t.Fatalf("member %s has version %d of the profile, which no member has committed, as decided", n.ID, made)
	}
	if s.Role == protocol.Leader {
		if first, ok := j.leaders[s.Term]; ok && first != n.ID {
			j.t.Fatalf("members %s and %s lead term %d", first, n.ID, s.Term)
		}
		j.leaders[s.Term] = n.ID
	}
}

func (j *judge) committed(n *Node, e *protocol.Entry, next protocol.Index) {
	if e.Index != next {
		j.t.Fatalf("member %s commits %d, %d was next", n.ID, e.Index, next)
	}
	if j.keyed.keys > 0 {
		j.highest = max(j.highest, e.Index)
		j.group(n, e)
		return
	}
	if c, ok := j.chosen[e.Index]; !ok {
		j.chosen[e.Index] = *e
		j.rounds[e.Index] = after(j.rounds[e.Index-1], e)
		if e.Kind == protocol.EntryConfig {
			c, err := protocol.DecodeConfig(e.Payload)
			if err != nil {
				j.t.Fatalf("member %s: committed configuration at %d: %v", n.ID, e.Index, err)
			}
			j.config = c
		}
	} else if c.Term != e.Term || c.ID != e.ID || c.Digest != e.Digest || c.Kind != e.Kind || c.Low != e.Low ||
		c.K != e.K || c.BodyDigest != e.BodyDigest {
		j.t.Fatalf("member %s commits %d as %s of term %d, another committed %s of term %d", n.ID, e.Index, e.Kind, e.Term,
			c.Kind, c.Term)
	}
	j.behindSeal(n, e)
	j.highest = max(j.highest, e.Index)
	if e.Kind != protocol.EntryNoop || !j.skips {
		j.visible = max(j.visible, e.Index)
	}
	switch e.Kind {
	case protocol.EntryBatch:
		j.took[e.ID] = e.Index
	case protocol.EntryGroup:
		j.group(n, e)
	}
}

// group checks the batches of a group, whose payload may be only on disk.
func (j *judge) group(n *Node, e *protocol.Entry) {
	if !e.Applicable() {
		on := *e
		for i := range n.disk.Entries {
			if d := &n.disk.Entries[i]; d.Index == e.Index && d.Term == e.Term {
				on.Payload = d.Payload
			}
		}
		if e = &on; !e.Applicable() {
			return // another member has it
		}
	}
	if err := e.CheckGroup(); err != nil {
		j.t.Fatalf("member %s commits %d: %v", n.ID, e.Index, err)
	}
	batches, _ := e.Batches(nil)
	for i := range batches {
		j.took[batches[i].ID] = e.Index
	}
	if j.keyed.keys > 0 {
		j.committedKeyed(n, batches)
	}
}

// after is the number of rounds that are filled with one more entry.
func after(round protocol.Round, e *protocol.Entry) protocol.Round {
	switch e.Kind {
	case protocol.EntryBatch, protocol.EntryGroup, protocol.EntryReshape:
		return round + 1
	case protocol.EntrySkip:
		return max(round, e.Round())
	}
	return round
}

// keptPromises reports whether all accepted commands are in the log. When all faults have ended they will be.
func (j *judge) keptPromises() bool {
	for id := range j.accepted {
		if j.took[id] == 0 {
			return false
		}
	}
	return true
}

func (j *judge) read(n *Node, r protocol.ReadIndex) {
	q, ok := j.asked[r.Context]
	switch {
	case !ok:
		return // answered twice, or the answer to an earlier incarnation
	case q.from != n.ID:
		j.t.Fatalf("member %s is given a read point that %s asked for", n.ID, q.from)
	case r.Index < q.least:
		j.t.Fatalf("member %s may read at %d, but %d was committed when it asked", n.ID, r.Index, q.least)
	}
	delete(j.asked, r.Context)
	j.served[r.Context] = r.Index
	if j.keyed.keys > 0 {
		j.servedKeyed(n, r, q.places)
	}
}

func (j *judge) rejected(n *Node, r protocol.Rejection) {
	if (r.ID != protocol.ProposalID{}) == (r.Context != 0) {
		j.t.Fatalf("member %s: a rejection names an id or a context, not %+v", n.ID, r)
	}
	if r.Reason == protocol.ReasonNone {
		j.t.Fatalf("member %s: a rejection without a reason: %+v", n.ID, r)
	}
	j.refused[r.Reason]++
	if r.Context != 0 {
		delete(j.asked, r.Context)
		j.gone[r.Context] = r.Reason
	}
}

// crashed ends the member's reads.
func (j *judge) crashed(n *Node) {
	for c, q := range j.asked {
		if q.from == n.ID {
			delete(j.asked, c)
		}
	}
	j.judgeReads() // those of this member have ended
}

// Read asks for a read index on a member and returns the request's context.
func (net *Net) Read(id protocol.MemberID) uint64 {
	j := &net.judge
	j.context++
	if net.Node(id).Core != nil {
		j.asked[j.context] = question{id, j.visible, j.keyed.places()}
		net.Step(id, protocol.Read{Context: j.context})
	}
	return j.context
}

// Served returns the read index of a request, and whether there was one.
func (net *Net) Served(context uint64) (protocol.Index, bool) {
	i, ok := net.judge.served[context]
	return i, ok
}

// Refused returns the reason why a request or change was refused, ReasonNone if it was not.
func (net *Net) Refused(context uint64) protocol.Reason { return net.judge.gone[context] }

// Change asks a member for membership changes and returns the request's context.
func (net *Net) Change(id protocol.MemberID, changes ...protocol.Change) uint64 {
	net.judge.context++
	c := net.judge.context
	net.Step(id, protocol.ProposeChange{Context: c, ID: net.NewID(id), Changes: changes})
	return c
}

// Follow asks a member to change to the members of another instance, and returns the request's context.
func (net *Net) Follow(id protocol.MemberID, target protocol.Config) uint64 {
	net.judge.context++
	c := net.judge.context
	net.Step(id, protocol.ProposeChange{Context: c, ID: net.NewID(id), Target: &target})
	return c
}

// Transfer asks a member to transfer leadership and returns the request's context.
func (net *Net) Transfer(id, to protocol.MemberID) uint64 {
	net.judge.context++
	net.Step(id, protocol.Transfer{To: to, Context: net.judge.context})
	return net.judge.context
}

// NewID returns an unused id of a proposal.
func (net *Net) NewID(id protocol.MemberID) protocol.ProposalID {
	net.judge.context++
	return protocol.ProposalID{Session: protocol.Session{Member: id, Incarnation: 1}, Seq: net.judge.context}
}

// Batch returns a sealed proposal of one command with size bytes.
func (net *Net) Batch(id protocol.MemberID, size int) protocol.Entry {
	e := protocol.Entry{Kind: protocol.EntryBatch, ID: net.NewID(id), Count: 1}
	e.Low = e.ID.Seq
	command := make([]byte, size)
	for i := range command {
		command[i] = byte(e.ID.Seq)
	}
	e.Payload = protocol.AppendCommand(nil, command)
	e.SealPayload()
	e.Seal(0, 0, make([]byte, protocol.HeadSize))
	return e
}

// WithBody returns a sealed proposal of one command with a body of size bytes.
func (net *Net) WithBody(id protocol.MemberID, size int) protocol.Entry {
	e := net.Batch(id, 8)
	e.Body = make([]byte, size)
	for i := range e.Body {
		e.Body[i] = byte(e.ID.Seq) ^ byte(e.ID.Seq>>8) ^ byte(i)
	}
	e.SealPayload()
	e.Seal(0, 0, make([]byte, protocol.HeadSize))
	net.judge.proposed[bodyKey{e.BodySize, e.BodyDigest}] = e.Body
	return e
}

// command returns a proposal with or without a body, according to the options. The choice is not random, so that runs
// without bodies stay the same.
func (net *Net) command(id protocol.MemberID, size int) protocol.Entry {
	if int(net.judge.context*7919%1000) < net.Options.Bodies {
		return net.WithBody(id, 1+size)
	}
	return net.Batch(id, size)
}

func (net *Net) propose(id protocol.MemberID, size int) protocol.Entry {
	e := net.command(id, size)
	net.Step(id, net.wants(e))
	return e
}

// wants proposes an entry, every second one in ModeAccepted if the options demand that.
func (net *Net) wants(e protocol.Entry) protocol.Propose {
	p := protocol.Propose{Entries: []protocol.Entry{e}}
	if net.Keyed > 0 {
		p.Options = []protocol.ProposeOptions{net.judge.keyed.draw(&e)}
	}
	if net.Options.Accepted && e.ID.Seq%2 == 0 {
		p.Options = []protocol.ProposeOptions{{Mode: protocol.ModeAccepted}}
	}
	return p
}

// ProposeEarly proposes a new command on a member in ModeAccepted.
func (net *Net) ProposeEarly(id protocol.MemberID, size int) protocol.Entry {
	e := net.Batch(id, size)
	net.Step(id, protocol.Propose{Entries: []protocol.Entry{e},
		Options: []protocol.ProposeOptions{{Mode: protocol.ModeAccepted}}})
	return e
}

// ProposeBlind proposes a new command on a member whose result is not needed.
func (net *Net) ProposeBlind(id protocol.MemberID, size int) protocol.Entry {
	e := net.Batch(id, size)
	net.Step(id, protocol.Propose{Entries: []protocol.Entry{e}, Options: []protocol.ProposeOptions{{Blind: true}}})
	return e
}

// ProposeBodyBy proposes a new command with a body and options on a member.
func (net *Net) ProposeBodyBy(id protocol.MemberID, size int, o protocol.ProposeOptions) protocol.Entry {
	e := net.WithBody(id, size)
	net.Step(id, protocol.Propose{Entries: []protocol.Entry{e}, Options: []protocol.ProposeOptions{o}})
	return e
}

// ProposeBody proposes a new command with a body on a member.
func (net *Net) ProposeBody(id protocol.MemberID, size int) protocol.Entry {
	e := net.WithBody(id, size)
	net.Step(id, protocol.Propose{Entries: []protocol.Entry{e}})
	return e
}

// Propose proposes a new command on a member.
func (net *Net) Propose(id protocol.MemberID, size int) protocol.Entry {
	e := net.Batch(id, size)
	net.Step(id, protocol.Propose{Entries: []protocol.Entry{e}})
	return e
}

// ProposeSkip proposes on a member to skip rounds.
func (net *Net) ProposeSkip(id protocol.MemberID, to protocol.Round) {
	net.Step(id, protocol.Propose{Entries: []protocol.Entry{protocol.NewSkip(to)}})
}

// Took returns the index at which a proposal was committed, 0 if it was not.
func (net *Net) Took(e protocol.Entry) protocol.Index { return net.judge.took[e.ID] }
