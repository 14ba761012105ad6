package paper

import (
	"context"
	"encoding/binary"
	"io"

	"github.com/braidlog/braid"
	"github.com/braidlog/braid/bench"
)

// With multi-raft and wpaxos each command belongs to the group of its key, and with epaxos it is ordered with the
// others of its key. With multi-raft the clients are at all members, as with the other contestants, so most commands
// are forwarded to their group's leader.

// keysOf returns the key that a command touches, unless its options name some.
func keysOf(command []byte, o braid.ProposeOptions) braid.ProposeOptions {
	if len(o.Keys) > 0 {
		return braid.ProposeOptions{Keys: o.Keys}
	}
	return braid.ProposeOptions{Keys: []uint64{keyIn(command)}}
}

// keyIn returns the key of a command: the one after its number, or else a unique one.
func keyIn(command []byte) uint64 {
	if len(command) >= 2*numberBytes {
		if key := binary.LittleEndian.Uint64(command[numberBytes:]); key != 0 {
			return key
		}
	}
	return bench.KeyOf(binary.LittleEndian.Uint64(command))
}

// keyed is a node whose commands have the key that they touch. Protocols with keys support no other options.
type keyed struct{ *braid.Node }

// ProposeWithAsync implements [proposer], as the other methods implement [node].
func (n keyed) ProposeWithAsync(command, body []byte, o braid.ProposeOptions, done func(any, error)) error {
	return n.Node.ProposeWithAsync(command, body, keysOf(command, o), done)
}

func (n keyed) ProposeWith(ctx context.Context, command, body []byte, o braid.ProposeOptions) (any, error) {
	return n.Node.ProposeWith(ctx, command, body, keysOf(command, o))
}

func (n keyed) Propose(ctx context.Context, command []byte) (any, error) {
	return n.Node.ProposeWith(ctx, command, nil, keysOf(command, braid.ProposeOptions{}))
}

// open opens a member with this state machine, or with a part of it for each group.
func (m *machine) open(o braid.Options, s Setup) (*braid.Node, error) {
	if s.byKey() {
		m.m.ByKey(keyIn)
	}
	if s.groups() == 0 {
		return braid.Open(o, m)
	}
	parts := m.m.Split(s.groups())
	sm, err := braid.NewGroups(s.groups(), func(group int) braid.StateMachine { return &part{m, parts[group]} })
	if err != nil {
		return nil, err
	}
	return braid.Open(o, sm)
}

// part is one group's part of a state machine. The groups share price, store and bell.
type part struct {
	whole *machine
	m     *bench.Machine
}

// Apply implements [braid.StateMachine].
func (p *part) Apply(commands []braid.Command) error {
	err := p.m.Apply(commands)
	p.whole.count(commands)
	return err
}

// Snapshot implements [braid.StateMachine]. Values are not part of it: no experiment reads them with groups.
func (p *part) Snapshot() (braid.Snapshot, error) { return p.m.Snapshot() }

// Restore implements [braid.StateMachine].
func (p *part) Restore(r io.Reader) error {
	err := p.m.Restore(r)
	p.whole.mu.Lock()
	defer p.whole.mu.Unlock()
	p.whole.applied, _ = p.whole.m.Digest()
	return err
}
