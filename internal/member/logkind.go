package member

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/braidlog/braid/internal/order"
	"github.com/braidlog/braid/protocol"
	"github.com/braidlog/braid/protocol/common"
)

// LogKind says what a log is, as far as that never changes: what was written by one kind is read wrongly by another,
// and what a member promised under one means nothing under another. Whether bodies are whole or cut is no part of it,
// as each entry says that for itself, nor is the number of merged instances.
type LogKind struct {
	// Core is the name of the core that decides the log's entries, or one that an earlier version had for it.
	Core string `json:"core"`
	// Order is how the global log is made.
	Order order.Kind `json:"order"`
	// Fragments is how many fragments make a body whole, where it says how large quorums are; 0: it does not.
	Fragments int `json:"fragments,omitempty"`
}

// KindBehind is the kind of a log behind a seal, by its profile.
func KindBehind(p *protocol.Profile) LogKind {
	return LogKind{Core: p.Core, Order: cmp.Or(order.Kind(common.Order.In(p.Values)), order.KindSingle)}
}

// IsZero reports whether nothing is known of the log.
func (k LogKind) IsZero() bool { return k == LogKind{} }

// fits reports whether a log may be of a kind although not everything is known of it.
func (k LogKind) fits(of LogKind) bool {
	return (k.Core == "" || k.Core == of.Core) && (k.Order == "" || k.Order == of.Order) &&
		(k.Fragments == of.Fragments || k.Fragments < 0)
}

// Shares reports whether logs of two kinds have the same core, which only a profile divides: in one order of all
// commands, with quorums that do not depend on bodies. core returns the present name of a core.
func (k LogKind) Shares(of LogKind, core func(name string) string) bool {
	return core(k.Core) == core(of.Core) && k.Order != order.KindKeyed && of.Order != order.KindKeyed &&
		k.Fragments == 0 && of.Fragments == 0
}

func (k LogKind) String() string {
	text := k.Core
	if text == "" {
		text = "an unknown protocol"
	}
	if k.Order != "" && k.Order != order.KindSingle {
		text += " in order " + string(k.Order)
	}
	if k.Fragments > 0 {
		text += fmt.Sprintf(" with quorums for %d fragments", k.Fragments)
	}
	return text
}

// LogKindError says that a directory holds a log of another kind than the one with which it was to be opened.
// Nothing was changed. A retry does not help: the directory is to be opened with what it holds.
type LogKindError struct {
	Dir string
	// Has is what the directory holds. A directory of an earlier version does not tell: then it is all that
	// may have written what is there, in which fields that are not known are zero.
	Has    []LogKind
	Wanted LogKind
}

func (e *LogKindError) Error() string {
	var has []string
	for _, k := range e.Has {
		has = append(has, k.String())
	}
	if len(has) == 0 {
		return fmt.Sprintf("braid: data directory %s: no protocol alone wrote the log there, %s included. If an earlier "+
			"version opened it with one after another, save a snapshot with that version, and begin a new cluster from it",
			e.Dir, e.Wanted)
	}
	return fmt.Sprintf("braid: data directory %s: it holds a log of %s, not of %s. A log changes its protocol only "+
		"while it runs: open it with what it holds, or begin a new cluster from a snapshot",
		e.Dir, strings.Join(has, " or "), e.Wanted)
}

// A KindGuess finds out which cores may have written what is in a directory that does not tell its core.
type KindGuess interface {
	// Record takes in a record of the log. It keeps nothing of it.
	Record(*protocol.Record)
	// Snapshot takes in a snapshot that stands for entries, by the name of a section in it; "": it has none.
	Snapshot(section string)
	// Cores returns the names of the cores that run in an order and may have written all of it.
	Cores(order.Kind) []string
	// Core returns the present name of the core that a directory records by a name.
	Core(name string) string
}

// CheckLogKind returns a [*LogKindError] if none of what a directory may hold is what is wanted. core returns the
// present name of a core.
func CheckLogKind(dir string, has []LogKind, wanted LogKind, core func(name string) string) error {
	present := func(k LogKind) LogKind {
		k.Core = core(k.Core)
		return k
	}
	if slices.ContainsFunc(has, func(k LogKind) bool { return present(k).fits(present(wanted)) }) {
		return nil
	}
	return &LogKindError{Dir: dir, Has: has, Wanted: wanted}
}
