package fit

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/braidlog/braid/protocol"
)

// measured are two figures of docs/reports/benchmarks.md or docs/reports/comparison.md, or of a command that is named,
// and the load under which they were measured. The model is fitted to the first, and must tell the ratio of the second.
type measured struct {
	name     string
	trips    string // of members 2… to those before, a line each, in ms; one number: of all pairs
	members  int
	clients  []float64 // at each member, in progress; one: at all alike
	bytes    float64
	body     float64 // of each command
	blind    float64
	full     bool    // the sender's links
	cpu      float64 // of all members
	loop     float64 // of the first one's
	from, to string  // as key names a shape, "@2" behind it: led by the second
	was, is  float64 // commands a second; negative: they are the milliseconds of a command
	off      float64 // the model may be off by this factor; 0: 1.3
}

const regions5 = `70
149 201
191 126 134
200 256 107 154`

var allMeasured = []measured{
	// docs/reports/comparison.md, clients at all members, a round trip of 10 ms; medians.
	{name: "3 members: iss", trips: "10", members: 3, clients: []float64{1}, bytes: 16, from: "raft", to: "iss",
		was: -19, is: -14.3}, // raft's median is that of the two that do not lead: its mean is 19
	{name: "5 members: lanes", trips: "10", members: 5, clients: []float64{1}, bytes: 16, blind: 1, from: "raft",
		to: "lcr", was: -21.3, is: -13.1},
	// docs/reports/benchmarks.md, lcr-regions, the mean of five regions.
	{name: "regions: lanes", members: 5, clients: []float64{1}, bytes: 64, blind: 1, from: "raft", to: "lcr", trips: `66
70 130
149 98 201
115 175 178 258`, was: -151, is: -123},
	// bench kv --nodes 5 --net regions=us-east-1+eu-west-1+ap-northeast-1+ap-south-1+ap-southeast-2 --clients 50
	// --write-ratio 1 --val-size 64, and with three of these regions, 2026-11-28.
	{name: "five regions: iss", trips: regions5, members: 5, clients: []float64{10}, bytes: 64, from: "raft", to: "iss",
		was: 198, is: 211},
	{name: "five regions: niagara, spread", trips: regions5, members: 5, clients: []float64{10}, bytes: 64, from: "raft",
		to: "niagara+spread+5", was: 198, is: 169},
	{name: "three regions: iss", trips: "70\n149 201", members: 3, clients: []float64{17}, bytes: 64, from: "raft",
		to: "iss", was: 353, is: 285},
	{name: "five regions: the leader elsewhere", trips: regions5, members: 5, clients: []float64{0, 0, 50, 0, 0},
		bytes: 64, from: "raft", to: "raft@3", was: -283, is: -137},
	// bench log --payload 524288 --proposers 8, the same regions with bandwidth=50mbit, 2026-11-28.
	{name: "512 KiB, five regions: craft", trips: regions5, members: 5, clients: []float64{8, 0, 0, 0, 0}, body: 1 << 19,
		full: true, from: "raft", to: "craft", was: 2.9, is: 5.3},
	{name: "512 KiB, five regions, raft at the leader: niagara over code everywhere", trips: regions5, members: 5,
		clients: []float64{1.6}, body: 1 << 19, full: true, from: "raft", to: "niagara+code+spread+5", was: 2.9, is: 15.3},
	// docs/reports/benchmarks.md, braided-coding: 512 KiB, 5 members, links of 100 Mbit/s.
	{name: "512 KiB: craft", trips: "0.1", members: 5, clients: []float64{40, 0, 0, 0, 0}, body: 1 << 19, full: true,
		from: "raft", to: "craft", was: 1, is: 2},
	{name: "512 KiB: niagara, spread", trips: "0.1", members: 5, clients: []float64{8}, body: 1 << 19, full: true,
		from: "raft", to: "niagara+spread+5", was: 1, is: 5.1},
	{name: "512 KiB: niagara over code", trips: "0.1", members: 5, clients: []float64{8}, body: 1 << 19, full: true,
		from: "raft", to: "niagara+code+spread+5", was: 1, is: 10.2},
	// The same, craft-throughput.
	{name: "5 members, k = 3", trips: "0.1", members: 5, clients: []float64{100, 0, 0, 0, 0}, body: 1 << 20, full: true,
		from: "raft", to: "craft+k3", was: 1, is: 3},
	{name: "7 members, k = 3", trips: "0.1", members: 7, clients: []float64{100, 0, 0, 0, 0, 0, 0}, body: 1 << 20,
		full: true, from: "raft", to: "craft", was: 1, is: 2.98},
	// The same, throughput of ISS, EPaxos and WPaxos: all cores are busy.
	{name: "CPU, 3 members: iss", trips: "0.1", members: 3, clients: []float64{512}, bytes: 16, cpu: 1, from: "raft",
		to: "iss", was: 248.6, is: 133},
	{name: "CPU, 6 members: iss", trips: "0.1", members: 6, clients: []float64{256}, bytes: 16, cpu: 1, from: "raft",
		to: "iss", was: 125.5, is: 52.9},
	{name: "CPU, 3 members: multi-paxos", trips: "0.1", members: 3, clients: []float64{512}, bytes: 16, cpu: 1,
		from: "raft", to: "multi-paxos", was: 248.6, is: 235.7},
	{name: "CPU, 6 members: multi-paxos", trips: "0.1", members: 6, clients: []float64{256}, bytes: 16, cpu: 1,
		from: "raft", to: "multi-paxos", was: 125.5, is: 127},
	// The same, niagara-throughput: one event loop is full, and there are eight cores.
	{name: "loops: 8 instances", trips: "0.1", members: 3, clients: []float64{5000, 0, 0}, bytes: 16, loop: 1,
		from: "raft", to: "niagara+8", was: 1, is: 6.4},
}

func TestModelTellsWhatWasMeasured(t *testing.T) {
	for _, c := range allMeasured {
		t.Run(c.name, func(t *testing.T) {
			from, _ := readShape(t, c.from)
			to, leader := readShape(t, c.to)
			l := c.load(&from)
			m := newModel(l, from, nil)
			was, is := c.was, c.is
			if was < 0 {
				was, is = -1/was, -1/is
			}
			gain := m.of(&to, leader).rate / m.of(&from, 0).rate
			require.InDelta(t, 0, math.Log(m.ratio), math.Log(1.05), "the active profile")
			ratio := gain / (is / was)
			t.Logf("measured %.2f, model %.2f, off by %.2f", is/was, gain, max(ratio, 1/ratio))
			require.Less(t, max(ratio, 1/ratio), max(1.3, c.off))
		})
	}
}

// load is the load that was measured under a shape, led by the first member.
func (c *measured) load(from *shape) *load {
	l := &load{leader: 0}
	for i := range c.members {
		m := member{Member: Member{ID: protocol.MemberID(i + 1), Present: true}, reported: true, sync: 0.001,
			trip: make([]float64, c.members), bytes: c.bytes + c.body, body: c.body, blind: c.blind, early: c.blind}
		m.inside, m.rate = c.clients[i%len(c.clients)], 1
		m.used = usage{cpu: c.cpu, linger: make([]float64, c.members)}
		l.members = append(l.members, m)
	}
	l.members[0].used.loop = c.loop
	for i, line := range strings.Split(c.trips, "\n") {
		for j, text := range strings.Fields(line) {
			var ms float64
			fmt.Sscan(text, &ms)
			for a := range l.members {
				for b := range l.members {
					if a != b && (!strings.ContainsAny(c.trips, "\n ") || a == i+1 && b == j || b == i+1 && a == j) {
						l.members[a].trip[b] = ms / 1000
					}
				}
			}
		}
	}
	// Members have their parts of the rate as paths are long.
	m := &model{load: l}
	sum := 0.0
	for i := range l.members {
		o := &l.members[i]
		o.rate = o.inside / m.path(from, 0, i)
		sum += o.rate
	}
	factor := c.was / sum
	if c.was < 0 {
		factor = l.latency() / (-c.was / 1000)
	}
	for i := range l.members {
		o := &l.members[i]
		o.rate *= factor
		o.bytes, o.body = o.bytes*o.rate, o.body*o.rate
		l.rate, l.inside = l.rate+o.rate, l.inside+o.inside
	}
	if c.full {
		u := &l.members[0].used
		u.out = l.rate * float64(c.members-1) * (c.bytes + c.body)
		u.queued = max(u.out, fullQueueBytes)
	}
	return l
}

// latency is the mean time of a command.
func (l *load) latency() float64 {
	rate, inside := 0.0, 0.0
	for i := range l.members {
		rate, inside = rate+l.members[i].rate, inside+l.members[i].inside
	}
	return inside / rate
}

// readShape reads what shape.key writes, and the leader, by its place.
func readShape(t *testing.T, text string) (s shape, leader int) {
	t.Helper()
	text, by, given := strings.Cut(text, "@")
	if given {
		_, err := fmt.Sscan(by, &leader)
		require.NoError(t, err)
		leader--
	}
	s, ok := parseShape(text)
	require.True(t, ok, text)
	return s, leader
}
