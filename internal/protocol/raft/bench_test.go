package raft

import (
	"testing"
	"time"

	"github.com/braidlog/braid/internal/protocol/raft/lane"
	"github.com/braidlog/braid/internal/protocol/raft/message"
	"github.com/braidlog/braid/protocol"
)

func benchConfig(self protocol.MemberID) protocol.Settings {
	return protocol.Settings{Self: self, Instance: 1, Heartbeat: 100 * time.Millisecond, ElectionTimeout: time.Second,
		CacheBytes: 1 << 20}
}

func benchCore(b testing.TB, self protocol.MemberID, members int) *Raft {
	var c protocol.Config
	for id := 1; id <= members; id++ {
		c.Members = append(c.Members, protocol.Member{ID: protocol.MemberID(id)})
	}
	r, err := New(benchConfig(self), protocol.Recovered{Base: protocol.Base{Config: c}})
	if err != nil {
		b.Fatal(err)
	}
	return r
}

// benchLeader is a leader of three that has committed an entry of its term.
func benchLeader(b testing.TB) (*Raft, *protocol.Effects) {
	r, out := benchCore(b, 1, 3), &protocol.Effects{}
	step := func(in protocol.Input) { r.Step(0, in, out) }
	r.Step(0, protocol.Tick{Random: 1}, out)
	r.campaign2(out)
	step(protocol.Persisted{Seq: out.Seq})
	for _, id := range []protocol.MemberID{2, 3} {
		step(message.With(protocol.Message{Type: message.VoteResp, Instance: 1, From: id, To: 1, Term: 1},
			message.Part{}).Message)
	}
	step(protocol.Persisted{Seq: out.Seq})
	for _, id := range []protocol.MemberID{2, 3} {
		step(message.With(protocol.Message{Type: message.AppendResp, Instance: 1, From: id, To: 1, Term: 1, Context: 1},
			message.Part{Index: 1}).Message)
	}
	if r.commit != 1 {
		b.Fatalf("no leader: %+v", r.Status())
	}
	out.Reset()
	return r, out
}

// campaign2 makes r a candidate without asking first.
func (r *Raft) campaign2(out *protocol.Effects) {
	r.out.Effects = out
	r.disk.Begin()
	r.campaign(forcedVote)
	r.disk.End(r.log.Last, 0)
}

func benchEntries(n, size int) []protocol.Entry {
	entries := make([]protocol.Entry, n)
	for i := range entries {
		e := &entries[i]
		e.Kind, e.Count = protocol.EntryBatch, 1
		e.ID = protocol.ProposalID{Session: protocol.Session{Member: 1, Incarnation: 1}, Seq: uint64(i + 1)}
		e.Payload = make([]byte, size)
		e.Payload[0] = byte(size - 1) // the length of its command
		e.SealPayload()
	}
	return entries
}

// replicate has a leader propose entries, which two followers acknowledge and its disk writes.
func replicate(r *Raft, out *protocol.Effects, now time.Duration, entries []protocol.Entry) {
	r.Step(now, protocol.Propose{Entries: entries}, out)
	for _, m := range out.Send {
		if m.Type == message.Append && m.Context != 0 {
			ack := message.With(protocol.Message{Type: message.AppendResp, Instance: 1, From: m.To, To: 1, Term: 1,
				Context: m.Context}, message.Part{Index: r.log.Last})
			r.Step(now, ack.Message, out)
		}
	}
	r.Step(now, protocol.Persisted{Seq: out.Seq}, out)
	out.Reset()
}

// compact gives up the log before the last committed entry.
func compact(r *Raft, out *protocol.Effects, now time.Duration) {
	if r.commit > 1 {
		r.Step(now, protocol.Compact{Index: r.commit - 1}, out)
	}
}

// BenchmarkLeaderAppend: entries proposed, sent to two followers, written, acknowledged
// and committed; per entry.
func BenchmarkLeaderAppend(b *testing.B) {
	for _, n := range []int{1, 16, 256} {
		b.Run(map[int]string{1: "one", 16: "16", 256: "256"}[n], func(b *testing.B) {
			r, out := benchLeader(b)
			entries := benchEntries(n, 16)
			b.ReportAllocs()
			now := time.Duration(0)
			for i := 0; i < b.N; i += n {
				now += time.Microsecond
				replicate(r, out, now, entries)
				if i%(1<<16) < n {
					compact(r, out, now)
				}
			}
			if r.commit != r.log.Last {
				b.Fatalf("commit %d of %d", r.commit, r.log.Last)
			}
		})
	}
}

// follow has a follower take in entries in a frame, and write them. heads is memory for theirs.
func follow(r *Raft, out *protocol.Effects, entries []protocol.Entry, heads []byte) {
	last := r.log.Last
	frame := make([]protocol.Entry, len(entries)) // as decoding makes one
	for k := range entries {
		frame[k] = entries[k]
		frame[k].Seal(last+1+protocol.Index(k), 1, heads[k*protocol.HeadSize:])
	}
	m := message.With(protocol.Message{Type: message.Append, Instance: 1, From: 1, To: 2, Term: 1, Commit: last,
		Entries: frame, Context: 1}, message.Part{Index: last, LogTerm: r.log.LastTerm}).Message
	r.Step(0, m, out)
	r.Step(0, protocol.Persisted{Seq: out.Seq}, out)
	out.Reset()
}

// BenchmarkFollowerAppend: frames of 256 entries taken in and acknowledged; per entry.
func BenchmarkFollowerAppend(b *testing.B) {
	const n = 256
	r, out := benchCore(b, 2, 3), &protocol.Effects{}
	entries := benchEntries(n, 16)
	heads := make([]byte, n*protocol.HeadSize)
	b.ReportAllocs()
	for i := 0; i < b.N; i += n {
		follow(r, out, entries, heads)
		if i%(1<<16) < n {
			compact(r, out, 0)
		}
	}
}

// BenchmarkFollowerLane: batches of another member's lane taken in, made a group by a signal, and
// committed with the next one; per batch.
func BenchmarkFollowerLane(b *testing.B) {
	const n = 16
	r, out := benchCore(b, 2, 3), &protocol.Effects{}
	r.view.On = true
	lanes, err := lane.Recover(r.seeLanes(), &protocol.Recovered{})
	if err != nil {
		b.Fatal(err)
	}
	r.lanes = lanes
	own := protocol.Lane{Member: 3, Incarnation: 1}
	appended := func(e protocol.Entry, commit protocol.Index) {
		m := message.With(protocol.Message{Type: message.Append, Instance: 1, From: 1, To: 2, Term: 1, Commit: commit,
			Entries: []protocol.Entry{e}, Context: 1}, message.Part{Index: r.log.Last, LogTerm: r.log.LastTerm})
		r.Step(0, m.Message, out)
	}
	open := protocol.NewLane(own)
	open.Seal(1, 1, make([]byte, protocol.HeadSize))
	appended(open, 1)
	batches := benchEntries(n, 16)
	number := uint64(0)
	b.ReportAllocs()
	for i := 0; i < b.N; i += n {
		frame, heads := make([]protocol.Entry, n), make([]byte, n*protocol.HeadSize) // as decoding makes them
		for k := range frame {
			number++
			frame[k] = batches[k]
			frame[k].ID.Seq = number
			frame[k].Seal(protocol.Index(number), 0, heads[k*protocol.HeadSize:])
		}
		m := message.With(protocol.Message{Type: message.Lane, Instance: 1, From: 3, To: 2, Entries: frame, Context: 1},
			message.Part{ID: protocol.ProposalID{Session: own}})
		r.Step(0, m.Message, out)
		group := protocol.NewRange(own, frame)
		group.Seal(r.log.Last+1, 1, make([]byte, protocol.HeadSize))
		appended(protocol.NewSignal(&group), r.log.Last)
		r.Step(0, protocol.Persisted{Seq: out.Seq}, out)
		out.Reset()
		if i%(1<<16) < n && r.commit > 1 {
			r.Step(0, protocol.Compact{Index: r.commit - 1}, out)
		}
	}
	if groups := uint64(r.log.Last - 1); groups*n != number { // the first entry opens the lane
		b.Fatalf("the log has %d groups, and %d batches came", groups, number)
	}
}

// BenchmarkReads: reads confirmed by a quorum, 64 in a confirmation; per read.
func BenchmarkReads(b *testing.B) {
	r, out := benchLeader(b)
	b.ReportAllocs()
	for i := 0; i < b.N; i += 64 {
		for k := range 64 {
			r.Step(0, protocol.Read{Context: uint64(k + 1)}, out)
		}
		for _, m := range out.Send {
			r.Step(0, message.With(protocol.Message{Type: message.HeartbeatResp, Instance: 1, From: m.To, To: 1, Term: 1,
				Context: m.Context}, message.Part{Round: message.Of(m).Round}).Message, out)
		}
		if len(out.Reads) != 64 {
			b.Fatalf("%d reads served", len(out.Reads))
		}
		out.Reset()
	}
}
