package workload

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// Kind is the kind of an operation.
type Kind uint8

const (
	// Read gets one key.
	Read Kind = iota
	// Update puts an existing key.
	Update
	// Insert puts a key that was not there before.
	Insert
	// Scan gets up to Op.Limit keys from Op.Key on, in the order of keys.
	Scan
	// ReadModifyWrite gets a key and puts it unless it changed in between.
	ReadModifyWrite
	// Delete removes a key.
	Delete
	// Grant grants a lease, and uses no key.
	Grant
	// Kinds is the number of kinds.
	Kinds = iota
)

var kindNames = [Kinds]string{"read", "update", "insert", "scan", "rmw", "delete", "grant"}

func (k Kind) String() string {
	if int(k) < len(kindNames) {
		return kindNames[k]
	}
	return fmt.Sprintf("kind(%d)", uint8(k))
}

// Writes reports whether an operation of this kind writes.
func (k Kind) Writes() bool { return k != Read && k != Scan }

// Mix are the shares of the kinds of operation; they add up to 1.
type Mix [Kinds]float64

// Ratio is a mix of updates, of the given share, and reads.
func Ratio(writes float64) (m Mix) {
	m[Update], m[Read] = writes, 1-writes
	return m
}

// ParseMix parses shares such as read=0.95,update=0.05 or read=95%,scan=5%.
func ParseMix(text string) (m Mix, err error) {
	given := [Kinds]bool{}
	for _, p := range pairs(text) {
		k := kindOf(p.name)
		switch {
		case p.name == "":
			return m, fmt.Errorf("mix %q: %q must be an operation and its share, such as read=0.5", text, p.value)
		case k == Kinds:
			return m, fmt.Errorf("mix %q: unknown operation %q: there are %s", text, p.name, strings.Join(kindNames[:], ", "))
		case given[k]:
			return m, fmt.Errorf("mix %q: two shares for %s", text, k)
		}
		given[k] = true
		if m[k], err = number(p.value); err != nil {
			return m, fmt.Errorf("mix %q: share of %s: %w", text, k, err)
		}
	}
	if err := m.Validate(); err != nil {
		return m, fmt.Errorf("mix %q: %w", text, err)
	}
	return m, nil
}

func kindOf(name string) Kind {
	for k := range Kind(Kinds) {
		if kindNames[k] == name {
			return k
		}
	}
	return Kinds
}

// Validate returns an error that says what is wrong with the mix.
func (m *Mix) Validate() error {
	sum := 0.0
	for k, share := range m {
		if !(share >= 0 && share <= 1) {
			return fmt.Errorf("share %v of %s: must be between 0 and 1", share, Kind(k))
		}
		sum += share
	}
	if math.Abs(sum-1) > 1e-6 {
		return fmt.Errorf("shares add up to %.6g, not to 1", sum)
	}
	return nil
}

// Writes is the share of operations that write.
func (m *Mix) Writes() (share float64) {
	for k := range Kind(Kinds) {
		if k.Writes() {
			share += m[k]
		}
	}
	return share
}

// String writes the mix as ParseMix reads it.
func (m Mix) String() string {
	var parts []string
	for k, share := range m {
		if share > 0 {
			parts = append(parts, Kind(k).String()+"="+strconv.FormatFloat(share, 'g', 6, 64))
		}
	}
	return strings.Join(parts, ",")
}

// cumulative returns the cumulative shares, so that one random number selects the kind.
func (m *Mix) cumulative() (c [Kinds]float64) {
	sum := 0.0
	last := 0
	for k, share := range m {
		sum += share
		c[k] = sum
		if share > 0 {
			last = k
		}
	}
	for k := last; k < Kinds; k++ { // rounding errors
		c[k] = 1
	}
	return c
}

// ycsb are the core workloads of YCSB (Cooper et al., SoCC 2010, table 2).
var ycsb = map[string]struct {
	mix  Mix
	keys string
}{
	"A": {Mix{Read: 0.5, Update: 0.5}, ycsbKeys},
	"B": {Mix{Read: 0.95, Update: 0.05}, ycsbKeys},
	"C": {Mix{Read: 1}, ycsbKeys},
	"D": {Mix{Read: 0.95, Insert: 0.05}, "latest"},
	"E": {Mix{Scan: 0.95, Insert: 0.05}, ycsbKeys},
	"F": {Mix{Read: 0.5, ReadModifyWrite: 0.5}, ycsbKeys},
}

// ycsbKeys has few popular keys, scattered among the others.
const ycsbKeys = "zipf:skew=0.99,scatter=1"

// YCSB returns the mix and the keys of one of YCSB's workloads, A to F.
func YCSB(name string) (Mix, Keys, error) {
	w, ok := ycsb[strings.ToUpper(name)]
	if !ok {
		return Mix{}, Keys{}, fmt.Errorf("unknown YCSB workload %q: there are A, B, C, D, E and F", name)
	}
	k, err := ParseKeys(w.keys)
	return w.mix, k, err
}
