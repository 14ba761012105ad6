package raft_test

import (
	"os"
	"runtime/debug"
	"testing"
)

func TestMain(m *testing.M) {
	debug.SetGCPercent(400) // many small clusters: a third less time
	os.Exit(m.Run())
}
