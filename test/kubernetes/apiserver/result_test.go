package main

import (
	"slices"
	"strings"
	"testing"
)

// goodRun is a run without a fault.
func goodRun() *Run {
	return &Run{
		Created: 10, Writes: 30, PauseS: 1.5, Failures: map[string]int{"500": 2, "504": 1, noAnswer: 3},
		Work: &Work{Pods: 50, PodsWanted: 50, Dependents: 30, Namespaces: 5}, ManagerRestarts: 1, Load: "0.5",
	}
}

func TestTheTableHasAllStores(t *testing.T) {
	bad := goodRun()
	bad.Lost, bad.WrongEvents, bad.Work.DependentsLeft = []string{"a is absent"}, []string{"b came twice"}, 1
	runs := map[string][]*Run{"raft": {goodRun(), bad}, "etcd": {goodRun()}}
	r := &Results{Stores: []string{"raft", "etcd"}, Runs: runs}
	var text strings.Builder
	r.WriteText(&text)
	words := strings.Join(strings.Fields(text.String()), " ")
	for _, want := range []string{
		"raft etcd", "objects created 20 10", "objects lost or wrong 1 0", "longest pause of writes, s 1.5 / 1.5 1.5",
		"HTTP 500 4 2", "other failed requests 504: 2, no answer: 6 504: 1, no answer: 3", "wrong watch events 1 0",
		"Pods of Deployments that were scaled 100 of 100 50 of 50", "elections of the controller manager lost 2 1",
		"raft, round 2: lost: a is absent", "raft, round 2: wrong event: b came twice",
		"raft, round 2: the controller manager has not finished",
	} {
		if !strings.Contains(words, want) {
			t.Errorf("no %q in\n%s", want, text.String())
		}
	}
	if n := len(r.faults()); n != 3 {
		t.Errorf("%d faults: %q", n, r.faults())
	}
}

func TestTurnsBeginWithTheLeader(t *testing.T) {
	k := &killer{members: 3}
	for leader, want := range map[int][]int{-1: {0, 1, 2}, 0: {0, 1, 2}, 2: {2, 0, 1}} {
		if turn := k.turn(leader); !slices.Equal(turn, want) {
			t.Errorf("with leader %d: %v, not %v", leader, turn, want)
		}
	}
}

func TestSettingsAreChecked(t *testing.T) {
	if err := newContest(t.TempDir()).validate(); err != nil {
		t.Error(err)
	}
	for name, change := range map[string]func(*contest){
		"protocol": func(c *contest) { c.Servers = []string{"raft", "colour"} },
		"API":      func(c *contest) { c.Servers = []string{"bare-map"} },
		"rounds":   func(c *contest) { c.Rounds = 0 },
		"duration": func(c *contest) { c.duration = 0 },
		"rate":     func(c *contest) { c.rate = 0 },
	} {
		c := newContest(t.TempDir())
		change(c)
		if c.validate() == nil {
			t.Errorf("%s: no error", name)
		}
	}
}
