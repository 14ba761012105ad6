package workload

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Distribution is a distribution of keys.
type Distribution uint8

const (
	// Uniform: all keys are equally likely.
	Uniform Distribution = iota
	// Conflict: a share of the operations goes to the hot keys, which all clients use; the
	// others go to keys that only this client uses.
	Conflict
	// Normal: keys around a mean, which may move; they wrap around at the ends.
	Normal
	// Zipf: the probability of the k-th most popular key is proportional to 1/k^skew.
	Zipf
	// Exponential: lower keys are more popular.
	Exponential
	// Latest: as Zipf, but the most popular keys are those inserted last.
	Latest
	distributions = iota
)

var distributionNames = [distributions]string{"uniform", "conflict", "normal", "zipf", "exponential", "latest"}

func (d Distribution) String() string { return distributionNames[d] }

// Keys is a distribution of keys with its parameters. A parameter of another distribution has no effect.
type Keys struct {
	Distribution Distribution
	Share        float64 // Conflict: share of operations on hot keys, 0…1; default 0.02
	Hot          int     // Conflict: hot keys; default 1
	// Mean is that of Normal, as a key number, and of Exponential, in keys before the
	// truncation at the key space. 0: half and a tenth of the keys.
	Mean      float64
	Deviation float64 // Normal: standard deviation in keys; 0: a tenth of the keys
	Move      float64 // Normal: keys a second by which the mean moves; may be negative
	Skew      float64 // Zipf, Latest: ≥ 0; default 0.99
	// Scatter spreads the popular keys of Zipf over the key space, so that their neighbours are no more popular than
	// others; without it key 0 is the most popular.
	Scatter bool
}

// parameters of each distribution; the first may be given without its name.
var parameters = [distributions][]string{
	Conflict: {"share", "hot"}, Normal: {"mean", "deviation", "move"}, Zipf: {"skew", "scatter"},
	Exponential: {"mean"}, Latest: {"skew"}, Uniform: {},
}

// ParseKeys parses a distribution such as uniform, conflict:25%, normal:mean=500,move=10 or zipf:skew=1.2.
func ParseKeys(text string) (Keys, error) {
	name, rest, _ := strings.Cut(text, ":")
	i := slices.Index(distributionNames[:], strings.TrimSpace(name))
	if i < 0 {
		return Keys{}, fmt.Errorf("unknown distribution %q: there are %s", name, strings.Join(distributionNames[:], ", "))
	}
	k := Keys{Distribution: Distribution(i), Share: 0.02, Hot: 1, Skew: 0.99}
	known, given := parameters[i], map[string]bool{}
	for n, p := range pairs(rest) {
		if p.name == "" && n == 0 && len(known) > 0 {
			p.name = known[0]
		}
		switch {
		case !slices.Contains(known, p.name):
			return k, fmt.Errorf("distribution %q: unknown parameter %q: %s has %s", text, cmp.Or(p.name, p.value),
				k.Distribution, listOrNone(known))
		case given[p.name]:
			return k, fmt.Errorf("distribution %q: parameter %s comes twice", text, p.name)
		}
		given[p.name] = true
		v, err := number(p.value)
		if err != nil {
			return k, fmt.Errorf("distribution %q: parameter %s: %w", text, p.name, err)
		}
		k.set(p.name, v)
	}
	if err := k.check(); err != nil {
		return k, fmt.Errorf("distribution %q: %w", text, err)
	}
	return k, nil
}

func listOrNone(names []string) string {
	if len(names) == 0 {
		return "none"
	}
	return strings.Join(names, ", ")
}

func (k *Keys) set(name string, v float64) {
	switch name {
	case "share":
		k.Share = v
	case "hot":
		k.Hot = int(v)
	case "mean":
		k.Mean = v
	case "deviation":
		k.Deviation = v
	case "move":
		k.Move = v
	case "skew":
		k.Skew = v
	case "scatter":
		k.Scatter = v != 0
	}
}

// check verifies the parameters that do not depend on the key space.
func (k *Keys) check() error {
	switch {
	case k.Distribution >= distributions:
		return fmt.Errorf("unknown distribution %d", k.Distribution)
	case k.Distribution == Conflict && !(k.Share >= 0 && k.Share <= 1):
		return fmt.Errorf("share %v of hot keys: must be between 0 and 1", k.Share)
	case k.Distribution == Conflict && k.Hot < 1:
		return fmt.Errorf("%d hot keys: must be at least 1", k.Hot)
	case k.Mean < 0:
		return fmt.Errorf("mean %v: must not be negative", k.Mean)
	case k.Deviation < 0:
		return fmt.Errorf("deviation %v: must not be negative", k.Deviation)
	case (k.Distribution == Zipf || k.Distribution == Latest) && !(k.Skew >= 0 && k.Skew <= 100):
		return fmt.Errorf("skew %v: must be between 0 and 100", k.Skew)
	}
	return nil
}

// Validate returns an error that says what is wrong with the distribution for a given number of
// keys and clients.
func (k *Keys) Validate(keys, clients int) error {
	if err := k.check(); err != nil {
		return err
	}
	switch {
	case keys < 1:
		return fmt.Errorf("%d keys: must be at least 1", keys)
	case k.Distribution == Conflict && k.Share < 1 && keys-k.Hot < clients:
		return fmt.Errorf("%d keys of which %d are hot: too few for %d clients to have a key of their own", keys,
			k.Hot, clients)
	case k.Distribution == Conflict && k.Hot > keys:
		return fmt.Errorf("%d hot keys of %d", k.Hot, keys)
	case k.Distribution == Normal && k.Mean >= float64(keys):
		return fmt.Errorf("mean %v: must be one of the %d keys", k.Mean, keys)
	}
	return nil
}

// String writes the distribution as ParseKeys reads it.
func (k Keys) String() string {
	values := map[string]float64{"share": k.Share, "hot": float64(k.Hot), "mean": k.Mean, "deviation": k.Deviation,
		"move": k.Move, "skew": k.Skew}
	if k.Scatter {
		values["scatter"] = 1
	}
	var parts []string
	for _, p := range parameters[k.Distribution] {
		if v := values[p]; v != 0 || p == "share" || p == "skew" {
			parts = append(parts, p+"="+strconv.FormatFloat(v, 'g', 6, 64))
		}
	}
	if len(parts) == 0 {
		return k.Distribution.String()
	}
	return k.Distribution.String() + ":" + strings.Join(parts, ",")
}

// sampler draws keys of one client.
type sampler struct {
	Keys
	n               int // keys
	client, clients int
	own             int // Conflict: keys of this client
	zipf            zipf
	stride          uint64  // Zipf: coprime to n, see scattered
	tail            float64 // Exponential: the part of the distribution within the keys
	front           *frontier
}

func newSampler(k Keys, n, client, clients int, f *frontier) sampler {
	s := sampler{Keys: k, n: n, client: client, clients: clients, front: f}
	switch k.Distribution {
	case Conflict:
		s.own = (n - k.Hot - client + clients - 1) / clients
	case Normal:
		if s.Mean == 0 {
			s.Mean = float64(n) / 2
		}
		if s.Deviation == 0 {
			s.Deviation = float64(n) / 10
		}
	case Zipf, Latest:
		s.zipf = newZipf(n, k.Skew)
		s.stride = coprime(uint64(n))
	case Exponential:
		if s.Mean == 0 {
			s.Mean = float64(n) / 10
		}
		s.tail = -math.Expm1(-float64(n) / s.Mean)
	}
	return s
}

// draw returns the number of a key.
func (s *sampler) draw(r *rand.Rand, at time.Duration) uint64 {
	switch s.Distribution {
	case Conflict:
		if r.Float64() < s.Share {
			return r.Uint64N(uint64(s.Hot))
		}
		return uint64(s.Hot + s.client + s.clients*r.IntN(s.own))
	case Normal:
		x := s.Mean + s.Move*at.Seconds() + s.Deviation*r.NormFloat64()
		x = math.Mod(x, float64(s.n))
		if x < 0 {
			x += float64(s.n)
		}
		return min(uint64(x), uint64(s.n-1))
	case Zipf:
		rank := s.zipf.draw(r)
		if s.Scatter {
			return s.scattered(rank)
		}
		return rank
	case Exponential:
		x := -s.Mean * math.Log1p(-r.Float64()*s.tail)
		return min(uint64(x), uint64(s.n-1))
	case Latest:
		return s.front.known() - 1 - s.zipf.draw(r)
	default:
		return r.Uint64N(uint64(s.n))
	}
}

// scattered maps ranks one to one to keys over the whole key space.
func (s *sampler) scattered(rank uint64) uint64 { return rank * s.stride % uint64(s.n) }

// coprime returns a number near n over the golden ratio without a common divisor with n: its multiples modulo n are
// far from each other and reach every number below n.
func coprime(n uint64) uint64 {
	c := max(1, uint64(float64(n)*0.6180339887498949))
	for gcd(c, n) != 1 {
		c++
	}
	return c
}

func gcd(a, b uint64) uint64 {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}
