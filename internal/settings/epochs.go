package settings

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/pflag"

	"github.com/braidlog/braid/protocol"
)

// EpochFlags registers the flags of a protocol's epochs; parsing them changes e.
func EpochFlags(f *pflag.FlagSet, e *protocol.EpochSettings) {
	f.Var(bounds{&e.MinSlots, &e.MaxSlots}, "epoch-slots", "with iss: slots of a leader in an epoch, least and most, both powers of two, or one number for both (default 64-1024)")
	f.BoolVar(&e.EqualShares, "epoch-equal-shares", e.EqualShares, "with iss: leaders have equally many slots, whatever their load is")
	f.StringVar(&e.Policy, "epoch-policy", e.Policy, "with iss: who leads: simple, everybody; backoff or blacklist, not who was suspected; or combined (default combined)")
	f.Var(bounds{&e.Ban, &e.MaxBan}, "epoch-bans", "with iss: for how many epochs who was suspected does not lead, the first time and at most (default 8-256)")
}

// EpochNames are the names of these flags.
var EpochNames = []string{"epoch-slots", "epoch-equal-shares", "epoch-policy", "epoch-bans"}

// EpochArgs are the flags that say what is set; none for the defaults.
func EpochArgs(e protocol.EpochSettings) (args []string) {
	f := pflag.NewFlagSet("epochs", pflag.ContinueOnError)
	EpochFlags(f, &e)
	for _, name := range EpochNames {
		if v := f.Lookup(name).Value.String(); v != "" && v != "false" {
			args = append(args, "--"+name+"="+v)
		}
	}
	return args
}

// bounds is a flag with two numbers, as 64-1024. One number is both of them.
type bounds struct{ least, most *int }

func (b bounds) String() string {
	switch {
	case b.least == nil || *b.least == 0 && *b.most == 0:
		return ""
	case *b.least == *b.most:
		return strconv.Itoa(*b.least)
	}
	return fmt.Sprintf("%d-%d", *b.least, *b.most)
}

// Set takes nothing as the defaults.
func (b bounds) Set(text string) error {
	least, most, two := strings.Cut(text, "-")
	if !two {
		most = least
	}
	*b.least, *b.most = 0, 0
	for _, p := range []struct {
		to   *int
		text string
	}{{b.least, least}, {b.most, most}} {
		if text == "" {
			break
		}
		n, err := strconv.Atoi(p.text)
		if err != nil || n <= 0 {
			return fmt.Errorf("%q is not a positive number, or two with a - between", text)
		}
		*p.to = n
	}
	return nil
}

func (b bounds) Type() string { return "numbers" }

// checkEpochs completes the settings of the epochs.
func (l *Log) checkEpochs() (err error) {
	core := l.protocol().Core
	if !core.Epochs && l.Epochs != (protocol.EpochSettings{}) {
		return fmt.Errorf("--epoch-slots, --epoch-equal-shares, --epoch-policy and --epoch-bans have a meaning only with --protocol iss: %s has no epochs", l.Protocol)
	}
	l.Epochs, err = core.Complete(l.Epochs)
	return err
}
