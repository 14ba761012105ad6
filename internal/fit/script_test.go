package fit_test

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"
	"github.com/stretchr/testify/require"

	"github.com/braidlog/braid/internal/fit"
	"github.com/braidlog/braid/protocol"
	"github.com/braidlog/braid/protocol/setting"
)

// world is a cluster as a script describes it.
type world struct {
	v      fit.View
	f      fit.Fitter
	trips  map[[2]protocol.MemberID]time.Duration
	wish   *fit.Wish // that is to be carried out
	before string    // what was printed of the last step
}

// TestScripts runs a cluster as the fitter sees it.
//
//   - "cluster NAME=VALUE…": a new one, led by m1. Lines: "trip DURATION" for all pairs, "trip m1 m2 DURATION".
//   - "load": lines "m1 [zone=Z] [rate=R] [inside=N] [size=B] [body=B] [large=SHARE] [blind=SHARE]
//     [early=SHARE] [sync=D] [out=B]
//     [queued=B] [loops=S,S] [apply=S] [cpu=S] [disk=S] [synced=B] [unapplied=N] [missing] [silent] [drained=yes]";
//     members that are not named stay as they are. body is of each large command.
//   - "costs": the costs of a fitter after three seconds.
//   - "step [N]": N seconds; prints the decision when anything but a number of seconds changes in it.
//   - "carry": the wish is carried out.
//   - "tune NAME=VALUE…": an operator changes the profile.
//   - "lead m2": a new leader, with a new fitter.
func TestScripts(t *testing.T) {
	datadriven.Walk(t, "testdata", func(t *testing.T, path string) {
		w := &world{}
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			out, err := w.run(d)
			if err != nil {
				d.Fatalf(t, "%v", err)
			}
			return out
		})
	})
}

func (w *world) run(d *datadriven.TestData) (string, error) {
	switch d.Cmd {
	case "cluster":
		return "", w.cluster(d)
	case "load":
		for _, line := range strings.Split(d.Input, "\n") {
			if err := w.load(strings.Fields(line)); err != nil {
				return "", err
			}
		}
		return "", nil
	case "trips":
		return "", w.readTrips(d.Input)
	case "costs":
		var f fit.Fitter
		w.report()
		for range 3 {
			w.v.Now += time.Second
			f.Step(&w.v)
		}
		return costs(&w.v, f.Step(&w.v).Costs), nil
	case "step":
		n := 1
		if len(d.CmdArgs) > 0 {
			n, _ = strconv.Atoi(d.CmdArgs[0].Key)
		}
		return w.steps(n), nil
	case "carry":
		return w.carry()
	case "tune":
		for _, a := range d.CmdArgs {
			w.set(a.Key, a.Vals[0])
		}
		w.v.Profile.Version++
		return "", nil
	case "changing":
		w.v.Changing = d.HasArg("yes")
		return "", nil
	case "lead":
		w.lead(w.id(d.CmdArgs[0].Key))
		return "", nil
	}
	return "", fmt.Errorf("there is no command %s", d.Cmd)
}

func (w *world) cluster(d *datadriven.TestData) error {
	members := 5
	*w = world{trips: map[[2]protocol.MemberID]time.Duration{}}
	w.v = fit.View{Mode: protocol.FitOn, Protocol: "raft", Instances: 1, Now: time.Minute, Wall: 1_800_000_000_000}
	w.v.Profile.Version = 1
	for _, a := range d.CmdArgs {
		switch a.Key {
		case "members":
			members, _ = strconv.Atoi(a.Vals[0])
		default:
			w.set(a.Key, a.Vals[0])
		}
	}
	for i := 1; i <= members; i++ {
		id := protocol.MemberID(i)
		w.v.Members = append(w.v.Members, fit.Member{ID: id, Name: fmt.Sprintf("m%d", i), Present: true})
		w.v.Reports = append(w.v.Reports, fit.Report{Member: id, Span: time.Second,
			Disk: fit.Disk{Syncs: 100, Time: 100 * time.Millisecond, Bytes: 100 << 10}})
	}
	w.v.Leaders = []protocol.MemberID{1}
	return w.readTrips(d.Input)
}

// set changes what the profile says.
func (w *world) set(name, value string) {
	switch name {
	case "protocol":
		w.v.Protocol = value
	case "fit":
		w.v.Mode = protocol.Fit(value)
	case "instances":
		w.v.Instances, _ = strconv.Atoi(value)
	case "version":
		w.v.Profile.Version, _ = strconv.ParseUint(value, 10, 64)
	default:
		w.v.Profile.Values = setting.MustParse(name + "=" + value).Over(w.v.Profile.Values)
	}
}

func (w *world) id(name string) protocol.MemberID {
	n, _ := strconv.Atoi(strings.TrimPrefix(name, "m"))
	return protocol.MemberID(n)
}

func (w *world) readTrips(input string) error {
	for _, line := range strings.Split(strings.TrimSpace(input), "\n") {
		words := strings.Fields(line)
		if len(words) == 0 {
			continue
		}
		took, err := time.ParseDuration(words[len(words)-1])
		if err != nil {
			return err
		}
		for i := range w.v.Members {
			for j := range w.v.Members {
				a, b := w.v.Members[i].ID, w.v.Members[j].ID
				pair := len(words) == 4 && (a == w.id(words[1]) && b == w.id(words[2]) ||
					b == w.id(words[1]) && a == w.id(words[2]))
				one := len(words) == 3 && (a == w.id(words[1]) || b == w.id(words[1]))
				if a != b && (len(words) == 2 || pair || one) {
					w.trips[[2]protocol.MemberID{a, b}] = took
				}
			}
		}
	}
	return nil
}

// load reads a line about a member.
func (w *world) load(words []string) error {
	i := int(w.id(words[0])) - 1
	m, r := &w.v.Members[i], &w.v.Reports[i]
	rate, size, body, large, blind, early := float64(r.Asked.Commands), 100.0, 0.0, 0.0, 0.0, 0.0
	if n := r.Asked.Commands; n > 0 {
		body, large = float64(r.Asked.LargeBytes)/max(1, float64(r.Asked.Large)), float64(r.Asked.Large)/rate
		size, blind = float64(r.Asked.Bytes-r.Asked.LargeBytes)/rate, float64(r.Asked.Blind)/rate
		early = float64(r.Asked.Early) / rate
	}
	for _, word := range words[1:] {
		name, text, _ := strings.Cut(word, "=")
		number, _ := strconv.ParseFloat(strings.TrimRight(text, "KM"), 64)
		switch {
		case strings.HasSuffix(text, "K"):
			number *= 1 << 10
		case strings.HasSuffix(text, "M"):
			number *= 1 << 20
		}
		took, _ := time.ParseDuration(text)
		switch name {
		case "zone":
			m.Zone = text
		case "missing":
			m.Present, r.Span = false, 0
		case "silent":
			r.Span = 0
		case "drained":
			m.Drained = text == "yes"
		case "present":
			m.Present, r.Span = true, time.Second
		case "rate":
			rate = number
		case "inside":
			r.Asked.Waited = time.Duration(number * float64(time.Second))
		case "size":
			size = number
		case "body":
			body = number
		case "large":
			large = number
		case "blind":
			blind = number
		case "early":
			blind, early = number, number
		case "sync":
			r.Disk.Syncs = 100
			r.Disk.Time = took * time.Duration(r.Disk.Syncs)
		case "synced":
			r.Disk.Bytes = r.Disk.Syncs * uint64(number)
		case "out", "queued":
			w.links(i, name, number)
		case "loops":
			r.Loops = nil
			for _, s := range strings.Split(text, ",") {
				busy, _ := strconv.ParseFloat(s, 64)
				r.Loops = append(r.Loops, busy)
			}
		case "apply":
			r.Apply = number
		case "cpu":
			r.CPU = number
		case "unapplied":
			r.Unapplied = uint64(number)
		default:
			return fmt.Errorf("there is no column %s", name)
		}
	}
	a := &r.Asked
	a.Commands, a.Large, a.Blind = uint64(rate), uint64(rate*large), uint64(rate*blind)
	a.Early = uint64(rate * early)
	a.LargeBytes = uint64(float64(a.Large) * body)
	a.Bytes = uint64(rate*size) + a.LargeBytes
	return nil
}

// links divides what leaves a member, or waits there, among its links.
func (w *world) links(i int, name string, number float64) {
	r := &w.v.Reports[i]
	if r.Links == nil {
		for j := range w.v.Members {
			if j != i {
				r.Links = append(r.Links, fit.Link{To: w.v.Members[j].ID})
			}
		}
	}
	for k := range r.Links {
		each := uint64(number / float64(len(r.Links)))
		if name == "out" {
			r.Links[k].Bytes = each
		} else {
			r.Links[k].Queued = each
		}
	}
}

// report completes the reports.
func (w *world) report() {
	for i := range w.v.Reports {
		r := &w.v.Reports[i]
		r.Trips = nil
		for j := range w.v.Members {
			to := w.v.Members[j].ID
			if took, ok := w.trips[[2]protocol.MemberID{r.Member, to}]; ok && w.v.Members[j].Present {
				r.Trips = append(r.Trips, fit.Trip{To: to, Time: took})
			}
		}
	}
}

func (w *world) steps(n int) string {
	var out strings.Builder
	for range n {
		w.v.Now += time.Second
		w.v.Wall += 1000
		w.report()
		d := w.f.Step(&w.v)
		if d.Acts {
			w.wish = d.Wish
		}
		text := decision(&w.v, &d)
		key := strings.Map(func(r rune) rune {
			if r >= '0' && r <= '9' {
				return -1
			}
			return r
		}, text)
		if key != w.before || d.Event != "" {
			fmt.Fprintf(&out, "%s: %s\n", w.v.Now-time.Minute, text)
		}
		w.before = key
	}
	return out.String()
}

func decision(v *fit.View, d *fit.Decision) string {
	var out strings.Builder
	switch {
	case d.Wish == nil:
		out.WriteString("all is well")
	default:
		fmt.Fprintf(&out, "%s, gain %.2f", candidate(v, &d.Wish.Candidate), d.Wish.Gain)
		if d.Wish.TakesBack {
			out.WriteString(", takes back")
		}
		if d.Wish.Restores {
			out.WriteString(", restores")
		}
		switch {
		case d.Waits != "":
			out.WriteString("; waits: " + d.Waits)
		case d.Acts:
			out.WriteString("; now")
		}
		if d.Event == "" {
			out.WriteString("\n    " + d.Wish.Reason)
		}
	}
	if d.Event != "" {
		out.WriteString("\n    event: " + d.Event)
	}
	return out.String()
}

func candidate(v *fit.View, c *fit.Candidate) string {
	text := c.Protocol
	for _, name := range []string{"placement", "code-k", "lanes", "instances", "leaders", "fit-avoid"} {
		if value, ok := c.Settings[name]; ok {
			text += " " + name + "=" + value
		}
	}
	if c.Leader != 0 {
		text += fmt.Sprintf(" by m%d", c.Leader)
	}
	return text
}

func costs(v *fit.View, all []fit.Cost) string {
	var out strings.Builder
	for i := range all {
		c := &all[i]
		fmt.Fprintf(&out, "%-52s", candidate(v, &c.Candidate))
		if c.Excluded != "" {
			fmt.Fprintf(&out, " %s\n", c.Excluded)
			continue
		}
		fmt.Fprintf(&out, " %8.0f/s %8.1f ms  %s\n", c.Throughput, 1000*c.Latency, c.Limit)
	}
	return out.String()
}

// carry makes the profile what the last wish says.
func (w *world) carry() (string, error) {
	if w.wish == nil {
		return "", errors.New("there is no wish to be carried out")
	}
	wish := w.wish
	w.wish = nil
	if wish.Leader != 0 && wish.Protocol == w.v.Protocol && len(wish.Settings) == 0 {
		w.lead(wish.Leader)
		return fmt.Sprintf("m%d leads\n", wish.Leader), nil
	}
	merged := wish.Protocol == "niagara"
	if w.v.Protocol != wish.Protocol {
		w.v.Protocol, w.v.Instances = wish.Protocol, 1
		if merged {
			w.v.Instances = 4
		}
		w.set("lanes", strconv.FormatBool(wish.Protocol == "lcr"))
		if wish.Protocol == "craft" {
			w.set("placement", "code")
		} else if !merged && wish.Protocol != "lcr" {
			w.set("placement", "copy")
		}
	}
	for name, value := range wish.Settings {
		w.set(name, value)
	}
	w.v.Profile.Version++
	w.v.Profile.Since = w.v.Wall
	return fmt.Sprintf("%s, %d instances, %s\n", w.v.Protocol, w.v.Instances, w.v.Profile.Values), nil
}

// lead lets a member lead all instances, by a fitter of its own.
func (w *world) lead(id protocol.MemberID) {
	for i := range w.v.Leaders {
		w.v.Leaders[i] = id
	}
	w.f, w.before = fit.Fitter{}, ""
}

func TestOffDecidesNothing(t *testing.T) {
	var f fit.Fitter
	require.Zero(t, f.Step(&fit.View{Mode: protocol.FitOff}))
}
