package server

import (
	"context"
	"log/slog"

	"go.uber.org/zap/zapcore"
)

// slogCore forwards what etcd's packages log with zap, from warnings up. They log a lot about ordinary events.
type slogCore struct {
	logger *slog.Logger
	fields []zapcore.Field
}

var _ zapcore.Core = (*slogCore)(nil)

// Enabled implements zapcore.Core.
func (*slogCore) Enabled(l zapcore.Level) bool { return l >= zapcore.WarnLevel }

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
	level := slog.LevelWarn
	if e.Level > zapcore.WarnLevel {
		level = slog.LevelError
	}
	c.logger.LogAttrs(context.Background(), level, e.Message, attrs...)
	return nil
}

// Sync implements zapcore.Core.
func (*slogCore) Sync() error { return nil }
