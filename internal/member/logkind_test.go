package member

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
)

// An earlier version may have opened a directory with one protocol after the other. Who has one hears how to continue.
func TestALogOfNoProtocol(t *testing.T) {
	same := func(name string) string { return name }
	raft, iss := LogKind{Core: "raft", Order: "single"}, LogKind{Core: "iss", Order: "single"}
	require.NoError(t, CheckLogKind("d", []LogKind{iss, raft}, raft, same))
	require.ErrorContains(t, CheckLogKind("d", []LogKind{iss}, raft, same), "it holds a log of iss, not of raft")
	former := func(string) string { return "raft" }
	require.NoError(t, CheckLogKind("d", []LogKind{{Core: "lcr", Order: "single"}}, raft, former))
	err := CheckLogKind("d", nil, raft, same)
	require.ErrorContains(t, err,
		"no protocol alone wrote the log there, raft included. If an earlier version opened it with one after another, "+
			"save a snapshot")
	require.True(t, errors.As(err, new(*LogKindError)))
}
