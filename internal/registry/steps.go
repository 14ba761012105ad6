package registry

import (
	"github.com/braidlog/braid/protocol"
)

// Steps are the changes of a log that make a [Switching], one after the other.
type Steps struct {
	Tune *protocol.Profile // it replaces the profile of the switch; nil: no setting is changed so
	// Instances is from how many instances the log is merged then; 0: it stays as it is.
	Instances int
	Seal      *protocol.Seal // nil: the log is not sealed
}

// Steps returns how a switch is made of the profile, and the number of instances, on which it was computed. since is
// the time, in Unix milliseconds. Each step names the version that it replaces, so after any other change the rest has
// no effect. The error is a [*setting.Error].
func (c *Choice) Steps(p *protocol.Profile, instances int, s *Switching, since int64) (does Steps, err error) {
	if s.Seal != nil {
		seal := *s.Seal
		seal.Profile.Since, does.Seal = since, &seal
	}
	if len(s.Tune) == 0 {
		return does, nil
	}
	of := c.Of(p)
	values, n, err := of.Tune(p.Values, s.Tune)
	if err != nil {
		return Steps{}, err
	}
	if values != p.Values {
		next := p.Next(values, since)
		does.Tune = &next
	}
	if n > 0 && n != instances {
		does.Instances = n
	}
	return does, nil
}
