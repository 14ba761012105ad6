package main

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/coreos/go-systemd/v22/journal"
	"github.com/stretchr/testify/require"

	"github.com/braidlog/braid/internal/settings"
	"github.com/braidlog/braid/server"
)

// TestLinesHaveTheirPriorityInTheJournal of both loggers, in both formats.
func TestLinesHaveTheirPriorityInTheJournal(t *testing.T) {
	for _, format := range []string{"text", "json"} {
		sent := map[string]journal.Priority{}
		send := func(line string, p journal.Priority, fields map[string]string) error {
			require.NotContains(t, line, "\n")
			require.Equal(t, "braid", fields["SYSLOG_IDENTIFIER"])
			for _, word := range []string{"first", "second", "third", "fourth", "fifth", "sixth"} {
				if strings.Contains(line, word) {
					sent[word] = p
				}
			}
			return nil
		}
		j := &journalWriter{otherwise: io.Discard, send: send}
		s := &settings.Settings{Output: settings.Output{LogLevel: "debug", LogFormat: format}}
		logger := newLogger(s, j)
		etcds := server.ZapLogger(logger)
		logger.Debug("first")
		logger.Info("second", "level", "error")
		logger.Warn("third")
		logger.Error("fourth")
		etcds.Warn("fifth")
		etcds.Error("sixth")
		require.Equal(t, map[string]journal.Priority{
			"first": journal.PriDebug, "second": journal.PriInfo, "third": journal.PriWarning,
			"fourth": journal.PriErr, "fifth": journal.PriWarning, "sixth": journal.PriErr,
		}, sent, format)
	}
}

func TestLinesThatTheJournalRefusesAreNotLost(t *testing.T) {
	var otherwise bytes.Buffer
	j := &journalWriter{otherwise: &otherwise, send: func(string, journal.Priority, map[string]string) error {
		return errors.New("no socket")
	}}
	n, err := j.Write([]byte("a line\n"))
	require.NoError(t, err)
	require.Equal(t, 7, n)
	require.Equal(t, "journal: no socket: a line\n", otherwise.String())
}
