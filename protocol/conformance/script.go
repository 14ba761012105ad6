package conformance

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"

	"github.com/braidlog/braid/protocol"
	"github.com/braidlog/braid/protocol/setting"
)

// Scripts runs the scripts of a folder, which control clusters message by message. The trace is the expected output;
// -rewrite writes it again. The commands are:
//
//	cluster n=3 [mutant=name] [frame=bytes] [zones=(…)] [setting=value …]
//	expire id                  time passes on id until it stands for election
//	tick id                    a heartbeat's time passes on id
//	pass id                    an election timeout passes on id, which does not look at its clock
//	propose id [body=bytes] [early] | read id | transfer id to | stopping id
//	change id [add-voter|add-learner|join|remove=(…)] [put=(…) into=zone]
//	tune id [version=N] [setting=value …]  the profile after the active one; the heartbeat is that of the cluster
//	seal id [forwarded] | sealed id [counts]  a seal is proposed | its verdict
//	deliver | drop [from] [to] [type]   of what is in progress
//	repeat [from] [to] [type]  what is in progress will arrive twice
//	alter [from] [to] [type]   what is in progress comes again with other commands where it says that they are decided
//	queue                      what is in progress
//	settle                     delivers and syncs all until nothing is in progress
//	lag [off] | sync id [one]  disks complete nothing from now on | but id's, now | its oldest write
//	unreachable id to          id learns that its messages to the other one may be lost
//	crash id | restart id | add id | compact id | status id
//
// id, from and to may be several: id=(1,2). With quiet a command prints only violations. start makes the factory for
// a cluster's settings, and describe returns the output of status.
func Scripts(t *testing.T, dir string, codec *protocol.Codec, start func(change func(*protocol.Settings)) Factory,
	o Options, describe func(protocol.Status) string) {
	datadriven.Walk(t, dir, func(t *testing.T, path string) {
		s := &script{t: t, codec: codec, start: start, options: o, describe: describe}
		datadriven.RunTest(t, path, s.run)
	})
}

// script is a cluster under a script.
type script struct {
	t        *testing.T
	codec    *protocol.Codec
	start    func(func(*protocol.Settings)) Factory
	options  Options
	describe func(protocol.Status) string
	net      *Net
	out      strings.Builder
}

// violation is a violation that the net's judge found. It is output like anything else.
type violation struct{ what string }

type reporter struct{ testing.TB }

func (reporter) Helper()                        {}
func (reporter) Logf(string, ...any)            {}
func (reporter) Fatalf(format string, a ...any) { panic(violation{fmt.Sprintf(format, a...)}) }

func (s *script) run(t *testing.T, d *datadriven.TestData) (out string) {
	s.out.Reset()
	defer func() {
		p := recover()
		v, ok := p.(violation)
		if p != nil && !ok {
			panic(p)
		}
		if d.HasArg("quiet") {
			s.out.Reset()
		}
		if p != nil {
			s.out.WriteString("VIOLATION: " + v.what + "\n")
		}
		if out = s.out.String(); out == "" {
			out = "ok\n"
		}
	}()
	do, ok := commands[d.Cmd]
	if !ok {
		d.Fatalf(t, "unknown command")
	}
	do(s, args{t, d})
	return ""
}

var commands = map[string]func(*script, args){
	"cluster": func(s *script, a args) {
		mutant, frame, own := protocol.Mutant(a.text("mutant")), a.num("frame", 0), a.own() // also of members that restart
		s.net = newNet(reporter{s.t}, a.num("n", 3), 1, s.codec, s.start(func(c *protocol.Settings) {
			c.Mutant, c.MaxFrameBytes, c.Own = mutant, frame, own
		}), a.texts("zones"))
		s.net.Options = s.options
		for _, n := range s.net.Nodes {
			s.net.Tick(n.ID, 0)
		}
		s.net.Trace = func(line string) { s.out.WriteString(line + "\n") }
	},
	"expire": func(s *script, a args) {
		a.each(func(id protocol.MemberID) {
			stands := func() bool {
				role := s.net.Node(id).Core.Status().Role
				return role == protocol.Candidate || role == protocol.PreCandidate
			}
			for !stands() {
				s.net.Tick(id, Pace)
			}
		})
	},
	"tick": func(s *script, a args) {
		a.each(func(id protocol.MemberID) { s.net.Tick(id, Pace*10) })
	},
	"pass": func(s *script, a args) {
		a.each(func(id protocol.MemberID) { s.net.Node(id).Now += 100 * Pace })
	},
	"propose": func(s *script, a args) {
		if size := a.num("body", 0); size > 0 {
			s.net.ProposeBody(a.id("id"), size)
			return
		}
		if a.d.HasArg("early") {
			s.net.ProposeEarly(a.id("id"), 8)
			return
		}
		s.net.Propose(a.id("id"), 8)
	},
	"read":     func(s *script, a args) { s.net.Read(a.id("id")) },
	"transfer": func(s *script, a args) { s.net.Transfer(a.id("id"), a.id("to")) },
	"stopping": func(s *script, a args) { s.net.Step(a.id("id"), protocol.Stopping{}) },
	"change":   func(s *script, a args) { s.net.Change(a.id("id"), a.changes()...) },
	"tune":     func(s *script, a args) { s.net.tune(a.id("id"), s.profile(a)) },
	"seal":     func(s *script, a args) { s.net.Seal(a.id("id"), a.d.HasArg("forwarded")) },
	"sealed": func(s *script, a args) {
		a.each(func(id protocol.MemberID) { s.net.Verdict(id, a.d.HasArg("counts")) })
	},
	"deliver": func(s *script, a args) { s.parcels(a, s.net.Deliver) },
	"drop":    func(s *script, a args) { s.parcels(a, s.net.Drop) },
	"repeat": func(s *script, a args) {
		s.parcels(a, func(i int) {
			p := s.net.take(i)
			s.net.Queue = append(s.net.Queue, p, p)
		})
	},
	"alter": func(s *script, a args) {
		s.parcels(a, func(i int) {
			p := s.net.take(i)
			s.net.Queue = append(s.net.Queue, p, p.altered())
		})
	},
	"queue": func(s *script, a args) {
		for _, p := range s.net.Queue {
			fmt.Fprintf(&s.out, "%s→%s %s\n", p.From, p.To, s.kindOf(p))
		}
	},
	"settle": func(s *script, _ args) { s.net.Settle() },
	"lag":    func(s *script, a args) { s.net.Lag = !a.d.HasArg("off") },
	"sync": func(s *script, a args) {
		if a.d.HasArg("one") {
			a.each(s.net.SyncOne)
			return
		}
		a.each(s.net.Sync)
	},
	"unreachable": func(s *script, a args) { s.net.Step(a.id("id"), protocol.Unreachable{Member: a.id("to")}) },
	"crash":       func(s *script, a args) { a.each(func(id protocol.MemberID) { s.net.Crash(id, 0) }) },
	"restart":     func(s *script, a args) { a.each(func(id protocol.MemberID) { s.net.Restart(id); s.net.Tick(id, 0) }) },
	"add":         func(s *script, a args) { s.net.Add(a.id("id"), protocol.Config{}); s.net.Tick(a.id("id"), 0) },
	"compact":     func(s *script, a args) { s.net.Compact(a.id("id"), 0) },
	"status": func(s *script, a args) {
		s.out.WriteString(s.describe(s.net.Node(a.id("id")).Core.Status()) + "\n")
	},
}

// altered is a message as a member of another log would send it: decided commands are replaced by those of another
// incarnation.
func (p Parcel) altered() Parcel {
	m := *p.Message
	m.Entries = slices.Clone(m.Entries)
	for i := range m.Entries {
		if e := &m.Entries[i]; e.Index <= m.Commit && e.Kind.Commands() {
			e.ID.Session.Incarnation++
			e.Seal(e.Index, e.Term, make([]byte, protocol.HeadSize))
		}
	}
	p.Message = &m
	return p
}

func (s *script) kindOf(p Parcel) string {
	if p.Message == nil {
		return "Snapshot"
	}
	return s.codec.Name(p.Message.Type)
}

// parcels calls f for the matching parcels in progress, of those at its beginning.
func (s *script) parcels(a args, f func(i int)) {
	for i, n := 0, len(s.net.Queue); n > 0; n-- {
		p := s.net.Queue[i]
		fits := func(key string, id protocol.MemberID) bool {
			ids := a.ids(key)
			return ids == nil || slices.Contains(ids, id)
		}
		if want := a.text("type"); fits("from", p.From) && fits("to", p.To) && (want == "" || want == s.kindOf(p)) {
			f(i)
		} else {
			i++
		}
	}
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

func (a args) text(key string) (v string) {
	if a.d.HasArg(key) {
		a.d.ScanArgs(a.t, key, &v)
	}
	return v
}

// profile is the next profile of a member, with the settings that the arguments name.
func (s *script) profile(a args) protocol.Profile {
	active := s.net.Node(a.id("id")).Core.Status().Config.Profile.Version
	v := a.settings("id", "version", "quiet").Over(setting.MustParse("heartbeat-interval=" + (10 * Pace).String()))
	return protocol.Profile{Version: uint64(a.num("version", int(active)+1)), Values: v}
}

// own are the protocol's own settings: the arguments of cluster that are not common to all protocols.
func (a args) own() setting.Values { return a.settings("n", "mutant", "frame", "zones") }

// settings are the arguments with other keys than these.
func (a args) settings(but ...string) (v setting.Values) {
	for _, arg := range a.d.CmdArgs {
		if slices.Contains(but, arg.Key) {
			continue
		}
		one, err := setting.Parse(arg.Key + "=" + strings.Join(arg.Vals, ","))
		if err != nil {
			a.d.Fatalf(a.t, "%v", err)
		}
		v = one.Over(v)
	}
	return v
}

func (a args) ids(key string) (ids []protocol.MemberID) {
	for _, arg := range a.d.CmdArgs {
		for i := range arg.Vals {
			if arg.Key == key {
				var id int
				arg.Scan(a.t, i, &id)
				ids = append(ids, protocol.MemberID(id))
			}
		}
	}
	return ids
}

func (a args) each(f func(protocol.MemberID)) {
	for _, id := range a.ids("id") {
		f(id)
	}
}

func (a args) changes() (out []protocol.Change) {
	for _, k := range []struct {
		key  string
		kind protocol.ChangeKind
	}{{"add-voter", protocol.AddVoter}, {"add-learner", protocol.AddLearner}, {"join", protocol.AddJoining},
		{"remove", protocol.RemoveMember}} {
		for _, id := range a.ids(k.key) {
			out = append(out, protocol.Change{Kind: k.kind, Member: protocol.Member{ID: id}})
		}
	}
	for _, id := range a.ids("put") {
		out = append(out, protocol.Change{Kind: protocol.UpdateMember,
			Member: protocol.Member{ID: id, Zone: a.text("into")}})
	}
	return out
}

// texts are the values of an argument; nil: it is not there.
func (a args) texts(key string) []string {
	for i := range a.d.CmdArgs {
		if a.d.CmdArgs[i].Key == key {
			return a.d.CmdArgs[i].Vals
		}
	}
	return nil
}
