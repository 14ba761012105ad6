package server

import (
	"context"
	"log/slog"
	"slices"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

// ZapLogger returns a logger for etcd's packages, whose lines become lines of another logger: warnings and errors.
// They log a lot about ordinary events, which are lines of the level debug.
func ZapLogger(logger *slog.Logger) *zap.Logger { return zap.New(&slogCore{logger: logger}) }

// harmless are the warnings of etcd's packages that come with each start and that an operator has nothing to do about:
// docs/using/operations.md says what --auth-token is about.
var harmless = []string{"simple token is not cryptographically signed"}

// slogCore forwards what etcd's packages log with zap.
type slogCore struct {
	logger *slog.Logger
	fields []zapcore.Field
}

var _ zapcore.Core = (*slogCore)(nil)

// Enabled implements zapcore.Core.
func (c *slogCore) Enabled(l zapcore.Level) bool {
	return l >= zapcore.InfoLevel && c.logger.Enabled(context.Background(), level(l))
}

// level is the level of a line of etcd's packages. Below info they would log every key that is written.
func level(l zapcore.Level) slog.Level {
	switch {
	case l > zapcore.WarnLevel:
		return slog.LevelError
	case l == zapcore.WarnLevel:
		return slog.LevelWarn
	}
	return slog.LevelDebug
}

// With implements zapcore.Core.
func (c *slogCore) With(fields []zapcore.Field) zapcore.Core {
	return &slogCore{c.logger, append(c.fields[:len(c.fields):len(c.fields)], fields...)}
}

// Check implements zapcore.Core.
func (c *slogCore) Check(e zapcore.Entry, ce *zapcore.CheckedEntry) *zapcore.CheckedEntry {
	if c.Enabled(e.Level) {
		return ce.AddCore(e, c)
	}
	return ce
}

// Write implements zapcore.Core.
func (c *slogCore) Write(e zapcore.Entry, fields []zapcore.Field) error {
	values := zapcore.NewMapObjectEncoder()
	var attrs []slog.Attr
	for _, list := range [][]zapcore.Field{c.fields, fields} {
		for i := range list {
			list[i].AddTo(values)
			if v, ok := values.Fields[list[i].Key]; ok {
				attrs = append(attrs, slog.Any(list[i].Key, v))
			}
		}
	}
	to := level(e.Level)
	if slices.Contains(harmless, e.Message) {
		to = slog.LevelDebug
	}
	c.logger.LogAttrs(context.Background(), to, e.Message, attrs...)
	return nil
}

// Sync implements zapcore.Core.
func (*slogCore) Sync() error { return nil }
