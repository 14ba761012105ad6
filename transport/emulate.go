package transport

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// Emulation makes links slower and less reliable than they are. The zero value changes nothing.
//
// Delays and losses apply to what this member sends. So a round trip between two members with the
// same emulation takes twice the latency.
type Emulation struct {
	// Latency delays every byte one way; Jitter adds a random time between −Jitter and
	// +Jitter to it. Nothing is reordered within a connection, as TCP would not.
	Latency, Jitter time.Duration
	// Egress is one budget in bits per second for each network card of this member,
	// shared by all its peers and streams, as a real card is. 0: no bound. Bytes that
	// TLS adds count; what TCP and IP add does not.
	Egress int64
	// Loss is the percentage of packets (of 1460 bytes) that are lost, < 100. TCP loses
	// nothing, it comes late: a loss delays its packet and all that follow it on the
	// connection by a round trip (2·Latency) if at least three packets of the same write
	// follow, which is what a fast retransmission takes, else by a round trip and 200 ms,
	// which is how long a sender waits for an acknowledgement. The packet sent again
	// costs egress. That TCP slows down after a loss is not modelled.
	Loss float64
	// NICs is the number of network cards, each with its own budget; 0 is 1. Stream r
	// uses card r mod NICs.
	NICs int
}

// ParseEmulation parses a list as latency=5ms,jitter=0.1ms,bandwidth=250mbit,loss=0.1%,nics=2;
// egress is another name for bandwidth. Rates are in bit, kbit, mbit, gbit (per second, with
// powers of 1000) or B/s, kB/s, MB/s, GB/s. The empty string is no emulation.
func ParseEmulation(s string) (Emulation, error) {
	var e Emulation
	if strings.TrimSpace(s) == "" {
		return e, nil
	}
	seen := map[string]bool{}
	for field := range strings.SplitSeq(s, ",") {
		key, value, ok := strings.Cut(field, "=")
		key, value = strings.ToLower(strings.TrimSpace(key)), strings.TrimSpace(value)
		if key == "egress" {
			key = "bandwidth"
		}
		if !ok || value == "" {
			return Emulation{}, fmt.Errorf("link emulation %q: %q is not of the form key=value", s, strings.TrimSpace(field))
		}
		if seen[key] {
			return Emulation{}, fmt.Errorf("link emulation %q: %s is given twice", s, key)
		}
		seen[key] = true
		if err := e.set(key, value); err != nil {
			return Emulation{}, fmt.Errorf("link emulation %q: %s: %w", s, key, err)
		}
	}
	return e, e.check()
}

func (e *Emulation) set(key, value string) (err error) {
	switch key {
	case "latency":
		e.Latency, err = time.ParseDuration(value)
	case "jitter":
		e.Jitter, err = time.ParseDuration(value)
	case "bandwidth":
		e.Egress, err = parseRate(value)
	case "loss":
		number, percent := strings.CutSuffix(value, "%")
		if e.Loss, err = strconv.ParseFloat(number, 64); err == nil && !percent && e.Loss != 0 {
			err = fmt.Errorf("%q lacks the %% sign", value)
		}
	case "nics":
		if e.NICs, err = strconv.Atoi(value); err == nil && e.NICs < 1 {
			err = fmt.Errorf("%d is not a number of network cards", e.NICs)
		}
	default:
		err = fmt.Errorf("unknown; known are latency, jitter, bandwidth (or egress), loss, nics")
	}
	return err
}

// check reports values that make no sense.
func (e *Emulation) check() error {
	switch {
	case e.Latency < 0 || e.Jitter < 0 || e.Latency > time.Minute || e.Jitter > time.Minute:
		return fmt.Errorf("link emulation: latency %v, jitter %v: must be within 0 and 1m", e.Latency, e.Jitter)
	case e.Egress < 0 || e.Egress > 0 && e.Egress < 1000:
		return fmt.Errorf("link emulation: bandwidth of %d bit/s: must be at least 1kbit", e.Egress)
	case !(e.Loss >= 0 && e.Loss < 100):
		return fmt.Errorf("link emulation: loss of %v%%: must be at least 0 and below 100", e.Loss)
	case e.NICs < 0 || e.NICs > 1024:
		return fmt.Errorf("link emulation: %d network cards: must be within 1 and 1024", e.NICs)
	}
	return nil
}

// Enabled reports whether anything is emulated.
func (e Emulation) Enabled() bool {
	return e.Latency > 0 || e.Jitter > 0 || e.Egress > 0 || e.Loss > 0
}

// String writes the emulation as ParseEmulation reads it.
func (e Emulation) String() string {
	var f []string
	add := func(set bool, key, value string) {
		if set {
			f = append(f, key+"="+value)
		}
	}
	add(e.Latency > 0, "latency", e.Latency.String())
	add(e.Jitter > 0, "jitter", e.Jitter.String())
	add(e.Egress > 0, "bandwidth", formatRate(e.Egress))
	add(e.Loss > 0, "loss", strconv.FormatFloat(e.Loss, 'f', -1, 64)+"%")
	add(e.NICs > 0, "nics", strconv.Itoa(e.NICs))
	return strings.Join(f, ",")
}

// rateUnits are in bits per second. Longer suffixes stand before those that end them.
var rateUnits = []struct {
	name string
	bits float64
}{
	{"gbit", 1e9}, {"mbit", 1e6}, {"kbit", 1e3}, {"bit", 1},
	{"gb/s", 8e9}, {"mb/s", 8e6}, {"kb/s", 8e3}, {"b/s", 8},
}

func parseRate(s string) (int64, error) {
	lower := strings.ToLower(strings.TrimSuffix(s, "ps"))
	for _, u := range rateUnits {
		number, ok := strings.CutSuffix(lower, u.name)
		if !ok {
			continue
		}
		v, err := strconv.ParseFloat(strings.TrimSpace(number), 64)
		if err != nil || !(v > 0) || v*u.bits > math.MaxInt64/2 {
			return 0, fmt.Errorf("%q is not a rate above 0", s)
		}
		return int64(math.Round(v * u.bits)), nil
	}
	return 0, fmt.Errorf("%q lacks a unit: bit, kbit, mbit, gbit, B/s, kB/s, MB/s or GB/s", s)
}

func formatRate(bits int64) string {
	u := rateUnits[:4]
	for bits%int64(u[0].bits) != 0 { // ends at the bit
		u = u[1:]
	}
	return strconv.FormatInt(bits/int64(u[0].bits), 10) + u[0].name
}
