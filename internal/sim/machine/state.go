package machine

import (
	"bufio"
	"cmp"
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/braidlog/braid/internal/check"
	"github.com/braidlog/braid/internal/member"
	"github.com/braidlog/braid/protocol"
)

// State is a view of a state machine's state. It does not change.
type State struct {
	Birth  string // the initial state; "": an empty one
	Damage error  // the reason why it cannot be used; nil: it can

	commands, chain uint64
	position        protocol.Position
	values          map[string]Value
	bodies          map[int]protocol.BodyRef
	cursor          check.Cursor
}

// Born returns the initial state of a cluster with this name, which is empty otherwise.
func Born(birth string) *State {
	return &State{Birth: birth, values: map[string]Value{}, bodies: map[int]protocol.BodyRef{}}
}

// Freeze returns a view of the state.
func (s *Machine) Freeze() *State {
	return &State{commands: s.commands, chain: s.chain, position: s.position, values: maps.Clone(s.values),
		bodies: maps.Clone(s.bodies), cursor: s.cursor, Birth: s.birth, Damage: s.damage}
}

// Snapshot implements member.StateMachine.
func (s *Machine) Snapshot() (member.Snapshot, error) {
	if s.damage != nil {
		return nil, s.damage
	}
	return s.Freeze(), nil
}

// WriteTo implements member.Snapshot.
func (f *State) WriteTo(_ context.Context, w io.Writer) error {
	if _, err := fmt.Fprintf(w, "%d %d %d %d%s\n", f.commands, f.chain, f.position, len(f.bodies),
		f.birthField()); err != nil {
		return err
	}
	for _, n := range slices.Sorted(maps.Keys(f.bodies)) {
		r := f.bodies[n]
		if _, err := fmt.Fprintf(w, "%d %s %d %d %d %d\n", n, place(r), r.Term, r.K, r.Size, r.Digest); err != nil {
			return err
		}
	}
	for _, k := range slices.Sorted(maps.Keys(f.values)) {
		v := f.values[k]
		if _, err := fmt.Fprintf(w, "%s %s %t %s\n", k, v.place(), v.Found, v.Text); err != nil {
			return err
		}
	}
	return nil
}

// Close implements member.Snapshot.
func (f *State) Close() error { return nil }

// Restore implements member.StateMachine.
func (s *Machine) Restore(r io.Reader) error {
	in := bufio.NewReader(r)
	bodies := 0
	head, err := in.ReadString('\n')
	if err == nil {
		_, err = fmt.Sscan(head, &s.commands, &s.chain, &s.position, &bodies)
	}
	if err != nil {
		return fmt.Errorf("state: %w", err)
	}
	if f := strings.Fields(head); len(f) > 4 {
		s.birth = f[4]
	}
	if err := s.restoreBodies(in, bodies); err != nil {
		return err
	}
	s.values = map[string]Value{}
	for {
		line, err := in.ReadString('\n')
		if err == io.EOF && line == "" {
			break
		}
		if err != nil {
			return fmt.Errorf("state: %w", err)
		}
		var k, place string
		var v Value
		if _, err := fmt.Sscanf(line, "%s %s %t", &k, &place, &v.Found); err != nil {
			return fmt.Errorf("state: %q: %w", line, err)
		}
		version, chain, _ := strings.Cut(place, "/")
		if _, err := fmt.Sscan(version+" "+cmp.Or(chain, "0"), &v.Version, &v.chain); err != nil {
			return fmt.Errorf("state: %q: %w", line, err)
		}
		v.Text = strings.TrimSuffix(strings.SplitN(line, " ", 4)[3], "\n")
		s.values[k] = v
	}
	cursor, err := check.Cursor{}, s.placeKeys()
	if !s.c.Orders.ByKey {
		cursor, err = s.sequence.Restore(uint64(s.c.Member), s.commands, s.chain)
	}
	if err != nil {
		s.c.Violate(err)
		return err
	}
	s.cursor, s.damage = cursor, nil
	if s.Durable() {
		s.c.Save(s.Freeze())
	}
	return nil
}

// place formats the position of a body's entry. It names the instance unless that is the first.
func place(r protocol.BodyRef) string {
	if r.Instance == protocol.FirstInstance {
		return fmt.Sprint(r.Index)
	}
	return fmt.Sprintf("%d@%d", r.Index, r.Instance)
}

func parsePlace(text string, r *protocol.BodyRef) error {
	if _, err := fmt.Sscanf(text, "%d@%d", &r.Index, &r.Instance); err == nil {
		return nil
	}
	r.Instance = protocol.FirstInstance
	_, err := fmt.Sscan(text, &r.Index)
	return err
}

func (s *Machine) restoreBodies(in io.Reader, count int) error {
	s.bodies = make(map[int]protocol.BodyRef, count)
	for range count {
		n, at, r := 0, "", protocol.BodyRef{}
		_, err := fmt.Fscanf(in, "%d %s %d %d %d %d\n", &n, &at, &r.Term, &r.K, &r.Size, &r.Digest)
		if err == nil {
			err = parsePlace(at, &r)
		}
		if err != nil {
			return fmt.Errorf("state: body: %w", err)
		}
		s.bodies[n] = r
	}
	return nil
}

// birthField returns the birth as it is in the head of a state.
func (f *State) birthField() string {
	if f.Birth == "" {
		return ""
	}
	return " " + f.Birth
}
