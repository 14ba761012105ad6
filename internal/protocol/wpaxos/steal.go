package wpaxos

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/braidlog/braid/protocol/quorum"
	"github.com/braidlog/braid/protocol/setting"
)

// Steal is the setting that says when a group of keys changes its owner.
var Steal = &setting.Setting[Stealing]{
	Name: "stealing", Default: DefaultStealing, Text: &setting.Text[Stealing]{Name: "string", Parse: ParseStealing, Format: Stealing.String},
	Check:  setting.Check[Stealing]{Range: "never, or consecutive, majority or average with 1…1048576 questions", Refuse: Stealing.check},
	Change: setting.Local, Experiment: true,
	Help: "when a group of keys changes its owner: majority:N, consecutive:N or average:N, of N questions; or never",
}

// Settings are those of WPaxos.
var Settings = setting.Table{Rows: []setting.Any{quorum.Setting, Steal}}

// Stealing says when the owner of a group of keys hands it over to the member that asks for its commands
// (docs/internals/wpaxos.md). Members may differ in it.
type Stealing struct {
	Policy StealPolicy
	// After is how many commands and reads it takes, 1…MaxStealAfter; what that means depends on the policy.
	After int
}

// StealPolicy is how an owner finds out who should own a group in its place.
type StealPolicy string

// The policies.
const (
	// StealNever: only who misses an owner takes its groups.
	StealNever StealPolicy = "never"
	// StealConsecutive: a zone continues to ask, After times, and no other zone does in between.
	StealConsecutive StealPolicy = "consecutive"
	// StealMajority: of After questions more than half are of one zone.
	StealMajority StealPolicy = "majority"
	// StealAverage: more than two thirds of the questions are of one zone, by a moving average in which a question counts
	// 1/After of all that were before it. With half of them groups of two zones that ask round-robin would go to and fro.
	StealAverage StealPolicy = "average"
)

// MaxStealAfter bounds Stealing.After.
const MaxStealAfter = 1 << 20

// DefaultStealing is the default.
var DefaultStealing = Stealing{StealMajority, 64}

// ParseStealing reads what String writes: "never", or "POLICY:AFTER" as in majority:64.
func ParseStealing(text string) (Stealing, error) {
	policy, after, numbered := strings.Cut(text, ":")
	s := Stealing{Policy: StealPolicy(policy)}
	if numbered {
		n, err := strconv.ParseUint(after, 10, 32)
		if err != nil || n == 0 {
			return s, stealError(text)
		}
		s.After = int(n)
	}
	return s, s.check()
}

func stealError(text string) error {
	return fmt.Errorf("%q: want never, or consecutive, majority or average with 1…%d questions, as in majority:64", text, MaxStealAfter)
}

// String returns the text that ParseStealing reads.
func (s Stealing) String() string {
	if s.Policy == StealNever {
		return string(StealNever)
	}
	return fmt.Sprintf("%s:%d", s.Policy, s.After)
}

func (s Stealing) check() error {
	ok := s.After > 0 && s.After <= MaxStealAfter
	switch s.Policy {
	case StealConsecutive, StealMajority, StealAverage:
	case StealNever:
		ok = s.After == 0
	default:
		ok = false
	}
	if !ok {
		return stealError(fmt.Sprintf("%s:%d", s.Policy, s.After))
	}
	return nil
}
