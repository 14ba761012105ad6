package settings

import (
	"fmt"
	"slices"
	"strconv"
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
	features.StopGRPCServiceOnDefrag:      {false, "a member serves while it defragments"},
	features.TxnModeWriteWithSharedBuffer: {true, "transactions always share it"},
	features.InitialCorruptCheck:          {true, "a member always checks its database and its log when it starts"},
	features.CompactHashCheck:             {true, "see --compact-hash-check-time"},
	features.LeaseCheckpoint:              {true, "how long leases are left is always kept"},
	features.LeaseCheckpointPersist:       {true, "how long leases are left is always kept"},
	features.SetMemberLocalAddr:           {false, noGate},
	features.FastLeaseKeepAlive:           {true, "renewals have no wait that could be left out"},
	features.PriorityRequest:              {false, noGate},
}

// gateFlags are flags of etcd 3.5 and 3.6 for what is a gate in 3.7.
var gateFlags = map[string]featuregate.Feature{
	"experimental-initial-corrupt-check":             features.InitialCorruptCheck,
	"experimental-compact-hash-check-enabled":        features.CompactHashCheck,
	"experimental-enable-lease-checkpoint":           features.LeaseCheckpoint,
	"experimental-enable-lease-checkpoint-persist":   features.LeaseCheckpointPersist,
	"experimental-txn-mode-write-with-shared-buffer": features.TxnModeWriteWithSharedBuffer,
	"experimental-stop-grpc-service-on-defrag":       features.StopGRPCServiceOnDefrag,
	"experimental-set-member-localaddr":              features.SetMemberLocalAddr,
}

func foreignGates() (out []*foreign) {
	for name, feature := range gateFlags {
		g := gates[feature]
		out = append(out, &foreign{name: name, isBool: true, harmless: strconv.FormatBool(g.is), why: g.why})
	}
	return out
}

// Feature is a feature of etcd. Stage is ALPHA, BETA or "".
type Feature struct {
	Name, Stage string
	On          bool
}

// Features are those of etcd 3.7, by name, as they are here, whatever was asked for.
func Features() (all []Feature) {
	known := featuregate.New("", zap.NewNop())
	_ = known.Add(features.DefaultEtcdServerFeatureGates) // fails if there are two of a name
	for feature, spec := range known.GetAll() {
		all = append(all, Feature{string(feature), string(spec.PreRelease), gates[feature].is})
	}
	slices.SortFunc(all, func(a, b Feature) int { return strings.Compare(a.Name, b.Name) })
	return all
}

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
	for _, pair := range strings.Split(asked, ",") {
		name, on, _ := strings.Cut(pair, "=")
		if g, ok := gates[featuregate.Feature(name)]; ok && on != strconv.FormatBool(g.is) {
			out = append(out, fmt.Sprintf("--feature-gates %s does nothing: %s", pair, g.why))
		}
	}
	return out
}

// askedGates are the gates that were given, those given together among them, as NAME=true,NAME=false,….
func (s *Settings) askedGates() (string, error) {
	all := featuregate.New("", zap.NewNop())
	if err := all.Add(features.DefaultEtcdServerFeatureGates); err != nil {
		return "", err
	}
	err := all.Set(s.gates)
	return fmt.Sprint(all), err
}
