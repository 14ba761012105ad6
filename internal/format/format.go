// Package format has the number of the format in which a cluster writes what other builds must be able to read: the
// files of its log, the frames of its links, and entries. All members of a cluster write the same format, which is in
// the log ([protocol.Config.Format]): the leader raises it when every member knows the next one. So a build that writes
// another format increases the newest one, and writes it only once the log has that format. docs/using/upgrade.md has
// the consequences for operators.
package format

import "strconv"

// First is the format of clusters whose log names none. Up to it, a directory has the format of what was written there
// last (package datadir).
const First = 8

// newest is a string so that a build can have another one, to try an upgrade to a version that does not exist yet:
//
//	go build -ldflags "-X github.com/braidlog/braid/internal/format.newest=9" ./cmd/braid
var newest = "8"

var known = parse(newest)

// Newest returns the newest format that this program reads and writes. It knows all earlier ones, too.
func Newest() int { return known }

func parse(text string) int {
	n, err := strconv.Atoi(text)
	if err != nil || n < First {
		panic("format: the newest format is " + text)
	}
	return n
}

// Of returns the format of a log that names this one, or none (0).
func Of(named int) int { return max(First, named) }

// Above returns how far a format is above the first one, for places that were always 0 before there were others.
func Above(format int) int { return max(0, format-First) }
