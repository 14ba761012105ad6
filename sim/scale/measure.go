package scale

import (
	"cmp"
	"slices"
	"time"
)

// meter measures what the steps of instances cost, while a simulation runs them.
type meter struct {
	samples [meterKinds][]sample
	clock   float64   // what reading the clock adds to a sample
	take    float64   // what an instance takes to take in nothing, with reading the clock
	began   time.Time // when a batch was taken that is being proposed; zero: none is
}

type meterKind int

const (
	meterPropose meterKind = iota
	meterAppend
	meterAck
	meterDurable
	meterTick
	meterKinds
)

// sample is how long something with n parts took, in nanoseconds.
type sample struct {
	n  int
	ns float64
}

func (m *meter) add(kind meterKind, n int, ns float64) {
	m.samples[kind] = append(m.samples[kind], sample{n, max(0, ns)})
}

// proposes and proposed enclose the proposal of a batch.
func (m *meter) proposes() { m.began = time.Now() }

func (m *meter) proposed() {
	if !m.began.IsZero() {
		m.add(meterPropose, 0, float64(time.Since(m.began))-m.clock)
		m.began = time.Time{}
	}
}

// fit is the line through two means: that of samples with few parts, and that of samples with many.
func fit(few, many []sample) (c Cost) {
	n1, t1 := mean(few)
	n2, t2 := mean(many)
	if n2 > n1 {
		c.Each = min(max(0, (t2-t1)/(n2-n1)), t2/n2)
	}
	c.Once = max(0, t1-c.Each*n1)
	return c
}

// mean is the mean number of parts and the mean time. It leaves out the slowest twentieth, because
// something interrupted those.
func mean(samples []sample) (n, ns float64) {
	samples = slices.Clone(samples)
	slices.SortFunc(samples, func(a, b sample) int { return cmp.Compare(a.ns, b.ns) })
	samples = samples[:len(samples)-len(samples)/20]
	for _, s := range samples {
		n, ns = n+float64(s.n), ns+s.ns
	}
	count := float64(max(1, len(samples)))
	return n / count, ns / count
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
