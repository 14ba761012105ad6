package members

import (
	"fmt"
	"slices"

	"github.com/braidlog/braid/internal/protocol/raft/raftlog"
	"github.com/braidlog/braid/protocol"
)

// Check verifies that the configurations are the base's and exactly those in the log.
func (c *Configs) Check(log *raftlog.Log) error {
	if c.all[0].index > log.Base {
		return fmt.Errorf("oldest config at %d, base %d", c.all[0].index, log.Base)
	}
	for i, o := range c.all[1:] {
		if o.index <= c.all[i].index || o.index <= log.Base || o.index > log.Last {
			return fmt.Errorf("config at %d: after %d, log %d to %d", o.index, c.all[i].index, log.Base, log.Last)
		}
		err := log.Each(o.index, o.index, func(e *protocol.Entry) error {
			if e.Kind != protocol.EntryConfig || !e.Resident() {
				return fmt.Errorf("config at %d: is a %s there, or its payload is gone", o.index, e.Kind)
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	last := &c.all[len(c.all)-1]
	if c.Config != &last.config || c.At != last.index {
		return fmt.Errorf("config of %d is active, the last is of %d", c.At, last.index)
	}
	err := log.Newest(func(e *protocol.Entry) error {
		if e.Kind == protocol.EntryConfig && !slices.ContainsFunc(c.all, func(o config) bool { return o.index == e.Index }) {
			return fmt.Errorf("config at %d is not known", e.Index)
		}
		return nil
	})
	if err != nil {
		return err
	}
	if len(c.Config.Members) > 0 {
		return c.Config.Validate()
	}
	return nil
}
