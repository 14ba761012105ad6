package paper

import (
	"strings"
	"testing"
	"time"

	"github.com/braidlog/braid"
)

// A day of two phases on a real cluster, with values in bodies, blind commands and slow links.
func TestRealDay(t *testing.T) {
	t.Parallel()
	d := Day{Length: time.Second, After: 300 * time.Millisecond, Every: 100 * time.Millisecond, Part: bySecondOfDay,
		Phases: []Phase{
			{Name: "near", Clients: 4, At: []int{1}, Sizes: []int{16, 20 << 10}},
			{Name: "far", Clients: 6, Sizes: []int{32}, Blind: 0.5, Net: "latency=2ms;2~*:latency=9ms",
				Burst: 200 * time.Millisecond},
		}}
	s := Setup{Protocol: "lcr", Net: "latency=1ms", Heartbeat: 100 * time.Millisecond, Positions: true}
	target := openReal(t, s)
	f := runReal(t, target, Work{Day: &d, Leader: 1})
	if f[Throughput] <= 0 || f[Wrong] != 0 || f[P99] < f[P50] {
		t.Errorf("the day: %v", f)
	}
	if err := target.Check(t.Context()); err != nil {
		t.Error(err)
	}
	n := target.(narrator)
	windows, phases := 0, 0
	for _, m := range n.Moments() {
		switch {
		case m.Part == bySecondOfDay:
			windows++
		case m.Sample[Throughput] > 0 && m.Sample[FromBegin] > 0:
			phases++
		}
	}
	if windows != 20 || phases != 2 {
		t.Errorf("%d windows, %d phases with answers", windows, phases)
	}
	if m := n.Marks(); len(m) < 2 || m[0] != (Mark{Part: bySecondOfDay, Text: "1: near", Phase: true}) || m[1].X != 1 {
		t.Errorf("marks %v", m)
	}
}

func TestActiveClients(t *testing.T) {
	for _, c := range []struct {
		p    Phase
		at   time.Duration
		want int
	}{
		{Phase{Clients: 9}, 0, 9},
		{Phase{Clients: 9, Burst: time.Second}, 900 * time.Millisecond, 9},
		{Phase{Clients: 9, Burst: time.Second}, 1100 * time.Millisecond, 0},
		{Phase{Clients: 9, Burst: time.Second}, 2100 * time.Millisecond, 9},
		{Phase{Clients: 9, Wave: true}, 0, 1},
		{Phase{Clients: 9, Wave: true}, 5 * time.Second, 9},
		{Phase{Clients: 9, Wave: true}, 10 * time.Second, 1},
	} {
		if got := c.p.active(c.at, 10*time.Second); got != c.want {
			t.Errorf("%+v after %v: %d clients, want %d", c.p, c.at, got, c.want)
		}
	}
}

// What contradicts the history of a day is found.
func TestJudgeDay(t *testing.T) {
	of := func(numbers ...byte) *member {
		m := newMachine(0)
		var commands [][]byte
		for _, n := range numbers {
			commands = append(commands, []byte{n, 0, 0, 0, 0, 0, 0, 0})
		}
		m.m.ApplyAll(commands)
		return &member{machine: m}
	}
	for _, c := range []struct {
		applied []byte
		failed  []failedCommand
		want    string
	}{
		{[]byte{0, 1, 2}, nil, ""},
		{[]byte{0, 2}, []failedCommand{{1, true}}, ""},
		{[]byte{0, 1, 2}, []failedCommand{{1, true}}, ""},
		{[]byte{0, 2}, []failedCommand{{1, false}}, ""},
		{[]byte{0, 1, 2}, []failedCommand{{1, false}}, "applied command 1, which was refused"},
		{[]byte{0, 2}, nil, "lacks command 1, which was answered"},
		{[]byte{0, 1, 1, 2}, nil, "applied 1 commands more than once"},
	} {
		h := &dayLoad{failed: c.failed}
		h.next.Store(3)
		got := strings.Join(h.judge([]*member{of(c.applied...)}), "; ")
		if c.want == "" && got != "" || !strings.Contains(got, c.want) {
			t.Errorf("applied %v, failed %v: %q, want %q", c.applied, c.failed, got, c.want)
		}
	}
}

// The order must agree with the times of calls and answers.
func TestMisplaced(t *testing.T) {
	for _, c := range []struct {
		all  []placed
		want string
	}{
		{nil, ""},
		{[]placed{{1, 10, 0, 5}, {2, 11, 6, 9}, {3, 12, 1, 20}}, ""},
		{[]placed{{2, 11, 0, 9}, {1, 10, 8, 12}}, ""}, // concurrent
		{[]placed{{1, 10, 8, 12}, {2, 11, 0, 7}}, "command 1 at 10 was called after command 2 at 11 was answered"},
		{[]placed{{1, 10, 8, 12}, {2, 11, 9, 20}, {3, 12, 0, 7}}, "command 1 at 10 was called after command 3"},
		{[]placed{{1, 10, 0, 5}, {2, 10, 0, 5}}, "both have position 10"},
	} {
		got := strings.Join(misplaced(c.all), "; ")
		if c.want == "" && got != "" || !strings.Contains(got, c.want) {
			t.Errorf("%v: %q, want %q", c.all, got, c.want)
		}
	}
}

// A change has the reason of the wish before it, unless that is old.
func TestReasonOfChange(t *testing.T) {
	var l lastWish
	s := &braid.Status{Fit: braid.FitStatus{Wish: &braid.FitWish{Gain: 1.5, Reason: "the link is full"}}}
	l.see(s, time.Minute)
	l.see(&braid.Status{}, time.Minute+time.Second)
	if got := l.reason(time.Minute + 2*time.Second); got != "the link is full (1.50 times as much)" {
		t.Errorf("reason %q", got)
	}
	if got := l.reason(2 * time.Minute); got != "" {
		t.Errorf("an old reason %q", got)
	}
}

func TestChanges(t *testing.T) {
	status := func(protocol string, version uint64, leader braid.MemberID, settings ...string) *braid.Status {
		s := &braid.Status{Protocol: protocol, Profile: braid.Profile{Version: version, Settings: map[string]string{}},
			Instances: make([]braid.InstanceStatus, 1), Members: []braid.Member{{ID: 1, Name: "m1"}, {ID: 2, Name: "m2"}}}
		s.Lead.Leader = leader
		for _, text := range settings {
			name, value, _ := strings.Cut(text, "=")
			s.Profile.Settings[name] = value
		}
		return s
	}
	for _, c := range []struct {
		before, after   *braid.Status
		profile, leader string
	}{
		{status("raft", 1, 1), status("raft", 1, 1), "", ""},
		{status("raft", 1, 1), status("craft", 2, 1), "craft", ""},
		{status("raft", 1, 1, "lanes=false"), status("raft", 2, 1, "lanes=true"), "lanes=true", ""},
		{status("raft", 1, 1, "fit-avoid="), status("raft", 2, 1, "fit-avoid=x"), "", ""},
		{status("raft", 1, 1), status("raft", 1, 2), "", "leader m2"},
		{status("raft", 1, 1), status("raft", 1, 0), "", ""},
		{status("iss", 1, 1), status("iss", 1, 2), "", ""},
	} {
		if got := changeOfProfile(c.before, c.after); got != c.profile {
			t.Errorf("change of the profile %q, want %q", got, c.profile)
		}
		if got := changeOfLeader(c.before, c.after); got != c.leader {
			t.Errorf("change of the leader %q, want %q", got, c.leader)
		}
	}
}
