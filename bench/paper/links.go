package paper

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/braidlog/braid"
	"github.com/braidlog/braid/bench"
)

// arrange configures a running cluster for some work: its links, and its leader.
func (t *braidTarget) arrange(ctx context.Context, w *Work) (*member, error) {
	before := t.net
	if err := t.emulate(w.Net); err != nil {
		return nil, err
	}
	if t.net != before {
		if err := errors.Join(t.reconnect(ctx), t.converge(ctx)); err != nil {
			return nil, err
		}
	}
	leader, err := t.awaitLeader(ctx)
	if err != nil || w.Leader == 0 || leader == t.members[w.Leader-1] {
		return leader, err
	}
	return t.handOver(ctx, t.members[w.Leader-1])
}

// handOver makes a member the leader. A transfer may fail, as one soon after an election does; so it is repeated.
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

// transferTimeout bounds one transfer of the leadership.
const transferTimeout = time.Second

// reconnect has each member propose a command, and a blind one. Messages in progress on links that change are lost,
// and are sent again only after some time; no run should begin with that.
func (t *braidTarget) reconnect(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	errs := make([]error, len(t.members))
	var members sync.WaitGroup
	for i, m := range t.members {
		if m.node == nil {
			continue
		}
		first := t.sent
		t.sent, t.applied = t.sent+2, t.applied+2
		members.Go(func() {
			for k, blind := range []bool{false, true} {
				command := binary.LittleEndian.AppendUint64(nil, first+uint64(k))
				_, err := m.node.ProposeWith(ctx, command, nil, braid.ProposeOptions{Blind: blind})
				errs[i] = errors.Join(errs[i], err)
			}
		})
	}
	members.Wait()
	return errors.Join(errs...)
}

// emulate changes the emulation of all links, back to the setup's if the work has none. Stopped members restart with
// the same.
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
		m.options.Experiment.Net = spec
		if m.node != nil {
			errs = append(errs, m.node.SetNet(spec))
		}
	}
	t.net = net
	return errors.Join(errs...)
}
