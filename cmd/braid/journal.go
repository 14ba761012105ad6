package main

import (
	"errors"
	"fmt"
	"io"
	"regexp"
	"strings"

	"github.com/coreos/go-systemd/v22/journal"

	"github.com/braidlog/braid/internal/settings"
)

// journalWriter writes lines of a log to the journal of systemd, each with the priority of its level. Its Write may be
// called concurrently if that of otherwise may.
type journalWriter struct {
	send func(line string, priority journal.Priority, fields map[string]string) error
	// otherwise gets lines that the journal does not take.
	otherwise io.Writer
}

// openJournal fails if there is no journal.
func openJournal(otherwise io.Writer) (*journalWriter, error) {
	if !journal.Enabled() {
		return nil, errors.New("--log-outputs " + settings.ToJournal + ": no journal of systemd is running here")
	}
	return &journalWriter{journal.Send, otherwise}, nil
}

// levelOf finds the level of a line, in text and JSON.
var levelOf = regexp.MustCompile(`^(?:time=\S+ level=|\{"time":"[^"]*","level":")([A-Za-z]+)`)

// priorities are those of levels. Others, as those between two levels, are informational.
var priorities = map[string]journal.Priority{"debug": journal.PriDebug, "info": journal.PriInfo,
	"warn": journal.PriWarning, "error": journal.PriErr}

// Write implements io.Writer.
func (j *journalWriter) Write(line []byte) (int, error) {
	priority := journal.PriInfo
	if found := levelOf.FindSubmatch(line); found != nil {
		if p, ok := priorities[strings.ToLower(string(found[1]))]; ok {
			priority = p
		}
	}
	err := j.send(strings.TrimSuffix(string(line), "\n"), priority, map[string]string{"SYSLOG_IDENTIFIER": "braid"})
	if err == nil {
		return len(line), nil
	}
	if _, other := fmt.Fprintf(j.otherwise, "journal: %v: %s", err, line); other != nil {
		return 0, errors.Join(err, other)
	}
	return len(line), nil
}
