package wpaxos

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/braidlog/braid/protocol/quorum"
	"github.com/braidlog/braid/protocol/setting"
)

// Steal is the setting that determines when a group of keys changes its owner.
var Steal = &setting.Setting[Stealing]{
	Name: "stealing", Default: DefaultStealing,
	Text: &setting.Text[Stealing]{Name: "string", Parse: ParseStealing, Format: Stealing.String},
	Check: setting.Check[Stealing]{Range: "never, or consecutive, majority or average with 1…1048576 questions",
		Refuse: Stealing.check},
	Change: setting.Local, Experiment: true,
	Help: "when a group of keys changes its owner: majority:N, consecutive:N or average:N, of N requests; or never",
}

// Settings are those of WPaxos.
var Settings = setting.Table{Rows: []setting.Any{quorum.Setting, Steal}}

// Stealing determines when the owner of a group of keys transfers it to the member that sends most of its commands
// (docs/internals/wpaxos.md). Members may differ in it.
type Stealing struct {
	Policy StealPolicy
	// After is a number of commands and reads, 1…MaxStealAfter; its meaning depends on the policy.
	After int
}

// StealPolicy is how an owner decides which member should own a group in its place.
type StealPolicy string

// The policies.
const (
	// StealNever: a member takes a group only if its owner has failed.
	StealNever StealPolicy = "never"
	// StealConsecutive: one zone sends After requests, and no other zone sends one in between.
	StealConsecutive StealPolicy = "consecutive"
	// StealMajority: of After requests more than half are from one zone.
	StealMajority StealPolicy = "majority"
	// StealAverage: more than two thirds of the requests are from one zone, by a moving average in which a request
	// weighs 1/After of all earlier ones. With half in place of two thirds, a group that two zones use alternately would
	// move back and forth.
	StealAverage StealPolicy = "average"
)

// MaxStealAfter bounds Stealing.After.
const MaxStealAfter = 1 << 20

// DefaultStealing is the default.
var DefaultStealing = Stealing{StealMajority, 64}

// ParseStealing parses what String returns: "never", or "POLICY:AFTER" as in majority:64.
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
	return fmt.Errorf("%q: want never, or consecutive, majority or average with 1…%d questions, as in majority:64", text,
		MaxStealAfter)
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
