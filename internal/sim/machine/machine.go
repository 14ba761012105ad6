package machine

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/braidlog/braid/internal/check"
	"github.com/braidlog/braid/internal/member"
	"github.com/braidlog/braid/protocol"
)

// Config connects a state machine to the run.
type Config struct {
	Member protocol.MemberID
	Group  protocol.InstanceID // whose commands it applies; 0: all
	Orders *Orders             // of the run
	Birth  string              // the cluster's initial state; "": an empty one
	Begin  *State              // the state on disk; nil: there is none
	Ahead  protocol.Position   // the positions by which it claims to be ahead of what it has applied

	// Save stores a state on disk; nil: the state machine has no state there.
	Save func(*State)
	// Applied is called after each command, with its place in its order and its result.
	Applied func(number int, place protocol.Position, result Answer)
	// Dropped is called when the last reference to a body is gone, with the position of the command that removed it.
	Dropped func(at protocol.Position, ref protocol.BodyRef)
	// Violate is called with each violation.
	Violate func(error)
	// Trace, if set, is called with a line for each command.
	Trace func(format string, args ...any)
}

// Machine is the state machine of a simulated member: a few keys with text values. Each command that it applies is
// compared with the commands of other members. A value that was written as a body appears in the text as a token, and
// in bodies as its reference.
type Machine struct {
	c Config

	values map[string]Value
	bodies map[int]protocol.BodyRef // by the number of the command that wrote it
	// commands and chain represent all applied commands. They are part of the state.
	commands, chain uint64
	position        protocol.Position
	cursor          check.Cursor
	cursors         map[string]*check.Cursor // of each key, where each has its own order
	sequence        *check.Sequence          // of the group
	// birth names the initial state; "": an empty one.
	birth string
	// damage is the reason why the state cannot be used.
	damage error
}

// New returns a state machine with the state on disk, or an empty one.
func New(c Config) *Machine {
	s := &Machine{c: c, sequence: c.Orders.Sequence(c.Group), values: map[string]Value{},
		bodies: map[int]protocol.BodyRef{}}
	if f := c.Begin; f != nil {
		s.commands, s.chain, s.position, s.cursor, s.damage = f.commands, f.chain, f.position, f.cursor, f.Damage
		s.values, s.bodies, s.birth = maps.Clone(f.values), maps.Clone(f.bodies), f.Birth
		c.Violate(s.placeKeys())
	}
	return s
}

// Value returns the state of a key.
func (s *Machine) Value(key string) Value { return s.values[key] }

// Position returns the position of the last command.
func (s *Machine) Position() protocol.Position { return s.position }

// Damage returns the reason why the state cannot be used; nil: it can.
func (s *Machine) Damage() error { return s.damage }

// Chain returns a digest of all applied commands, in their order.
func (s *Machine) Chain() uint64 { return s.chain }

// Durable reports whether the state machine keeps its own state on disk.
func (s *Machine) Durable() bool { return s.c.Save != nil }

var errSpoilt = errors.New("a key is not what was written")

// Spoil damages the state, in memory and on disk.
func (s *Machine) Spoil() {
	for k, v := range s.values {
		v.Text += "spoilt"
		s.values[k] = v
	}
	s.damage, s.position = errSpoilt, 1<<40
	s.c.Save(s.Freeze())
}

// Body returns the reference of the body that a command wrote. It returns false if no value references it.
func (s *Machine) Body(number int) (protocol.BodyRef, bool) {
	ref, ok := s.bodies[number]
	return ref, ok
}

// Bodies returns the number of bodies that the state references.
func (s *Machine) Bodies() int { return len(s.bodies) }

// LiveBodies implements body.BodyKeeper.
func (s *Machine) LiveBodies(yield func(protocol.BodyRef)) error {
	for _, number := range slices.Sorted(maps.Keys(s.bodies)) {
		yield(s.bodies[number])
	}
	return nil
}

// Refers reports whether a body is part of some value.
func (s *Machine) Refers(ref protocol.BodyRef) bool {
	for _, r := range s.bodies {
		if r == ref {
			return true
		}
	}
	return false
}

// Apply implements member.StateMachine.
func (s *Machine) Apply(commands []member.Command) error {
	if s.damage != nil {
		return s.damage
	}
	for i := range commands {
		if err := s.apply(&commands[i]); err != nil {
			return err
		}
	}
	return nil
}

func (s *Machine) apply(c *member.Command) error {
	number, op, err := ParseCommand(c.Data)
	if err != nil {
		s.c.Violate(err)
		return err
	}
	text := string(c.Data[:bytes.IndexByte(c.Data, '|')])
	sequence, cursor, place := s.at(op.Key, c.Position)
	err = sequence.Apply(uint64(s.c.Member), cursor, uint64(place), text)
	if err == nil && c.Position <= s.position {
		err = fmt.Errorf("member %s applied position %d after %d", s.c.Member, c.Position, s.position)
	}
	err = errors.Join(err, s.judgeGroup(op.Key), s.judgeBirth())
	if err != nil {
		s.c.Violate(err)
		return err
	}
	s.commands++
	s.chain = check.Chain(s.chain, text)
	s.position = c.Position
	if c.Body != nil {
		s.bodies[number] = *c.Body
	}
	c.Result = s.execute(number, &op, text)
	s.c.Applied(number, place, c.Result.(Answer))
	if s.c.Trace != nil {
		s.c.Trace("%s   applies %d: %s", s.c.Member, c.Position, text)
	}
	return nil
}

// Value is the state of one key. See check.Operation for the version.
type Value struct {
	Text    string
	Found   bool
	Version uint64
	chain   uint64 // of all its commands, where each key has its own order
}

// place returns the value's version, and the chain if there is one.
func (v *Value) place() string {
	if v.chain == 0 {
		return strconv.FormatUint(v.Version, 10)
	}
	return fmt.Sprintf("%d/%d", v.Version, v.chain)
}

// Answer is the result of a command: whether it was executed (a Swap may not be), and the key's version.
type Answer struct {
	Done    bool
	Version uint64
}

func (s *Machine) execute(number int, op *check.Operation, command string) Answer {
	v := s.values[op.Key]
	before := v.Text
	v.Version++
	if s.c.Orders.ByKey {
		v.chain = check.Chain(v.chain, command)
	}
	done := true
	switch op.Kind {
	case check.Put:
		v.Text, v.Found = op.Value, true
	case check.Append:
		v.Text, v.Found = v.Text+op.Value, true
	case check.Delete:
		v.Text, v.Found = "", false
	case check.Swap:
		if done = v.Found && v.Text == op.Expect; done {
			v.Text = op.Value
		}
	}
	s.values[op.Key] = v
	for _, n := range append(Tokens(before), number) {
		if ref, ok := s.bodies[n]; ok && !strings.Contains(v.Text, Token(n)) {
			delete(s.bodies, n)
			s.c.Dropped(s.position, ref)
		}
	}
	return Answer{done, v.Version}
}

// judgeBirth checks that the initial state is that of the cluster.
func (s *Machine) judgeBirth() error {
	if s.birth != s.c.Birth {
		return fmt.Errorf("member %s applies to a state that began with %q; the cluster began with %q", s.c.Member, s.birth,
			s.c.Birth)
	}
	return nil
}

// judgeGroup checks that a command is applied in the group of its key.
func (s *Machine) judgeGroup(key string) error {
	if want := s.c.Orders.GroupOf(key); want != s.c.Group {
		return fmt.Errorf("a command of key %s is applied in group %d; its group is %d", key, s.c.Group, want)
	}
	return nil
}
