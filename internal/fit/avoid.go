package fit

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/braidlog/braid/protocol/common"
)

// avoided is a shape that was tried and taken back, or left because a member was missing or slow.
type avoided struct {
	key   string
	times int   // how often
	until int64 // not again before this wall clock, in Unix seconds
}

// How long a shape is avoided, doubling each time at most maxTimes times; for how long after that the number of times
// is remembered, and of how many shapes.
const (
	avoidFor   = 10 * time.Minute
	maxTimes   = 8
	remembered = 24 * time.Hour
	maxAvoided = 8
)

// parseAvoid reads the shapes in setting fit-avoid: KEY:TIMES@UNTIL each, with commas between. What it does not
// understand it leaves out, as the change that is measured (see writeTrial), and entries of a later version.
func parseAvoid(text string) (all []avoided) {
	for _, entry := range strings.Split(text, ",") {
		key, rest, ok := strings.Cut(entry, ":")
		times, until, ok2 := strings.Cut(rest, "@")
		n, err := strconv.Atoi(times)
		at, err2 := strconv.ParseInt(until, 10, 64)
		if !ok || !ok2 || key == "" || err != nil || err2 != nil || n < 1 || n > maxTimes || at < 0 {
			continue
		}
		if len(all) < maxAvoided {
			all = append(all, avoided{key, n, at})
		}
	}
	return all
}

// formatAvoid is the text of setting fit-avoid.
func formatAvoid(all []avoided) string {
	var entries []string
	for _, a := range all {
		entries = append(entries, fmt.Sprintf("%s:%d@%d", a.key, a.times, a.until))
	}
	return strings.Join(entries, ",")
}

// avoidNext is the text after a shape was taken back or left: it is avoided for the time first, doubled for each time
// before, and not for less than it was already. wall is the time now in Unix milliseconds.
func avoidNext(text, key string, wall int64, first time.Duration) string {
	now, next := wall/1000, avoided{key: key, times: 1}
	all := slices.DeleteFunc(parseAvoid(text), func(a avoided) bool {
		old := now > a.until+int64(remembered/time.Second)
		if a.key == key && !old {
			next.times, next.until = min(maxTimes, a.times+1), now+int64(a.left(wall)/time.Second)
		}
		return a.key == key || old
	})
	next.until = max(next.until, now+int64(first/time.Second)<<(next.times-1))
	if len(all) == maxAvoided { // the one that ends first
		i := slices.Index(all, slices.MinFunc(all, func(a, b avoided) int { return cmp.Compare(a.until, b.until) }))
		all = slices.Delete(all, i, i+1)
	}
	return formatAvoid(append(all, next))
}

// avoided lists what is not to be tried again yet. A shape that is no candidate now has its key for a protocol.
func (v *View) avoided(all []option) (out []Avoided) {
	for _, a := range parseAvoid(common.FitAvoid.In(v.Profile.Values)) {
		if a.left(v.Wall) == 0 {
			continue
		}
		next := Avoided{Candidate: Candidate{Protocol: a.key}, Until: 1000 * a.until}
		for i := range all {
			if o := &all[i]; o.shape.key() == a.key {
				next.Candidate = Candidate{Protocol: o.Protocol, Settings: o.Settings}
			}
		}
		out = append(out, next)
	}
	return out
}

// avoids returns for how long a shape is not to be tried again; 0: it may be.
func avoids(text, key string, wall int64) time.Duration {
	for _, a := range parseAvoid(text) {
		if a.key == key {
			return a.left(wall)
		}
	}
	return 0
}

// left is for how long the shape is avoided still; 0: no more. Longer than it can be was written by a wrong clock, and
// does not count.
func (a *avoided) left(wall int64) time.Duration {
	left := time.Duration(a.until-wall/1000) * time.Second
	if left < 0 || left > avoidFor<<(a.times-1) {
		return 0
	}
	return left
}

// writeTrial is the text of setting fit-avoid for a change that is to be measured, so that another leader can do so:
// FROM>TO:GAIN@RATE/INSIDE/BODY/BLIND/TIME, with the promised gain and the load before. BODY and BLIND are shares, TIME
// is when the change began, in Unix seconds of wall: it is measured soon after that or not at all.
func writeTrial(text string, t *issued, wall int64) string {
	b := &t.before
	entry := fmt.Sprintf("%s>%s:%.3g@%.4g/%.4g/%.2g/%.2g/%d", t.from.key(), t.shape.key(), t.promised, b.rate, b.inside,
		b.body, b.blind, wall/1000)
	if all := formatAvoid(parseAvoid(text)); all != "" {
		entry = all + "," + entry
	}
	return entry
}

// readTrial reads what writeTrial has written of a change to a shape, and when the change began.
func readTrial(text string, to shape) (t issued, at int64, ok bool) {
	for _, entry := range strings.Split(text, ",") {
		keys, rest, _ := strings.Cut(entry, ":")
		from, key, _ := strings.Cut(keys, ">")
		gain, load, _ := strings.Cut(rest, "@")
		t = issued{key: key, shape: to, called: strings.ReplaceAll(key, "+", " ")}
		numbers := append([]string{gain}, strings.Split(load, "/")...)
		seconds := 0.0
		into := []*float64{&t.promised, &t.before.rate, &t.before.inside, &t.before.body, &t.before.blind, &seconds}
		if t.from, ok = parseShape(from); !ok || key != to.key() || len(numbers) != len(into) {
			continue
		}
		for i, number := range numbers {
			f, err := strconv.ParseFloat(number, 64)
			ok = ok && err == nil && f >= 0 && !math.IsInf(f, 0)
			*into[i] = f
		}
		if ok {
			return t, int64(seconds), true
		}
	}
	return t, 0, false
}
