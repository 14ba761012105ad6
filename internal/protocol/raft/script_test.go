package raft_test

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"

	"github.com/braidlog/braid/internal/erasure"
	"github.com/braidlog/braid/internal/protocol/raft/lane"
	"github.com/braidlog/braid/internal/protocol/raft/message"
	"github.com/braidlog/braid/protocol"
	"github.com/braidlog/braid/protocol/conformance"
	"github.com/braidlog/braid/protocol/setting"
)

const (
	heartbeat = 10 * conformance.Pace
	timeout   = 100 * conformance.Pace
)

// TestScripts runs the scripts under testdata; their output is the cluster's whole conversation.
// -rewrite writes it again.
//
//	cluster n=3 [OPTION…]     members 1 … n; options are fields of protocol.Settings
//	elect id                  id's election timeout passes; all messages are delivered
//	expire id                 only id's election timeout passes
//	stand id                  id should be the first leader
//	beat id | wait id ms      id's clock moves by a heartbeat (or ms) and ticks
//	pass id ms                id's clock moves, and does not tick
//	propose id [n] [size]     n proposals; burst: in one Propose; body=SIZE: with a body;
//	                          blind or early: it may take a lane; early: in ModeAccepted
//	                          skip=ROUND or reshape=INSTANCES: of the global log itself
//	read id | transfer id to | change id [add-voter=(…)] [add-learner=(…)] [join=(…)] [remove=(…)]
//	tune id VALUE… [version=N]  the values of a profile, which replaces the active one
//	seal id [forwarded] | sealed id [counts]  a seal is proposed | its verdict
//	follow id voters=(…) [learners=(…)] [removed=(…)] slots   to another instance's members, the
//	                          slots being those of ids if they were added in their order
//	deliver | drop | repeat [from] [to] [type] [n]   of what is in progress, the first n
//	flip [from] [to] [n]      signals of lanes that are in progress say a wrong digest
//	alter term=TERM [from] [to] [n]   what is in progress comes again from a log that has entries of that term there
//	queue                     what is in progress, and which messages may wait for others
//	settle                    delivers and syncs all until nothing is in progress
//	lag | sync id             disks complete nothing from now on | but id's, once
//	crash id [keep] | restart id | add id | compact id [keep] | unreachable id of
//	gift from to              another instance on from sends its snapshot to another's on to
//	suspect id of             other instances on id have lost their leader
//	retain id [members=(…)]   the members that other instances have
//	isolate id | heal | status id
//	holders index             who holds the body of a committed entry, and in what form
//	fill id                   id reconstructs bodies of committed entries that it is missing
//
// Where id, from or to may be several, they are written id=(1,2). With quiet a command says nothing but what went
// wrong.
func TestScripts(t *testing.T) {
	datadriven.Walk(t, "testdata", func(t *testing.T, path string) {
		s := &script{t: t}
		datadriven.RunTest(t, path, s.run)
	})
}

// script is a cluster under a script. A violation is output like anything else.
type script struct {
	t   *testing.T
	net *conformance.Net
	out strings.Builder
}

type violation struct{ what string }

type reporter struct{ testing.TB }

func (reporter) Helper()                        {}
func (reporter) Logf(string, ...any)            {}
func (reporter) Fatalf(format string, a ...any) { panic(violation{fmt.Sprintf(format, a...)}) }

func (s *script) run(t *testing.T, d *datadriven.TestData) (out string) {
	s.out.Reset()
	defer func() {
		if p := recover(); p != nil {
			v, ok := p.(violation)
			if !ok {
				if text, isText := p.(string); isText && strings.HasPrefix(text, "raft:") {
					v, ok = violation{text}, true
				}
			}
			if !ok {
				panic(p)
			}
			if d.HasArg("quiet") {
				s.out.Reset()
			}
			out = s.out.String() + "VIOLATION: " + v.what + "\n"
		}
	}()
	do, ok := commands[d.Cmd]
	if !ok {
		d.Fatalf(t, "unknown command")
	}
	do(s, args{t, d})
	if s.out.Len() == 0 || d.HasArg("quiet") {
		return "ok\n"
	}
	return s.out.String()
}

type args struct {
	t *testing.T
	d *datadriven.TestData
}

func (a args) num(key string, def int) int {
	if a.d.HasArg(key) {
		a.d.ScanArgs(a.t, key, &def)
	}
	return def
}

func (a args) id(key string) protocol.MemberID { return protocol.MemberID(a.num(key, 0)) }

func (a args) text(key string) string {
	var v string
	if a.d.HasArg(key) {
		a.d.ScanArgs(a.t, key, &v)
	}
	return v
}

func (a args) config() (c protocol.Settings) {
	c.MaxFrameBytes = a.num("frame", 0)
	c.MaxFrameEntries = a.num("entries", 0)
	c.PipelineDepth = a.num("depth", 0)
	c.MaxInflightBytes = a.num("inflight", 0)
	c.MaxUncommittedBytes = a.num("uncommitted", 0)
	c.CacheBytes = a.num("cache", 0)
	c.NoPipeline = a.d.HasArg("no-pipeline")
	c.NoParallelAppend = a.d.HasArg("no-parallel-append")
	c.LeaseReads = a.d.HasArg("lease")
	c.Own = lane.On.Set(c.Own, a.d.HasArg("lanes"))
	c.MaxClockDrift = time.Duration(a.num("drift", 0)) * time.Millisecond
	c.Instance = protocol.InstanceID(a.num("instance", 1))
	c.Leaders = protocol.Leaders(a.text("leaders"))
	c.Stagger = time.Duration(a.num("stagger", 0)) * time.Millisecond
	c.Mutant = protocol.Mutant(a.text("mutant"))
	c.Placement = protocol.Placement(a.text("placement"))
	c.MaxK, c.ExtraWhole = a.num("maxk", 0), a.num("extra", 0)
	c.ReadQuorum, c.WriteQuorum = a.num("read", 0), a.num("write", 0)
	return c
}

var commands = map[string]func(*script, args){
	"cluster": func(s *script, a args) {
		config := a.config()
		s.net = conformance.NewNet(reporter{s.t}, a.num("n", 3), 1, message.Codec, factory(func(c *protocol.Settings) {
			self := *c
			*c = config
			c.Self, c.Session, c.Heartbeat, c.ElectionTimeout = self.Self, self.Session, self.Heartbeat, self.ElectionTimeout
		}))
		s.net.Merged = a.d.HasArg("woven")
		if s.net.Derive = lane.Derive; lane.On.In(config.Own) {
			s.net.Rows = erasure.Cut
		}
		s.net.ReadQuorum, s.net.WriteQuorum = config.ReadQuorum, config.WriteQuorum
		for _, n := range s.net.Nodes {
			s.net.Tick(n.ID, 0)
		}
		s.net.Trace = func(line string) { s.out.WriteString(line + "\n") }
	},
	"elect": func(s *script, a args) {
		s.net.Tick(a.id("id"), 2*timeout)
		s.net.Settle()
	},
	"stand": func(s *script, a args) {
		a.each(func(id protocol.MemberID) { s.net.Step(id, protocol.Stand{}) })
	},
	"expire": func(s *script, a args) { s.net.Tick(a.id("id"), 2*timeout) },
	"beat":   func(s *script, a args) { a.each(func(id protocol.MemberID) { s.net.Tick(id, heartbeat) }) },
	"wait": func(s *script, a args) {
		a.each(func(id protocol.MemberID) { s.net.Tick(id, time.Duration(a.num("ms", 0))*time.Millisecond) })
	},
	"pass": func(s *script, a args) {
		a.each(func(id protocol.MemberID) {
			s.net.Node(id).Now += time.Duration(a.num("ms", 0)) * time.Millisecond
		})
	},
	"propose": func(s *script, a args) {
		var burst []protocol.Entry
		for range a.num("n", 1) {
			switch {
			case a.d.HasArg("burst"):
				burst = append(burst, s.net.Batch(a.id("id"), a.num("size", 8)))
			case a.d.HasArg("skip"):
				s.net.ProposeSkip(a.id("id"), protocol.Round(a.num("skip", 0)))
			case a.d.HasArg("reshape"):
				s.net.Step(a.id("id"), protocol.Propose{Entries: []protocol.Entry{protocol.NewReshape(a.num("reshape", 0))}})
			case a.d.HasArg("body") && (a.d.HasArg("blind") || a.d.HasArg("early")):
				o := protocol.ProposeOptions{Blind: true}
				if a.d.HasArg("early") {
					o.Mode = protocol.ModeAccepted
				}
				s.net.ProposeBodyBy(a.id("id"), a.num("body", 0), o)
			case a.d.HasArg("blind"):
				s.net.ProposeBlind(a.id("id"), a.num("size", 8))
			case a.d.HasArg("early"):
				s.net.ProposeEarly(a.id("id"), a.num("size", 8))
			case a.d.HasArg("body"):
				s.net.ProposeBody(a.id("id"), a.num("body", 0))
			default:
				s.net.Propose(a.id("id"), a.num("size", 8))
			}
		}
		if burst != nil {
			s.net.Step(a.id("id"), protocol.Propose{Entries: burst})
		}
	},
	"read":     func(s *script, a args) { s.net.Read(a.id("id")) },
	"transfer": func(s *script, a args) { s.net.Transfer(a.id("id"), a.id("to")) },
	"change":   func(s *script, a args) { s.net.Change(a.id("id"), a.changes()...) },
	"tune":     func(s *script, a args) { s.net.Change(a.id("id"), s.profile(a)) },
	"follow":   func(s *script, a args) { s.net.Follow(a.id("id"), a.membership()) },
	"seal":     func(s *script, a args) { s.net.Seal(a.id("id"), a.d.HasArg("forwarded")) },
	"sealed": func(s *script, a args) {
		a.each(func(id protocol.MemberID) { s.net.Verdict(id, a.d.HasArg("counts")) })
	},
	"deliver": func(s *script, a args) { s.each(a, s.net.Deliver) },
	"drop":    func(s *script, a args) { s.each(a, s.net.Drop) },
	"repeat": func(s *script, a args) {
		s.each(a, func(i int) {
			m := *s.net.Queue[i].Message
			s.net.Queue = append(s.net.Queue, conformance.Parcel{From: m.From, To: m.To, Message: &m})
			s.net.Deliver(i)
		})
	},
	"alter": func(s *script, a args) {
		s.each(a, func(i int) { s.alter(i, protocol.Term(a.num("term", 0))) })
	},
	"flip": func(s *script, a args) { s.each(a, s.flip) },
	"queue": func(s *script, a args) {
		for _, p := range s.net.Queue {
			switch {
			case p.Message != nil:
				fmt.Fprintln(&s.out, s.net.Describe(p.Message)+pace(p.Message))
			case p.Want != nil:
				fmt.Fprintf(&s.out, "%s's wish for the body of %d/%d\n", p.To, p.Want.Index, p.Want.Term)
			default:
				fmt.Fprintf(&s.out, "%s→%s Snapshot\n", p.From, p.To)
			}
		}
	},
	"settle": func(s *script, a args) { s.net.Settle() },
	"lag":    func(s *script, a args) { s.net.Lag = !a.d.HasArg("off") },
	"sync":   func(s *script, a args) { a.each(s.net.Sync) },
	"crash": func(s *script, a args) {
		a.each(func(id protocol.MemberID) { s.net.Crash(id, a.num("keep", 0)) })
	},
	"restart": func(s *script, a args) {
		a.each(func(id protocol.MemberID) { s.net.Restart(id); s.net.Tick(id, 0) })
	},
	"add": func(s *script, a args) {
		s.net.Add(a.id("id"), protocol.Config{})
		s.net.Tick(a.id("id"), 0)
	},
	"compact": func(s *script, a args) { s.net.Compact(a.id("id"), protocol.Index(a.num("keep", 0))) },
	"unreachable": func(s *script, a args) {
		s.net.Step(a.id("id"), protocol.Unreachable{Member: a.id("of")})
	},
	"unsendable": func(s *script, a args) {
		s.net.Step(a.id("id"), protocol.Unsendable{Member: a.id("of"), Index: protocol.Index(a.num("index", 0))})
	},
	"gift": func(s *script, a args) { s.net.Gift(a.id("from"), a.id("to")) },
	"suspect": func(s *script, a args) {
		a.each(func(id protocol.MemberID) { s.net.Step(id, protocol.Suspect{Member: a.id("of")}) })
	},
	"retain": func(s *script, a args) {
		a.each(func(id protocol.MemberID) { s.net.Step(id, protocol.Retain{Members: a.ids("members")}) })
	},
	"isolate": func(s *script, a args) {
		alone := a.ids("id")
		s.net.Cut = func(from, to protocol.MemberID) bool {
			return slices.Contains(alone, from) != slices.Contains(alone, to)
		}
	},
	"holders": func(s *script, a args) {
		for _, n := range s.net.Nodes {
			fmt.Fprintf(&s.out, "%s: %s\n", n.ID, s.net.Holds(n.ID, protocol.Index(a.num("index", 0))))
		}
	},
	"fill":   func(s *script, a args) { s.net.Backfill(a.id("id")) },
	"heal":   func(s *script, a args) { s.net.Cut = nil },
	"status": func(s *script, a args) { s.status(a.id("id")) },
}

// each does f to the members that id names.
func (a args) each(f func(protocol.MemberID)) {
	for _, id := range a.ids("id") {
		f(id)
	}
}

func (a args) ids(key string) []protocol.MemberID {
	var ids []protocol.MemberID
	for _, arg := range a.d.CmdArgs {
		if arg.Key != key {
			continue
		}
		for i := range arg.Vals {
			var id int
			arg.Scan(a.t, i, &id)
			ids = append(ids, protocol.MemberID(id))
		}
	}
	return ids
}

// membership is a configuration of members that were added in the order of their ids.
func (a args) membership() protocol.Config {
	c := protocol.Config{Removed: a.ids("removed"), Slots: a.num("slots", 0)}
	for _, key := range []string{"voters", "learners"} {
		for _, id := range a.ids(key) {
			m := protocol.Member{ID: id, Slot: uint8(id - 1), Learner: key == "learners"}
			c.Members = append(c.Members, m)
		}
	}
	slices.SortFunc(c.Members, func(x, y protocol.Member) int { return cmp.Compare(x.ID, y.ID) })
	return c
}

// profile is the change to the profile after the active one.
func (s *script) profile(a args) protocol.Change {
	active := s.net.Node(a.id("id")).Core.Status().Config.Profile.Version
	p := protocol.Profile{Version: uint64(a.num("version", int(active)+1))}
	values := []string{"heartbeat-interval=10ms"}
	for _, arg := range a.d.CmdArgs {
		if arg.Key != "id" && arg.Key != "version" && arg.Key != "quiet" {
			values = append(values, arg.Key+"="+arg.Vals[0])
		}
	}
	v, err := setting.Parse(values...)
	if err != nil {
		a.d.Fatalf(a.t, "%v", err)
	}
	p.Values = v
	return protocol.Change{Kind: protocol.Tune, Profile: &p}
}

func (a args) changes() []protocol.Change {
	var out []protocol.Change
	for _, k := range []struct {
		key  string
		kind protocol.ChangeKind
	}{
		{"add-voter", protocol.AddVoter}, {"add-learner", protocol.AddLearner},
		{"remove", protocol.RemoveMember}, {"update", protocol.UpdateMember}, {"join", protocol.AddJoining},
	} {
		for _, id := range a.ids(k.key) {
			m := protocol.Member{ID: id}
			if url := a.text("url"); url != "" {
				m.PeerURLs = []string{url}
			}
			out = append(out, protocol.Change{Kind: k.kind, Member: m})
		}
	}
	return out
}

// each does f to what is in progress and fits, of what was there at first.
func (s *script) each(a args, f func(i int)) {
	left := a.num("n", 1_000_000)
	for i, n := 0, len(s.net.Queue); n > 0 && left > 0; n-- {
		p := s.net.Queue[i]
		kind := "Snapshot"
		switch {
		case p.Message != nil:
			kind = message.Codec.Name(p.Message.Type)
		case p.Want != nil:
			kind = "Want"
		}
		if from := a.ids("from"); from != nil && !slices.Contains(from, p.From) {
			i++
		} else if to := a.ids("to"); to != nil && !slices.Contains(to, p.To) {
			i++
		} else if want := a.text("type"); want != "" && want != kind {
			i++
		} else {
			left--
			f(i)
		}
	}
}

// flip changes the digest that signals in a parcel have. It is put at the end of what is in progress.
func (s *script) flip(i int) {
	p := s.net.Queue[i]
	if p.Message != nil {
		m := *p.Message
		m.Entries = slices.Clone(m.Entries)
		for j := range m.Entries {
			if e := &m.Entries[j]; e.Kind == protocol.EntrySignal {
				e.Payload = slices.Clone(e.Payload)
				e.Payload[len(e.Payload)-1] ^= 1
			}
		}
		p.Message = &m
	}
	s.net.Queue = append(slices.Delete(s.net.Queue, i, i+1), p)
}

// alter puts a message at the end of what is in progress, and after it the same as from a log whose entries are of a
// term.
func (s *script) alter(i int, term protocol.Term) {
	p := s.net.Queue[i]
	m, part := *p.Message, *p.Message.Part.(*message.Part)
	m.Entries = slices.Clone(m.Entries)
	for j := range m.Entries {
		e := &m.Entries[j]
		e.Seal(e.Index, term, make([]byte, protocol.HeadSize))
	}
	if part.Index > 0 {
		part.LogTerm = term
	}
	m.Part = &part
	s.net.Queue = append(slices.Delete(s.net.Queue, i, i+1), p, conformance.Parcel{From: m.From, To: m.To, Message: &m})
}

func (s *script) status(id protocol.MemberID) {
	st := s.net.Node(id).Core.Status()
	fmt.Fprintf(&s.out, "%s t%d log %d…%d durable %d commit %d", st.Role, st.Term, st.First, st.Last,
		st.Durable, st.Commit)
	if st.K > 1 {
		fmt.Fprintf(&s.out, " k=%d", st.K)
	}
	if st.Preparing > 0 {
		fmt.Fprintf(&s.out, " preparing %d", st.Preparing)
	}
	if st.Restriping > 0 {
		fmt.Fprintf(&s.out, " %d more to hold bodies whole", st.Restriping)
	}
	s.out.WriteString("\n")
	for _, p := range st.Peers {
		fmt.Fprintf(&s.out, "  %s match %d next %d active %t snapshot %t in flight %d", p.ID, p.Match, p.Next, p.Active,
			p.Snapshot, p.InflightBytes)
		if p.Whole > 0 {
			fmt.Fprintf(&s.out, " whole to %d", p.Whole)
		}
		if p.Lacking {
			s.out.WriteString(" lacking")
		}
		s.out.WriteString("\n")
	}
	s.lanes(st.Lanes)
	if l := st.Lanes; l != nil && l.ByLeader {
		fmt.Fprintf(&s.out, "  blind commands go to %s\n", st.Routes[lane.Path].To)
	}
}

func (s *script) lanes(l *protocol.LanesStatus) {
	if l == nil {
		return
	}
	fmt.Fprintf(&s.out, "  generation %d accepting %t fence %t", l.Generation, l.Accepting, l.Fence)
	if l.Open {
		fmt.Fprintf(&s.out, ", own lane %s accepted %d", l.Own, l.Accepted)
	}
	if l.LeaderTime > 0 {
		fmt.Fprintf(&s.out, "\n  the lane takes %s, the leader %s, by the leader: %t", l.LaneTime, l.LeaderTime,
			l.ByLeader)
	}
	fmt.Fprintf(&s.out, "\n  %+v\n", l.Counts)
	for _, h := range l.Lanes {
		fmt.Fprintf(&s.out, "  lane %s confirmed %d durable %d held %d: %d of %d bytes\n", h.Lane, h.Confirmed, h.Durable,
			h.Held, h.HeldBytes, l.Window)
	}
}

// pace marks a message that may wait for others, or must not wait behind them.
func pace(m *protocol.Message) string {
	switch {
	case m.Lazy:
		return " lazy"
	case m.Aside:
		return " aside"
	}
	return ""
}
