package main

import (
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"slices"

	"gopkg.in/natefinch/lumberjack.v2"

	"github.com/braidlog/braid/internal/settings"
)

// logFiles are where a member logs.
type logFiles struct {
	io.Writer
	open []io.Closer
}

// openLog opens what a member logs to.
func openLog(s *settings.Settings, stdout, stderr io.Writer) (*logFiles, error) {
	rotation, err := s.Rotation()
	if err != nil {
		return nil, usageError{err}
	}
	l := &logFiles{}
	var all []io.Writer
	for _, to := range s.LogOutputs {
		switch to {
		case settings.ToDefault, settings.ToStderr:
			all = append(all, stderr)
		case settings.ToStdout:
			all = append(all, stdout)
		case settings.ToJournal:
			j, err := openJournal(stderr)
			if err != nil {
				return nil, err
			}
			all = append(all, j)
		}
	}
	for _, name := range s.LogFiles() {
		file, err := openLogFile(name, s.LogRotates, &rotation)
		if err != nil {
			l.close()
			return nil, fmt.Errorf("log: %w", err)
		}
		all, l.open = append(all, file), append(l.open, file)
	}
	l.Writer = io.MultiWriter(all...)
	return l, nil
}

// openLogFile opens a file to append to, which is as readable as the umask allows.
func openLogFile(name string, rotates bool, r *settings.Rotation) (io.WriteCloser, error) {
	file, err := os.OpenFile(name, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil || !rotates {
		return file, err
	}
	file.Close() // it can be written to
	path, err := filepath.Abs(name)
	return &lumberjack.Logger{Filename: path, MaxSize: r.MaxSize, MaxAge: r.MaxAge, MaxBackups: r.MaxBackups,
		LocalTime: r.LocalTime, Compress: r.Compress}, err
}

func (l *logFiles) close() {
	for _, file := range slices.Backward(l.open) {
		file.Close()
	}
}

func newLogger(s *settings.Settings, w io.Writer) *slog.Logger {
	options := &slog.HandlerOptions{Level: s.Level()}
	if s.JSON() {
		options.ReplaceAttr = durationsWithUnits
		return slog.New(slog.NewJSONHandler(w, options))
	}
	return slog.New(slog.NewTextHandler(w, options))
}

// durationsWithUnits writes durations with their unit, as in lines of text: the JSON handler writes them as numbers.
func durationsWithUnits(_ []string, a slog.Attr) slog.Attr {
	if a.Value.Kind() == slog.KindDuration {
		a.Value = slog.StringValue(a.Value.Duration().String())
	}
	return a
}
