package main

import (
	"fmt"
	"maps"
	"slices"
)

// Kinds of writes, as watches name their events.
const (
	added    = "ADDED"
	modified = "MODIFIED"
	deleted  = "DELETED"
)

// write is a write of an object.
type write struct {
	kind    string
	value   string // of the object after the write
	version int64  // the resource version; 0: not known, as of a deletion
	sure    bool   // it was acknowledged; if not, it may have had an effect
}

// history are the writes of one object, in order. Only the last can be unsure.
type history struct {
	name   string
	writes []write
}

// event is an event of a watch.
type event struct {
	kind, name, value string
	version           int64
}

// gap is a part of the watch that a list replaced, because kube-apiserver refused the watch's resource version as too
// old. Events between two versions are missing.
type gap struct {
	from, to int64
	present  map[string]bool // objects in the list
}

// wrongEvents compares the events of a watch with the writes: each must have come once, in the order of resource
// versions, and no others.
func wrongEvents(histories []*history, events []event, gaps []gap) (wrong []string) {
	newest, byName := int64(0), map[string][]event{}
	for _, e := range events {
		switch {
		case e.version == newest:
			wrong = append(wrong, fmt.Sprintf("version %d comes twice, the second time as %s %s", newest, e.kind,
				e.name))
		case e.version < newest:
			wrong = append(wrong, fmt.Sprintf("version %d comes after %d", e.version, newest))
		}
		newest = max(newest, e.version)
		byName[e.name] = append(byName[e.name], e)
	}
	for _, h := range histories {
		wrong = append(wrong, h.compare(byName[h.name], gaps)...)
		delete(byName, h.name)
	}
	for _, name := range slices.Sorted(maps.Keys(byName)) {
		wrong = append(wrong, fmt.Sprintf("%d events of %s, which was not written", len(byName[name]), name))
	}
	return wrong
}

// compare compares the events of the object with its writes, and describes each difference.
func (h *history) compare(events []event, gaps []gap) (wrong []string) {
	surplus := func(events []event) {
		for _, e := range events {
			wrong = append(wrong, fmt.Sprintf("no write has the event %s %s, version %d", e.kind, e.name, e.version))
		}
	}
	for _, w := range h.writes {
		at := slices.IndexFunc(events, w.causes)
		switch {
		case at >= 0:
			surplus(events[:at])
			events = events[at+1:]
		case w.sure && !h.inGap(w, gaps):
			wrong = append(wrong, fmt.Sprintf("the event of %s %s, version %d, is lost", w.kind, h.name, w.version))
		}
	}
	surplus(events)
	return wrong
}

// causes reports whether an event can be that of the write.
func (w *write) causes(e event) bool {
	return w.kind == e.kind && w.value == e.value && (w.version == 0 || w.version == e.version)
}

// inGap reports whether the event of a write can be missing because a list replaced it.
func (h *history) inGap(w write, gaps []gap) bool {
	return slices.ContainsFunc(gaps, func(g gap) bool {
		if w.kind == deleted {
			return h.writes[0].version <= g.to && !g.present[h.name]
		}
		return w.version > g.from && w.version <= g.to
	})
}

// lostWrites compares the objects that exist at the end, by name and with their values, with the writes.
func lostWrites(histories []*history, present map[string]string) (wrong []string) {
	unknown := maps.Clone(present)
	for _, h := range histories {
		value, exists := present[h.name]
		delete(unknown, h.name)
		if !h.allows(value, exists) {
			wrong = append(wrong, h.describe(value, exists))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(unknown)) {
		wrong = append(wrong, name+" exists, but was not written")
	}
	return wrong
}

// allows reports whether the object may be in a state at the end: that of the last acknowledged write, or of the unsure
// write behind it.
func (h *history) allows(value string, exists bool) bool {
	for _, w := range slices.Backward(h.writes) {
		if exists == (w.kind != deleted) && (!exists || value == w.value) {
			return true
		}
		if w.sure {
			return false
		}
	}
	return !exists
}

func (h *history) describe(value string, exists bool) string {
	last := h.writes[len(h.writes)-1]
	found := "is absent"
	if exists {
		found = fmt.Sprintf("has the value %q", value)
	}
	return fmt.Sprintf("%s %s; its last write is %s %q, version %d, acknowledged: %t", h.name, found, last.kind,
		last.value, last.version, last.sure)
}
