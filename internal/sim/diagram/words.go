package diagram

import (
	"fmt"
	"regexp"
	"strings"
	"time"
)

// role matches a line about the role of a member in a term.
var role = regexp.MustCompile(`^is (\S+) of term (\d+)( of instance \d+)?, leader (\S+)$`)

// turns reports whether a member starts, stops or changes its role.
func turns(text string) bool { return text == "is up" || text == "is down" || role.MatchString(text) }

// shorter are texts that rows write shorter, in this order.
var shorter = []struct {
	long  *regexp.Regexp
	short string
}{
	{passing, ""},
	{regexp.MustCompile(`^((?:i\d+ )?\w+) term 0\b`), "$1"},       // the message has no term
	{regexp.MustCompile(` ballot 0\.0\b`), ""},                    // the first one, of the segment's own leader
	{regexp.MustCompile(`\(0, 0\) `), ""},                         // an entry that has no index yet
	{regexp.MustCompile(`\((\d+), \d+\)`), "$1"},                  // its index, without its term
	{regexp.MustCompile(`(batch×\d+) [0-9a-f]+\.\d+\.\d+`), "$1"}, // without the session of a proposal
	{regexp.MustCompile(` of instance 1\b`), ""},                  // as in messages
	{regexp.MustCompile(` of instance (\d+)`), " (i$1)"},
	{regexp.MustCompile(`^client (\d+) asks \w+: (\d+) `), "client $1 asks: op $2 "},
	{regexp.MustCompile(`^client (\d+) reads at \w+: `), "client $1 reads "},
	{regexp.MustCompile(`^client (\d+) has (\d+) `), "client $1: op $2 "},
	{regexp.MustCompile(`^client (\d+) is refused (\d+): `), "client $1: op $2 refused: "},
	{regexp.MustCompile(`^applies (\d+): (\d+) \d+ `), "applies op $2: "},
	{regexp.MustCompile(` done: \{true \d+\}$`), " done"},
}

// words is the text of a row.
func words(r *row) string {
	if m := role.FindStringSubmatch(r.text); m != nil {
		return short(becomes(m[1], m[2], m[4]) + m[3])
	}
	text := short(r.text)
	switch {
	case r.text == "is up":
		return "starts"
	case r.text == "is down":
		return "is down"
	case r.again:
		return text + " (again)"
	case r.kind == sent && !r.vanish:
		return "sends " + r.to + ": " + text
	}
	return text
}

func short(text string) string {
	for _, s := range shorter {
		text = s.long.ReplaceAllString(text, s.short)
	}
	return strings.TrimRight(text, " ,")
}

// becomes describes the role of a member in a term, and the leader that it knows.
func becomes(what, term, leader string) string {
	switch {
	case what == "leader":
		return "LEADER of term " + term
	case what == "follower" && leader != "0":
		return "follows " + leader + " in term " + term
	case what == "follower":
		return "term " + term + ", no leader yet"
	}
	return what + " of term " + term
}

// sign returns the mark of a step of one member.
func sign(r *row) string {
	switch {
	case r.text == "is up":
		return "○"
	case r.text == "is down":
		return "✝"
	case strings.HasPrefix(r.text, "is leader"):
		return "★"
	case r.kind == asked:
		return "▼"
	case r.kind == answered:
		return "▲"
	}
	return "●"
}

// took formats the time from the sending of a message to its arrival.
func took(d time.Duration) string {
	switch {
	case d < 10*time.Millisecond:
		return fmt.Sprintf("+%.1fms", d.Seconds()*1000)
	case d < 10*time.Second:
		return fmt.Sprintf("+%.0fms", d.Seconds()*1000)
	}
	return fmt.Sprintf("+%.0fs", d.Seconds())
}
