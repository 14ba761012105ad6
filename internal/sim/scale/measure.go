package scale

import (
	"maps"
	"slices"
	"time"

	"github.com/braidlog/braid/protocol"
)

// meter measures what the steps of instances cost, while a simulation runs them.
type meter struct {
	samples [][]sample // by kind
	count   int        // of all samples
	clock   float64    // what reading the clock adds to a sample
	turn    float64    // what a turn takes in which nothing happened
	began   time.Time  // when a batch was taken that is being proposed; zero: none is
	frame   time.Time  // when a message was begun that is being built
	inner   float64    // what was measured by itself within the turn that is measured
	buffer  []byte
}

type meterKind int

const (
	meterPropose meterKind = iota
	meterDurable
	meterTick
	meterWake
	meterFrame
	meterDecode
	meterApply
	meterOther    // of no interest
	meterMessages // the first type of message that is the protocol's own, then the others
)

func kindOf(t protocol.MessageType) meterKind {
	return meterMessages + meterKind(t-protocol.FirstOwnType)
}

// sample is how long something with n parts took, in nanoseconds.
type sample struct {
	n  int
	ns float64
}

func (m *meter) add(kind meterKind, n int, ns float64) {
	m.samples[kind] = append(m.samples[kind], sample{n, max(0, ns)})
	m.count++
}

// since is how long something took.
func (m *meter) since(began time.Time) float64 { return float64(time.Since(began)) - m.clock }

// within adds a sample of something that happens within a turn that is measured.
func (m *meter) within(kind meterKind, n int, began time.Time) {
	m.add(kind, n, m.since(began))
	m.inner += m.since(began) + 2*m.clock
}

// proposes and proposed enclose the proposal of a batch.
func (m *meter) proposes() { m.began = time.Now() }

func (m *meter) proposed() {
	if !m.began.IsZero() {
		m.within(meterPropose, 0, m.began)
		m.began = time.Time{}
	}
}

// frames and framed enclose the building of a message.
func (m *meter) frames() { m.frame = time.Now() }

func (m *meter) framed(msg *protocol.Message, parts [][]byte) (wire []byte) {
	m.buffer = m.buffer[:0]
	for _, p := range parts { // as transport's queue
		m.buffer = append(m.buffer, p...)
	}
	m.add(meterFrame, len(msg.Entries), m.since(m.frame))
	wire = slices.Clone(m.buffer) // production does not do this
	m.inner += m.since(m.frame) + 2*m.clock
	return wire
}

// wake measures how a core is woken. step returns how many entries that commits.
func (m *meter) wake(step func() int) {
	began := time.Now()
	n := step()
	m.within(meterWake, n, began)
}

// decode measures how a message is decoded that came over the network.
func (m *meter) decode(f *frame, codec *protocol.Codec) error {
	if f.wire == nil { // it left before anything was measured
		return nil
	}
	began := time.Now()
	came := make([]byte, len(f.wire))
	copy(came, f.wire)
	_, err := protocol.DecodeMessage(came, codec)
	m.add(meterDecode, len(f.msg.Entries), m.since(began))
	return err
}

// fit is the line through the mean times of samples with as many parts, each of as much weight as there are samples.
func fit(samples []sample) (c Cost) {
	byParts := map[int][]float64{}
	for _, s := range samples {
		byParts[s.n] = append(byParts[s.n], s.ns)
	}
	var weight, n, t, nn, nt float64
	for _, parts := range slices.Sorted(maps.Keys(byParts)) {
		x, y, k := float64(parts), mean(byParts[parts]), float64(len(byParts[parts]))
		weight, n, t, nn, nt = weight+k, n+k*x, t+k*y, nn+k*x*x, nt+k*x*y
	}
	if weight == 0 {
		return c
	}
	n, t = n/weight, t/weight
	if spread := nn/weight - n*n; spread > 1e-9 {
		c.Each = max(0, (nt/weight-n*t)/spread)
	}
	if n > 0 {
		c.Each = min(c.Each, t/n)
	}
	c.Once = max(0, t-c.Each*n)
	return c
}

// mean is the mean time. It leaves out the slowest twentieth, because something interrupted those.
func mean(ns []float64) (sum float64) {
	slices.Sort(ns)
	ns = ns[:len(ns)-len(ns)/20]
	for _, v := range ns {
		sum += v
	}
	return sum / float64(max(1, len(ns)))
}

// typical is how long a call takes if nothing else on the machine delays it, in nanoseconds. It is
// the first quartile of so many calls.
func typical(times int, prepare, do func()) float64 {
	took := make([]float64, times)
	for i := range took {
		if prepare != nil {
			prepare()
		}
		began := time.Now()
		do()
		took[i] = float64(time.Since(began))
	}
	slices.Sort(took)
	return took[times/4]
}

// through is the line through two measurements: one with few parts, and one with many.
func through(few int, ofFew float64, many int, ofMany float64) (once, each float64) {
	each = max(0, (ofMany-ofFew)/float64(many-few))
	return max(0, ofFew-each*float64(few)), each
}

// steps are values of a distribution at even steps from the smallest to the largest, without the
// largest hundredth.
func steps(values []float64) []float64 {
	slices.Sort(values)
	values = values[:len(values)-len(values)/100]
	const n = 20
	out := make([]float64, n+1)
	for i := range out {
		out[i] = values[i*(len(values)-1)/n]
	}
	return out
}
