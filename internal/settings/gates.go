package settings

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"go.uber.org/zap"

	"go.etcd.io/etcd/pkg/v3/featuregate"
	"go.etcd.io/etcd/server/v3/features"
)

// gate is a feature of etcd that can be turned on and off there, and not here.
type gate struct {
	is  bool // how it is here
	why string
}

const noGate = "there is no such feature"

// gates are those of etcd 3.7.
var gates = map[featuregate.Feature]gate{
	features.StopGRPCServiceOnDefrag:      {true, "health says NOT_SERVING while a member defragments, always"},
	features.TxnModeWriteWithSharedBuffer: {true, "transactions always share it"},
	features.InitialCorruptCheck:          {true, "a member always checks its database and its log when it starts"},
	features.CompactHashCheck:             {true, "see --compact-hash-check-time"},
	features.LeaseCheckpoint:              {true, "how long leases are left is always kept"},
	features.LeaseCheckpointPersist:       {true, "how long leases are left is always kept"},
	features.SetMemberLocalAddr:           {false, noGate},
	features.FastLeaseKeepAlive:           {true, "renewals have no wait that could be left out"},
	features.PriorityRequest:              {false, noGate},
}

// Names by which etcd sets all features of a kind.
const allAlpha, allBeta = "AllAlpha", "AllBeta"

// checkGates refuses gates that etcd does not know either.
func (s *Settings) checkGates() error {
	if _, err := s.askedGates(); err != nil {
		return fmt.Errorf("--feature-gates: %w", err)
	}
	return nil
}

// ignoredGates returns a line for each gate that was to be otherwise than it is here.
func (s *Settings) ignoredGates() (out []string) {
	asked, err := s.askedGates()
	if err != nil {
		return nil // checkGates refused it
	}
	named := func(name featuregate.Feature) bool {
		return strings.Contains(s.gates, string(name)+"=") || strings.Contains(s.gates, allAlpha) ||
			strings.Contains(s.gates, allBeta)
	}
	for _, name := range slices.Sorted(maps.Keys(gates)) {
		if on, g := asked.Enabled(name), gates[name]; named(name) && on != g.is {
			out = append(out, fmt.Sprintf("--feature-gates %s=%t does nothing: %s", name, on, g.why))
		}
	}
	return out
}

func (s *Settings) askedGates() (featuregate.FeatureGate, error) {
	all := featuregate.New("", zap.NewNop())
	if err := all.Add(features.DefaultEtcdServerFeatureGates); err != nil {
		return nil, err
	}
	return all, all.Set(s.gates)
}
