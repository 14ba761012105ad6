package braid

import (
	"context"

	"github.com/braidlog/braid/internal/fit"
	"github.com/braidlog/braid/internal/replica"
	"github.com/braidlog/braid/protocol"
)

// fitting is how the log is fitted to its load; nil: it is not.
func (c *config) fitting() *replica.Fitting {
	if !c.fits() {
		return nil
	}
	x := &c.Experiment
	return &replica.Fitting{
		Fitter: func() *fit.Fitter {
			return &fit.Fitter{Patience: fit.Patience{Lasts: x.FitLasts, Waits: x.FitWaits, Avoids: x.FitAvoids}}
		},
		Protocol: func(p *protocol.Profile, instances int) string { return c.choice.At(p, instances).Name },
		Act: func(ctx context.Context, r *replica.Replica, w *fit.Wish) error {
			n := &Node{r: r, opt: c}
			return n.fulfil(ctx, w)
		},
	}
}

// fulfil makes the change that the fitter wishes for, and then has the wished member lead. The errors are those of
// Switch and TransferLeader. After an error of TransferLeader the profile is changed.
func (n *Node) fulfil(ctx context.Context, w *fit.Wish) error {
	_, err := n.Switch(ctx, Switch{Protocol: w.Protocol, Settings: w.Settings, Version: w.Version})
	if now := n.r.Status(); err != nil || w.Leader == 0 || now.Lead.Leader == w.Leader {
		return err
	}
	return n.r.TransferLeader(ctx, w.Leader)
}
