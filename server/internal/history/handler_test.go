package history

import (
	"bytes"
	"errors"
	"log/slog"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// id is written as ids of members are.
type id uint64

func (i id) String() string { return strconv.FormatUint(uint64(i), 16) }

func newLog(level slog.Level, json bool) (*slog.Logger, *History, *bytes.Buffer) {
	var out bytes.Buffer
	o := &slog.HandlerOptions{Level: level, ReplaceAttr: func(groups []string, a slog.Attr) slog.Attr {
		if a.Key == slog.TimeKey && len(groups) == 0 {
			return slog.Attr{}
		}
		return a
	}}
	var next slog.Handler = slog.NewTextHandler(&out, o)
	if json {
		next = slog.NewJSONHandler(&out, o)
	}
	h := New("b")
	names := map[uint64]string{0x1a: "m1", 0x2b: "m2"}
	return slog.New(NewHandler(next, h, 0x2b, func(id uint64) string { return names[id] })), h, &out
}

// Ids are hexadecimal with the name behind them, in both formats, also where they were given before.
func TestIDsHaveNames(t *testing.T) {
	log, _, out := newLog(slog.LevelInfo, false)
	log.With("member", id(0x1a)).Info("x", "to", id(0x3c))
	require.Equal(t, "level=INFO msg=x member=1a(m1) to=3c\n", out.String())
	log, _, out = newLog(slog.LevelInfo, true)
	log.WithGroup("g").Info("x", "member", id(0x1a))
	require.Equal(t, `{"level":"INFO","msg":"x","g":{"member":"1a(m1)"}}`+"\n", out.String())
}

// A line with the attribute is an event, in words, also if its level is not logged.
func TestLinesAreEvents(t *testing.T) {
	log, h, out := newLog(slog.LevelError, false)
	log.Info("no event")
	log.Warn("lost the leader", EventKey, "leader-lost", "leader", id(0x1a), "silent", 1234*time.Millisecond)
	log.With(EventKey, "link-down").Warn("link down", "member", id(0x3c), "err", errors.New("refused"))
	log.Info("what no kind has", EventKey, "unknown")
	require.Empty(t, out.String())
	events := h.Since(Position{}).Events
	require.Len(t, events, 3)
	require.NotZero(t, events[0].At)
	events[0].At = 0
	require.Equal(t, Event{Level: "warn", Kind: "leader-lost", About: "1a",
		Text: "m2 lost its leader m1: nothing came from it for 1.2 s"}, events[0])
	require.Equal(t, "m2 has no link to 3c: refused", events[1].Text)
	require.Equal(t, "3c", events[1].About)
	require.Equal(t, "what no kind has", events[2].Text)
}

func TestPartsOfATextMayBeMissing(t *testing.T) {
	values := map[string]string{"a": "1", "b": "2"}
	of := func(name string) string { return values[name] }
	require.Equal(t, "x 1 and 2 (1)", say("x {a}[ and {b}][ or {c}] ({a})", of))
	require.Equal(t, "no end {", say("no end {", of)+"{")
}
