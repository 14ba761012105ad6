package fit_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/braidlog/braid/internal/fit"
	"github.com/braidlog/braid/protocol"
	"github.com/braidlog/braid/protocol/common"
	"github.com/braidlog/braid/protocol/setting"
)

// TestAvoidsSaysWhatIsNotTriedAgain: until when, also what is no candidate.
func TestAvoidsSaysWhatIsNotTriedAgain(t *testing.T) {
	v := fit.View{Mode: protocol.FitAdvise, Wall: 1_000_000, Protocol: "raft", Instances: 1,
		Leaders: []protocol.MemberID{1}, Members: []fit.Member{{ID: 1, Present: true}, {ID: 2, Present: true},
			{ID: 3, Present: true}}}
	v.Profile = protocol.Profile{Version: 1, Values: common.FitAvoid.Set(setting.Values{},
		"iss:1@1600,craft:2@1000,niagara+4:1@1001,unknown+7:1@1500,iss:1@1601,nonsense")}
	var f fit.Fitter
	d := f.Step(&v)
	require.Len(t, d.Avoids, 3, "one is over, one is malformed")
	require.Equal(t, fit.Avoided{Candidate: fit.Candidate{Protocol: "iss"}, Until: 1_600_000}, d.Avoids[0])
	require.Equal(t, "niagara", d.Avoids[1].Protocol)
	require.Equal(t, "4", d.Avoids[1].Settings["instances"])
	require.Equal(t, fit.Avoided{Candidate: fit.Candidate{Protocol: "unknown+7"}, Until: 1_500_000}, d.Avoids[2])
}
