// Package testsize determines how much a test runs. There are three sizes:
//
//	go test -short ./...                 a minute: rules and their scripts, no clusters of processes or sockets
//	go test ./...                        some minutes: a share of everything
//	go run ./internal/campaign NAME      a campaign: whole searches, long lists of seeds, processes that are killed
//
// A test belongs to a campaign if it calls [Only], [Pick] or [Runs] with its name. The command
// internal/campaign finds these calls in the source, so a test cannot be left out of its campaign. Only tests import
// this package.
package testsize

import (
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
)

// Campaign is a group of tests that are too long for every run.
type Campaign string

const (
	Mutants   Campaign = "mutants"   // every wrong variant of a rule is found
	Seeds     Campaign = "seeds"     // long lists of seeds of the simulator and of the protocols' own clusters
	Storage   Campaign = "storage"   // every truncation and every flipped bit of files
	Processes Campaign = "processes" // real members under kills, pauses, full disks and changes
	Models    Campaign = "models"    // all states of the models that fit into 2 GB and two minutes
	Deploy    Campaign = "deploy"    // the release and the files of deploy/, with systemd, a container and Prometheus
	Deep      Campaign = "deep"      // models that take some minutes and some GB; not part of .ci/run
)

// Campaigns are all of them.
var Campaigns = []Campaign{Mutants, Seeds, Storage, Processes, Models, Deploy, Deep}

var chosen Campaign

func init() {
	flag.Func("campaign", fmt.Sprintf("run the tests of a campaign whole: %v", Campaigns), func(name string) error {
		if !slices.Contains(Campaigns, Campaign(name)) {
			return fmt.Errorf("there is: %v", Campaigns)
		}
		chosen = Campaign(name)
		return nil
	})
}

// apart are campaigns that run whole in commands of their own, as in .ci/run: variable TESTSIZE_APART names them,
// separated by commas. Their tests have the size of a short run here.
var apart = strings.Split(os.Getenv("TESTSIZE_APART"), ",")

// Runs reports whether this is a run of the campaign. The flags must have been parsed.
func Runs(c Campaign) bool { return chosen == c }

// Only ends the test unless this is a run of its campaign.
func Only(t testing.TB, c Campaign) {
	t.Helper()
	if !Runs(c) {
		t.Skipf("part of: go run ./internal/campaign %s", c)
	}
}

// Long ends the test in a short run.
func Long(t testing.TB) {
	t.Helper()
	if testing.Short() {
		t.Skip("not part of a short run")
	}
}

// Pick returns the size of a test of a campaign: in a short run or one with the campaign apart, in a usual run, or in a
// run of the campaign.
func Pick[T any](c Campaign, short, usual, whole T) T {
	switch {
	case Runs(c):
		return whole
	case testing.Short() || slices.Contains(apart, string(c)):
		return short
	}
	return usual
}
