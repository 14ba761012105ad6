package scale

import (
	"maps"
	"runtime"
	"slices"
	"time"

	"github.com/braidlog/braid/protocol"
)

// meter measures the costs of steps of instances, while a simulation runs them.
type meter struct {
	samples [][]sample    // by kind
	count   int           // of all samples
	clock   float64       // the overhead of the clock in a sample
	turn    float64       // the duration of an empty turn
	began   time.Duration // when the batch that is being proposed was taken; 0: none is
	frame   time.Duration // when the message that is being built was begun
	inner   float64       // separately measured parts of the turn that is being measured
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
	meterOther    // not reported
	meterMessages // the protocol's first own type of message, then the others
)

func kindOf(t protocol.MessageType) meterKind {
	return meterMessages + meterKind(t-protocol.FirstOwnType)
}

// sample is the duration of an operation with n parts, in nanoseconds.
type sample struct {
	n  int
	ns float64
}

func (m *meter) add(kind meterKind, n int, ns float64) {
	m.samples[kind] = append(m.samples[kind], sample{n, max(0, ns)})
	m.count++
}

// since returns the duration of an operation.
func (m *meter) since(began time.Duration) float64 { return float64(worked()-began) - m.clock }

// within adds a sample of an operation within a turn that is measured.
func (m *meter) within(kind meterKind, n int, began time.Duration) {
	m.add(kind, n, m.since(began))
	m.inner += m.since(began) + 2*m.clock
}

// proposes and proposed enclose the proposal of a batch.
func (m *meter) proposes() { m.began = worked() }

func (m *meter) proposed() {
	if m.began > 0 {
		m.within(meterPropose, 0, m.began)
		m.began = 0
	}
}

// frames and framed enclose the building of a message.
func (m *meter) frames() { m.frame = worked() }

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

// wake measures a wakeup of a core. step returns the number of entries that it commits.
func (m *meter) wake(step func() int) {
	began := worked()
	n := step()
	m.within(meterWake, n, began)
}

// decode measures the decoding of a message from the network.
func (m *meter) decode(f *frame, codec *protocol.Codec) error {
	if f.wire == nil { // it was sent before the measurements
		return nil
	}
	began := worked()
	came := make([]byte, len(f.wire))
	copy(came, f.wire)
	_, err := protocol.DecodeMessage(came, codec)
	m.add(meterDecode, len(f.msg.Entries), m.since(began))
	return err
}

// fit returns the line through the mean times of samples with the same number of parts, weighted by their number of
// samples.
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

// mean returns the mean time. It excludes the slowest twentieth, which were interrupted.
func mean(ns []float64) (sum float64) {
	slices.Sort(ns)
	ns = ns[:len(ns)-len(ns)/20]
	for _, v := range ns {
		sum += v
	}
	return sum / float64(max(1, len(ns)))
}

// typical returns the CPU time of a call, in nanoseconds: the first quartile of the given number of calls.
func typical(times int, prepare, do func()) float64 {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	return quartile(worked, times, prepare, do)
}

// quartile returns the first quartile of what a clock shows for each call.
func quartile(clock func() time.Duration, times int, prepare, do func()) float64 {
	took := make([]float64, times)
	for i := range took {
		if prepare != nil {
			prepare()
		}
		began := clock()
		do()
		took[i] = float64(clock() - began)
	}
	slices.Sort(took)
	return took[times/4]
}

// through returns the line through two measurements: one with few parts, and one with many.
func through(few int, ofFew float64, many int, ofMany float64) (once, each float64) {
	each = max(0, (ofMany-ofFew)/float64(many-few))
	return max(0, ofFew-each*float64(few)), each
}

// steps returns values of a distribution at even steps from the smallest to the largest, without the largest
// hundredth.
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
