package formatmodel

import (
	"fmt"
	"testing"

	"github.com/braidlog/braid/internal/explore"
	"github.com/braidlog/braid/internal/testsize"
)

const limit = 40_000_000

const (
	wrongReceived = "a program receives an entry that it does not know"
	wrongOpened   = "a program opens a directory with an entry that it does not know"
)

func judge(s *state) string {
	switch {
	case s.received:
		return wrongReceived
	case s.opened:
		return wrongOpened
	}
	return ""
}

func (c *model) space(judge func(*state) string) explore.Space[state, step] {
	return explore.Space[state, step]{Beginning: c.beginning(), Each: c.each, Describe: describe, Judge: judge,
		Mirror: mirror, Show: func(s *state) string { return fmt.Sprintf("%+v", *s) }}
}

// mirror exchanges members 1 and 2.
func mirror(s *state) state {
	n := *s
	n.m[1], n.m[2] = n.m[2], n.m[1]
	n.links[1], n.links[2] = n.links[2], n.links[1]
	return n
}

// The rules hold.
func TestRulesHold(t *testing.T) {
	for _, c := range []model{{restarts: 1}, {elections: 1}, {restarts: 2}, {elections: 1, restarts: 1}} {
		t.Run(fmt.Sprintf("%d elections, %d restarts", c.elections, c.restarts), func(t *testing.T) {
			if c.elections > 0 && c.restarts > 0 {
				testsize.Only(t, testsize.Models)
			}
			explore.Run(t, c.space(judge), limit, "")
		})
	}
}

// All members may come to write the later format, and data is in it.
func TestTheFormatIsRaised(t *testing.T) {
	const done = "all members have data in the later format"
	c := model{}
	explore.Run(t, c.space(func(s *state) string {
		for i := range s.m {
			if l := &s.m[i].logs[0]; l.last < slots || l.log[1].kind() != fresh {
				return judge(s)
			}
		}
		return done
	}), limit, done)
}

// Each rule is needed.
func TestVariants(t *testing.T) {
	for _, v := range []struct {
		name string
		c    model
		want string
	}{
		{"unproven", model{unproven: true, keepsUnknown: true}, wrongReceived},
		{"links with programs that know it stay", model{keepsLinks: true}, wrongOpened},
		{"recorded when it is applied", model{whenApplied: true}, wrongOpened},
	} {
		t.Run(v.name, func(t *testing.T) {
			v.c.elections, v.c.restarts = 1, 1
			explore.Run(t, v.c.space(judge), limit, v.want)
		})
	}
}
