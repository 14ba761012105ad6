package diagram

import (
	"fmt"
	"regexp"
	"strings"
)

// fewest is the number of rows that become one. Fewer stay as they are.
const fewest = 3

// steady are the messages that members send at all times, with those of their fields whose changes are news. In other
// messages changes of all fields are, except those of passing.
var steady = map[string]*regexp.Regexp{
	"Heartbeat":     regexp.MustCompile(` (?:term|commit) \d+`),
	"HeartbeatResp": regexp.MustCompile(` term \d+`),
	"Beat":          regexp.MustCompile(` term \d+`),
	"Ask":           regexp.MustCompile(` term \d+`),
	"Alive":         regexp.MustCompile(` term \d+`),
}

// passing are fields whose value says only that time has passed.
var passing = regexp.MustCompile(` (?:context|round|seen) \d+`)

// typed splits a message into its instance and type, and its fields. It matches all texts.
var typed = regexp.MustCompile(`^((?:i\d+ )?(\w*))(.*)$`)

// folder folds rows.
type folder struct {
	said map[string]string // the fields that a member last sent another one, for each type of message
	out  []*row
	run  []*row // rows that repeat, one after the other
}

// fold makes one row of those that repeat earlier ones, if at least fewest follow one another.
func fold(rows []*row) []*row {
	f := &folder{said: map[string]string{}}
	for _, r := range rows {
		if f.repeats(r) {
			f.run = append(f.run, r)
			continue
		}
		f.end()
		f.out = append(f.out, r)
	}
	f.end()
	return f.out
}

// repeats reports whether the row is a message without news.
func (f *folder) repeats(r *row) bool {
	if r.kind != sent && r.kind != lost && r.kind != arrived {
		return false
	}
	parts := typed.FindStringSubmatch(r.text)
	says := passing.ReplaceAllString(parts[3], "")
	if fields := steady[parts[2]]; fields != nil {
		says = strings.Join(fields.FindAllString(parts[3], -1), "")
	}
	key := r.from + "|" + r.to + "|" + parts[1]
	old, known := f.said[key]
	if r.kind == arrived {
		f.said[key] = says
	}
	return r.again || known && old == says
}

// end ends a run of rows that repeat.
func (f *folder) end() {
	if len(f.run) < fewest {
		f.out = append(f.out, f.run...)
	} else {
		r := *f.run[0]
		r.kind, r.text, r.begins = folded, describe(f.run), f.run[0]
		f.out = append(f.out, &r)
	}
	f.run = nil
}

// describe counts the messages of a run by their type, in the order of their first ones.
func describe(run []*row) string {
	var types []string
	count, missed := map[string]int{}, 0
	for _, r := range run {
		name := typed.FindStringSubmatch(r.text)[2]
		if count[name]++; count[name] == 1 {
			types = append(types, name)
		}
		if r.missed() {
			missed++
		}
	}
	for i, name := range types {
		types[i] = fmt.Sprintf("%d %s", count[name], name)
	}
	text := fmt.Sprintf("… %d repeated: %s", len(run), strings.Join(types, ", "))
	if missed > 0 {
		text += fmt.Sprintf("; lost: %d", missed)
	}
	return text
}
