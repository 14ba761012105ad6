package judge

import (
	"fmt"
	"slices"
	"time"

	"github.com/braidlog/braid/protocol"
)

// Fits judges the changes of fitters.
//
//   - F1: one fitter makes at most one change in each interval of its patience.
//   - F2: a wish that was computed on a profile replaces no other one.
//   - F3: what was taken back is not tried again before its time, by no fitter, unless it restores service.
type Fits struct {
	// Waits is the least time between two changes, by the leader's clock. Avoids is for how long what was taken back is
	// not tried again.
	Waits, Avoids time.Duration
	// Remembered is how many changes that were taken back a profile has.
	Remembered int

	begun   []*Fitted
	avoids  []avoided
	decided uint64 // the version of the last profile
}

// avoided is a change that was taken back, and for how long it is not to be tried again.
type avoided struct {
	to    string
	until time.Duration
}

// Fitted is a change that a fitter makes.
type Fitted struct {
	Fitter    int // a number
	By        protocol.MemberID
	On        uint64        // the profile on which it was computed
	Clock, At time.Duration // when it began: by the member's clock, and in the simulation
	To        string        // what it leads to; "": only another leader
	TakesBack bool
	Restores  bool // service
	Made      bool // at least a part of it was made

	asked []asked // for profiles
	made  uint64  // how many of these were decided
	back  string  // what it takes back
}

// asked is a profile that a fitter has asked for.
type asked struct {
	version uint64
	text    string
}

// Begin judges a change that a fitter begins to make.
func (f *Fits) Begin(now *Fitted) error {
	last := f.last(now.Fitter)
	if made := f.last(0); now.TakesBack && made != nil && made.On+made.made == now.On {
		now.back = made.To
	}
	f.begun = append(f.begun, now)
	if last != nil && now.Clock-last.Clock < f.Waits {
		return fmt.Errorf("F1: makes another change %s after the last one", now.Clock-last.Clock)
	}
	for _, a := range f.avoids {
		if now.To != "" && !now.TakesBack && !now.Restores && a.to == now.To && now.At < a.until {
			return fmt.Errorf("F3: makes the change to %s again, %s too early", a.to, a.until-now.At)
		}
	}
	return nil
}

// last is the last change that a fitter has made, 0: any of them; nil: none.
func (f *Fits) last(fitter int) *Fitted {
	for _, x := range slices.Backward(f.begun) {
		if x.Made && (fitter == 0 || x.Fitter == fitter) {
			return x
		}
	}
	return nil
}

func (f *Fits) avoid(to string, until time.Duration) {
	f.avoids = slices.DeleteFunc(f.avoids, func(a avoided) bool { return a.to == to })
	if f.avoids = append(f.avoids, avoided{to, until}); len(f.avoids) > f.Remembered {
		f.avoids = f.avoids[1:]
	}
}

// Asks records that a fitter asks for a profile.
func (f *Fits) Asks(x *Fitted, p *protocol.Profile) {
	x.asked = append(x.asked, asked{p.Version, textOf(p)})
}

// decide judges a profile that was decided.
func (f *Fits) decide(p *protocol.Profile) error {
	if p.Version <= f.decided {
		return nil
	}
	f.decided = p.Version
	for _, x := range f.begun {
		if !slices.Contains(x.asked, asked{p.Version, textOf(p)}) {
			continue
		}
		if x.made++; p.Version != x.On+x.made {
			return fmt.Errorf("F2: a wish of profile %d becomes profile %d", x.On, p.Version)
		}
		if x.Made = true; x.back != "" {
			f.avoid(x.back, x.At+f.Avoids)
		}
	}
	return nil
}
