package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/braidlog/braid/internal/registry"
	"github.com/braidlog/braid/internal/status"
)

// showWaits is the interval at which a change that takes longer says for what it waits, and how long a member has for
// its answer: it looks for a leader for two seconds.
const (
	showWaits  = time.Second
	waitAnswer = 3 * time.Second
)

// waiting runs the change of a command, and says meanwhile on standard error for what it waits. instances: see
// changeWaits.
func (f *adminFlags) waiting(cmd *cobra.Command, instances int, change func() error) error {
	return f.telling(cmd, change, func(members []status.Member) string {
		return "waits for " + changeWaits(members, instances)
	})
}

// telling runs the change of a command, and says meanwhile on standard error what is under way, as the members' states
// show it.
func (f *adminFlags) telling(cmd *cobra.Command, change func() error, what func([]status.Member) string) error {
	o := status.Options{Endpoints: f.endpoints, Timeout: waitAnswer}
	o.User, o.Password, _ = strings.Cut(f.user, ":")
	var err error
	if o.TLS, err = clientTLS(&f.tls); err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(cmd.Context())
	every, done := time.NewTicker(showWaits), make(chan struct{})
	defer every.Stop()
	go func() {
		defer close(done)
		tellWaits(ctx, every.C, cmd.ErrOrStderr(), cmd.CommandPath(), func() string {
			return what(status.Ask(ctx, o))
		})
	}()
	err = change()
	cancel()
	<-done
	return err
}

// tellWaits writes a line of a command each time that it finds something else under way.
func tellWaits(ctx context.Context, every <-chan time.Time, w io.Writer, command string, find func() string) {
	for last := ""; ; {
		select {
		case <-ctx.Done():
			return
		case <-every:
		}
		if why := find(); ctx.Err() == nil && why != last {
			fmt.Fprintf(w, "%s: %s\n", command, why)
			last = why
		}
	}
}

// changeWaits is what a change of settings waits for, as far as the members' states show it. instances is how many
// instances there are to be; 0: as many as there are.
func changeWaits(members []status.Member, instances int) string {
	answer := slices.DeleteFunc(slices.Clone(members), func(m status.Member) bool { return len(m.Instances) == 0 })
	if len(answer) == 0 {
		return "a member that answers"
	}
	if !slices.ContainsFunc(answer, func(m status.Member) bool { return m.Instances[0].Leader != "" }) {
		return "a leader"
	}
	newest := slices.MaxFunc(answer, func(a, b status.Member) int { return cmp.Compare(a.Profile, b.Profile) }).Profile
	var behind, grow []string
	for _, m := range answer {
		name := cmp.Or(m.Name, m.ID)
		if l := m.Instances[0].Lanes; l != nil && l.Fence {
			return "a fence: members replicate first what lanes have accepted"
		}
		if m.Profile < newest {
			behind = append(behind, name)
		}
		if instances > 0 && len(m.Instances) != instances {
			grow = append(grow, name)
		}
	}
	switch {
	case len(behind) > 0:
		return fmt.Sprintf("%s to apply profile %d", registry.List(behind), newest)
	case len(grow) > 0:
		return fmt.Sprintf("%s to have %d instances", registry.List(grow), instances)
	}
	for _, m := range answer {
		for _, i := range m.Instances {
			if i.Leader == "" {
				return fmt.Sprintf("a leader of instance %d", i.Instance)
			}
		}
	}
	if away := len(members) - len(answer); away > 0 {
		return fmt.Sprintf("the leader; %d of %d members do not answer", away, len(members))
	}
	return "the leader"
}
