package workload

import (
	"math"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/braidlog/braid/internal/testsize"
)

func spec(t testing.TB, keys string, space int) Spec {
	t.Helper()
	k, err := ParseKeys(keys)
	require.NoError(t, err)
	return Spec{Mix: Mix{Read: 1}, Keys: k, KeySpace: space, Values: Fixed(16), Seed: 7}
}

func generator(t testing.TB, s Spec, client, clients int) *Generator {
	t.Helper()
	w, err := New(s, clients)
	require.NoError(t, err)
	return w.Generator(client)
}

// counts draws keys and counts each.
func counts(g *Generator, space, draws int, at time.Duration) []float64 {
	n := make([]float64, space)
	for range draws {
		n[g.Next(at).Key]++
	}
	return n
}

// requireFit compares counts with expected shares by Pearson's chi-square: with d degrees
// of freedom it is about normal around d with deviation √(2d). Six deviations off, the
// generator is wrong.
func requireFit(t *testing.T, counts, shares []float64, draws int) {
	t.Helper()
	chi, classes := 0.0, 0.0
	var restSeen, restWanted float64
	add := func(seen, wanted float64) {
		chi += (seen - wanted) * (seen - wanted) / wanted
		classes++
	}
	for i, share := range shares {
		wanted := share * float64(draws)
		if wanted < 10 { // too rare to count alone
			restSeen, restWanted = restSeen+counts[i], restWanted+wanted
			continue
		}
		add(counts[i], wanted)
	}
	if restWanted >= 10 {
		add(restSeen, restWanted)
	} else {
		require.LessOrEqual(t, restSeen, restWanted+40, "what should hardly come up")
	}
	d := max(classes-1, 1)
	require.InDelta(t, d, chi, 6*math.Sqrt(2*d)+3, "chi-square with %.0f degrees of freedom", d)
}

// normalized scales weights to a sum of 1.
func normalized(n int, weight func(int) float64) []float64 {
	out, sum := make([]float64, n), 0.0
	for i := range out {
		out[i] = weight(i)
		sum += out[i]
	}
	for i := range out {
		out[i] /= sum
	}
	return out
}

const draws = 200_000

func TestUniform(t *testing.T) {
	got := counts(generator(t, spec(t, "uniform", 500), 0, 1), 500, draws, 0)
	requireFit(t, got, normalized(500, func(int) float64 { return 1 }), draws)
}

func TestZipf(t *testing.T) {
	for _, c := range []struct {
		keys string
		n    int
		skew float64
	}{
		{"zipf:0", 100, 0}, {"zipf:0.5", 1000, 0.5}, {"zipf", 1000, 0.99}, {"zipf:skew=1", 1000, 1}, {"zipf:1.5", 1000, 1.5},
		{"zipf:3", 50, 3}, {"zipf:0.99", 1, 0.99}, {"zipf:0.99", 2, 0.99},
	} {
		got := counts(generator(t, spec(t, c.keys, c.n), 0, 1), c.n, draws, 0)
		requireFit(t, got, normalized(c.n, func(i int) float64 { return math.Pow(float64(i+1), -c.skew) }), draws)
	}
}

func TestZipfScattered(t *testing.T) {
	const n = 1000
	got := counts(generator(t, spec(t, "zipf:skew=0.99,scatter=1", n), 0, 1), n, draws, 0)
	rank := make([]float64, n) // of the key that the scattering maps it to
	seen := map[uint64]bool{}
	for i := range n {
		key := uint64(i) * coprime(n) % n
		seen[key] = true
		rank[key] = math.Pow(float64(i+1), -0.99)
	}
	require.Len(t, seen, n, "every rank has a key of its own")
	requireFit(t, got, normalized(n, func(i int) float64 { return rank[i] }), draws)
	require.Greater(t, rank[0]/rank[1], 1.5, "neighbours of a popular key are no more popular than others")
}

func TestExponential(t *testing.T) {
	const n, mean = 200, 30.0
	got := counts(generator(t, spec(t, "exponential:mean=30", n), 0, 1), n, draws, 0)
	requireFit(t, got, normalized(n, func(i int) float64 {
		return math.Exp(-float64(i)/mean) - math.Exp(-float64(i+1)/mean)
	}), draws)
}

func TestNormal(t *testing.T) {
	const n = 1000
	shares := func(mean, deviation float64) []float64 {
		below := func(x float64) float64 { return math.Erfc((mean-x)/(deviation*math.Sqrt2)) / 2 }
		return normalized(n, func(i int) (w float64) {
			for turn := -3; turn <= 3; turn++ { // both ends wrap around
				x := float64(i + turn*n)
				w += below(x+1) - below(x)
			}
			return w
		})
	}
	g := generator(t, spec(t, "normal:mean=500,deviation=60,move=100", n), 0, 1)
	requireFit(t, counts(g, n, draws, 0), shares(500, 60), draws)
	requireFit(t, counts(g, n, draws, 4500*time.Millisecond), shares(950, 60), draws)
	requireFit(t, counts(g, n, draws, 9*time.Second), shares(1400, 60), draws)
	backwards := generator(t, spec(t, "normal:mean=10,deviation=5,move=-100", n), 0, 1)
	requireFit(t, counts(backwards, n, draws, time.Second), shares(-90, 5), draws)
	wide := generator(t, spec(t, "normal", n), 0, 1)
	requireFit(t, counts(wide, n, draws, 0), shares(500, 100), draws)
}

func TestConflict(t *testing.T) {
	const n, clients = 103, 4
	s := spec(t, "conflict:25%,hot=3", n)
	owner := map[uint64]int{}
	own := 0
	for client := range clients {
		got := counts(generator(t, s, client, clients), n, draws, 0)
		mine := 0.0
		for key := 3; key < n; key++ {
			if got[key] > 0 {
				before, taken := owner[uint64(key)]
				require.False(t, taken, "key %d is of clients %d and %d", key, before, client)
				owner[uint64(key)] = client
				mine++
			}
		}
		own += int(mine)
		requireFit(t, got, normalized(n, func(i int) float64 {
			switch {
			case i < 3:
				return 0.25 / 3
			case got[i] > 0:
				return 0.75 / mine
			}
			return 0
		}), draws)
	}
	require.Equal(t, n-3, own, "every key is somebody's")

	all := counts(generator(t, spec(t, "conflict:100%", 5), 0, 10), 5, 1000, 0)
	require.Equal(t, []float64{1000, 0, 0, 0, 0}, all, "with conflicts only, nobody needs a key of its own")
}

func TestLatest(t *testing.T) {
	s := spec(t, "latest", 100)
	s.Mix = Mix{Read: 0.5, Insert: 0.5}
	w, err := New(s, 1)
	require.NoError(t, err)
	g := w.Generator(0)
	next, reads := uint64(100), make([]float64, 100)
	n := 0
	for range draws {
		op := g.Next(0)
		if op.Kind == Insert {
			require.Equal(t, next, op.Key)
			w.Inserted(op.Key)
			next++
			continue
		}
		require.Less(t, op.Key, next, "only what is there is read")
		reads[next-1-op.Key]++
		n++
	}
	requireFit(t, reads, normalized(100, func(i int) float64 { return math.Pow(float64(i+1), -0.99) }), n)
}

func TestFrontierWaitsForEarlierInserts(t *testing.T) {
	f := newFrontier(1)
	var taken []uint64
	for range 200 {
		taken = append(taken, f.take())
	}
	for _, key := range taken[1:] {
		f.finish(key)
		require.Equal(t, uint64(1), f.known())
	}
	f.finish(taken[0])
	require.Equal(t, uint64(201), f.known())
}

func TestFrontierConcurrently(t *testing.T) {
	f := newFrontier(3 * ring / 2) // more than once around the ring
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for range ring / 4 {
				f.finish(f.take())
			}
		})
	}
	all.Wait()
	require.Equal(t, uint64(3*ring/2+8*ring/4), f.known())
	for _, word := range f.done {
		require.Zero(t, word)
	}
}

func TestMixShares(t *testing.T) {
	testsize.Long(t)
	for _, name := range []string{"A", "b", "C", "D", "E", "F"} {
		mix, keys, err := YCSB(name)
		require.NoError(t, err)
		w, err := New(Spec{Mix: mix, Keys: keys, KeySpace: 1000, Values: Sizes{16, 1024}, Seed: 3}, 2)
		require.NoError(t, err)
		g := w.Generator(1)
		got := make([]float64, Kinds)
		for range draws {
			op := g.Next(0)
			got[op.Kind]++
			require.Equal(t, op.Kind.Writes() && op.Kind != Delete, op.Size > 0)
			require.Equal(t, op.Kind == Scan, op.Limit > 0)
			require.LessOrEqual(t, op.Limit, 100)
			if op.Kind == Insert {
				w.Inserted(op.Key)
			}
		}
		requireFit(t, got, mix[:], draws)
	}
}

func TestSizes(t *testing.T) {
	s := spec(t, "uniform", 10)
	s.Mix, s.Values = Mix{Update: 1}, Sizes{16, 1 << 20}
	g := generator(t, s, 0, 1)
	doublings := make([]float64, 17)
	for range draws {
		size := g.Next(0).Size
		require.True(t, size >= 16 && size <= 1<<20)
		doublings[int(math.Log2(float64(size)))-4]++
	}
	doublings[15] += doublings[16] // the upper end on its own
	for i, n := range doublings[:16] {
		require.InDelta(t, draws/16, n, 0.1*draws/16, "sizes from %d on", 16<<i)
	}
}

// The same seed and client have the same operations; another of either has others.
func TestDeterminism(t *testing.T) {
	mix, err := ParseMix("read=40%,update=30%,scan=10%,rmw=10%,delete=10%")
	require.NoError(t, err)
	for _, keys := range []string{"uniform", "conflict:0.5", "normal:move=3", "zipf", "exponential"} {
		stream := func(seed uint64, client int) (ops []Op) {
			s := spec(t, keys, 1000)
			s.Mix, s.Values, s.Seed = mix, Sizes{1, 4096}, seed
			g := generator(t, s, client, 3)
			for i := range 1000 {
				ops = append(ops, g.Next(time.Duration(i)*time.Millisecond))
			}
			return ops
		}
		require.Equal(t, stream(1, 2), stream(1, 2), keys)
		require.NotEqual(t, stream(1, 2), stream(2, 2), keys)
		require.NotEqual(t, stream(1, 1), stream(1, 2), keys)
	}
}

func TestNothingIsAllocated(t *testing.T) {
	mix, err := ParseMix("read=40%,update=20%,insert=10%,scan=10%,rmw=20%")
	require.NoError(t, err)
	for _, keys := range []string{"uniform", "conflict", "normal", "zipf", "exponential", "latest"} {
		s := spec(t, keys, 1000)
		s.Mix, s.Values = mix, Sizes{16, 1024}
		w, err := New(s, 1)
		require.NoError(t, err)
		g := w.Generator(0)
		require.Zero(t, testing.AllocsPerRun(1000, func() {
			if op := g.Next(time.Second); op.Kind == Insert {
				w.Inserted(op.Key)
			}
		}), keys)
	}
}

func TestPace(t *testing.T) {
	p := NewPace(1000)
	var last time.Duration
	for i := range 2500 {
		last = p.Next()
		require.Equal(t, time.Duration(i)*time.Millisecond, last)
	}
	require.Equal(t, int64(0), p.Behind(last))
	require.Equal(t, int64(501), p.Behind(3*time.Second))
}

func TestThrottle(t *testing.T) {
	th := NewThrottle(1000)
	require.Equal(t, time.Duration(0), th.Begin(0))
	require.Equal(t, time.Millisecond, th.Begin(0))
	require.Equal(t, 2*time.Millisecond, th.Begin(0))
	require.Equal(t, time.Duration(0), th.Begin(time.Second), "what was missed is not caught up with")
	require.Equal(t, time.Millisecond, th.Begin(time.Second))
}

func BenchmarkNext(b *testing.B) {
	for _, keys := range []string{"uniform", "conflict", "normal", "zipf", "exponential", "latest"} {
		b.Run(keys, func(b *testing.B) {
			s := spec(b, keys, 10_000)
			s.Mix = Ratio(0.5)
			g := generator(b, s, 0, 1)
			b.ReportAllocs()
			for b.Loop() {
				g.Next(0)
			}
		})
	}
}
