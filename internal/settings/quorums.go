package settings

import (
	"fmt"

	"github.com/spf13/pflag"

	"github.com/braidlog/braid/internal/registry"
)

// QuorumFlag registers the flag of quorums that need not be majorities.
func QuorumFlag(f *pflag.FlagSet, quorums *string) {
	f.StringVar(quorums, "quorums", "", "with multi-paxos and iss: how many voters elect and how many decide, as 4/2, grid:ROWS for voters in columns of at least so many, or zones:COUNT/LOST/DOWN for voters in zones; what such a cluster bears is said at its start (default majority)")
}

// Tolerance says in a line what a cluster of so many voters bears; "" where all quorums are majorities. The error says
// that the quorums are not for the protocol, or do not fit so many.
func Tolerance(protocol, quorums string, voters int) (string, error) {
	p := registry.Find(protocol)
	if p == nil || quorums == "" {
		return "", nil
	}
	y, err := p.Flexible(quorums, voters)
	if err != nil {
		return "", fmt.Errorf("--quorums: %w", err)
	}
	if y.Majority() {
		return "", nil
	}
	return y.Tolerates(voters).String(), nil
}

// checkQuorums writes the quorums as they are always written, if some were asked for.
func (l *Log) checkQuorums() error {
	quorums, err := l.protocol().Flexible(l.Quorums, 0)
	if err != nil {
		return fmt.Errorf("--quorums: %w", err)
	}
	if l.Quorums != "" {
		l.Quorums = quorums.String()
	}
	return nil
}
