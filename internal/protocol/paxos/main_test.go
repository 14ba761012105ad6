package paxos_test

import (
	"os"
	"runtime/debug"
	"testing"
)

func TestMain(m *testing.M) {
	debug.SetGCPercent(400) // many small clusters
	os.Exit(m.Run())
}
