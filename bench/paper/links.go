package paper

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/braidlog/braid/bench"
)

// arrange makes a cluster that lives as some work wants it: its links, and who leads.
func (t *braidTarget) arrange(ctx context.Context, w *Work) (*member, error) {
	if err := t.emulate(w.Net); err != nil {
		return nil, err
	}
	leader, err := t.awaitLeader(ctx)
	if err != nil || w.Leader == 0 || leader == t.members[w.Leader-1] {
		return leader, err
	}
	return t.handOver(ctx, t.members[w.Leader-1])
}

// handOver makes a member the leader. A transfer may come to nothing, as one soon after an election
// does; so it is asked for again.
func (t *braidTarget) handOver(ctx context.Context, wanted *member) (*member, error) {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	for {
		leader, err := t.awaitLeader(ctx)
		if err != nil || leader == wanted {
			return leader, err
		}
		attempt, cancel := context.WithTimeout(ctx, transferTimeout)
		err = leader.node.TransferLeader(attempt, wanted.options.Self)
		cancel()
		if ctx.Err() != nil {
			return nil, fmt.Errorf("handing over to %s: %w", wanted.options.Self, err)
		}
	}
}

// transferTimeout is how long one transfer of the leadership may take.
const transferTimeout = time.Second

// emulate changes what all links do, back to the setup's where work says nothing. Members that are
// stopped come back with the same.
func (t *braidTarget) emulate(net string) error {
	if net == "" {
		net = t.setup.Net
	}
	if net == t.net {
		return nil
	}
	spec, err := bench.CardsNet(net, t.setup.Cards)
	if err != nil {
		return err
	}
	var errs []error
	for _, m := range t.members {
		m.options.Net = spec
		if m.node != nil {
			errs = append(errs, m.node.SetNet(spec))
		}
	}
	t.net = net
	return errors.Join(errs...)
}
