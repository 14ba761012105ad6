package history

import (
	"context"
	"fmt"
	"log/slog"
	"reflect"
	"slices"
	"strconv"
	"time"
)

// Handler is a handler of log lines before another one. It writes a member's id with the member's name behind it, and
// keeps each line that has the attribute [EventKey] as an event of a history, whether or not the other handler wants
// lines of its level.
type Handler struct {
	next    slog.Handler
	history *History
	self    uint64
	// name is the name of a member; "": it has none, or is not known.
	name  func(id uint64) string
	attrs []slog.Attr // of With, outside of groups
	group bool
}

var _ slog.Handler = (*Handler)(nil)

// NewHandler returns a handler of the lines of a member. It is safe for concurrent use if name is.
func NewHandler(next slog.Handler, h *History, self uint64, name func(id uint64) string) *Handler {
	return &Handler{next: next, history: h, self: self, name: name}
}

// Enabled implements slog.Handler.
func (h *Handler) Enabled(ctx context.Context, level slog.Level) bool {
	return level >= slog.LevelInfo || h.next.Enabled(ctx, level)
}

// Handle implements slog.Handler.
func (h *Handler) Handle(ctx context.Context, r slog.Record) error {
	h.keep(&r)
	if !h.next.Enabled(ctx, r.Level) {
		return nil
	}
	out := slog.NewRecord(r.Time, r.Level, r.Message, r.PC)
	r.Attrs(func(a slog.Attr) bool {
		out.AddAttrs(h.named(a))
		return true
	})
	return h.next.Handle(ctx, out)
}

// WithAttrs implements slog.Handler.
func (h *Handler) WithAttrs(attrs []slog.Attr) slog.Handler {
	out, named := *h, make([]slog.Attr, len(attrs))
	for i, a := range attrs {
		named[i] = h.named(a)
	}
	out.next = h.next.WithAttrs(named)
	if !h.group {
		out.attrs = slices.Concat(h.attrs, attrs)
	}
	return &out
}

// WithGroup implements slog.Handler.
func (h *Handler) WithGroup(name string) slog.Handler {
	out := *h
	out.next, out.group = h.next.WithGroup(name), true
	return &out
}

// keep adds a line to the history if it is an event.
func (h *Handler) keep(r *slog.Record) {
	if h.group {
		return
	}
	values := map[string]slog.Value{}
	for _, a := range h.attrs {
		values[a.Key] = a.Value
	}
	r.Attrs(func(a slog.Attr) bool {
		values[a.Key] = a.Value
		return true
	})
	kind, is := values[EventKey]
	if !is {
		return
	}
	h.history.Add(Event{
		At: r.Time.UnixMilli(), Level: levelName(r.Level), Kind: kind.String(), Text: h.text(kind.String(), r, values),
		About: h.about(values),
	})
}

func levelName(l slog.Level) string {
	switch {
	case l >= slog.LevelError:
		return "error"
	case l >= slog.LevelWarn:
		return "warn"
	}
	return "info"
}

// text is an event in words: by its kind, or else the line's own.
func (h *Handler) text(kind string, r *slog.Record, values map[string]slog.Value) string {
	text := texts[kind]
	if text == "" {
		text = r.Message
	}
	return say(text, func(name string) string {
		v, ok := values[name]
		switch {
		case name == "self":
			return h.called(h.self)
		case !ok:
			return ""
		}
		return h.word(v)
	})
}

// word is a value in words.
func (h *Handler) word(v slog.Value) string {
	v = v.Resolve()
	if id, ok := memberID(v); ok {
		return h.called(id)
	}
	if v.Kind() == slog.KindDuration {
		return spoken(v.Duration())
	}
	switch x := v.Any().(type) {
	case nil:
		return ""
	case fmt.Stringer:
		return x.String()
	}
	return v.String()
}

// spoken is a time with two digits or three, for people.
func spoken(d time.Duration) string {
	switch {
	case d >= 10*time.Second:
		return d.Round(time.Second).String()
	case d >= time.Second:
		return strconv.FormatFloat(d.Seconds(), 'f', 1, 64) + " s"
	}
	return strconv.FormatInt(max(1, d.Milliseconds()), 10) + " ms"
}

// called is the name of a member, or its id.
func (h *Handler) called(id uint64) string {
	if name := h.name(id); name != "" {
		return name
	}
	return strconv.FormatUint(id, 16)
}

// about is the member that an event names first in the order of its attributes' names, besides this one.
func (h *Handler) about(values map[string]slog.Value) string {
	for _, key := range [...]string{"member", "leader", "former"} {
		if id, ok := memberID(values[key]); ok && id != h.self && id != 0 {
			return strconv.FormatUint(id, 16)
		}
	}
	return ""
}

// named is an attribute with the name of the member behind each id.
func (h *Handler) named(a slog.Attr) slog.Attr {
	id, ok := memberID(a.Value)
	if !ok {
		return a
	}
	text := strconv.FormatUint(id, 16)
	if name := h.name(id); name != "" {
		text += "(" + name + ")"
	}
	return slog.String(a.Key, text)
}

// memberID is the id that a value is: of a number's type that writes itself as text, as only ids of members do.
func memberID(v slog.Value) (id uint64, ok bool) {
	if v.Kind() != slog.KindAny {
		return 0, false
	}
	if _, ok := v.Any().(fmt.Stringer); !ok {
		return 0, false
	}
	r := reflect.ValueOf(v.Any())
	if r.Kind() != reflect.Uint64 {
		return 0, false
	}
	return r.Uint(), true
}
