package sim

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/braidlog/braid/internal/check"
	"github.com/braidlog/braid/internal/member"
	"github.com/braidlog/braid/protocol"
)

// stateMachine is the state machine of a simulated member: a few keys with text values. The judges
// compare every command that it applies with what the others applied. A value that was written as a
// body appears in the text as a token, and in bodies as its reference.
type stateMachine struct {
	w      *World
	member *Member

	values map[string]value
	bodies map[int]protocol.BodyRef // by the number of the command that wrote it
	// commands and chain stand for everything that was applied. They are part of the state.
	commands, chain uint64
	position        protocol.Position
	cursor          check.Cursor
	cursors         map[string]*check.Cursor // of each key, where each has its own order
	// group is whose commands it applies; 0: all. sequence judges them.
	group    protocol.InstanceID
	sequence *check.Sequence
	// durable: the state machine keeps its state on disk by itself, in Member.saved.
	durable bool
	// birth names the state with which it began; "": an empty one.
	birth string
	// damage is why the state cannot be used.
	damage error
}

func newMachine(m *Member, group protocol.InstanceID) *stateMachine {
	s := &stateMachine{w: m.w, member: m, group: group, sequence: m.w.sequenceOf(group), values: map[string]value{}, bodies: map[int]protocol.BodyRef{}, durable: m.w.set.Durable}
	if f := m.saved; f != nil {
		s.commands, s.chain, s.position, s.cursor, s.damage = f.commands, f.chain, f.position, f.cursor, f.damage
		s.values, s.bodies, s.birth = maps.Clone(f.values), maps.Clone(f.bodies), f.birth
		m.w.Violate(m.id, s.placeKeys())
	}
	return s
}

// LiveBodies implements body.BodyKeeper.
func (s *stateMachine) LiveBodies(yield func(protocol.BodyRef)) error {
	for _, number := range slices.Sorted(maps.Keys(s.bodies)) {
		yield(s.bodies[number])
	}
	return nil
}

// refers reports whether a body is part of some value.
func (s *stateMachine) refers(ref protocol.BodyRef) bool {
	for _, r := range s.bodies {
		if r == ref {
			return true
		}
	}
	return false
}

// token stands in a value for the body that this command wrote.
func token(number int) string { return fmt.Sprintf("<%d>", number) }

// tokens returns the numbers of the bodies in a value.
func tokens(text string) (numbers []int) {
	for part := range strings.SplitSeq(text, "<") {
		if digits, _, found := strings.Cut(part, ">"); found {
			n, err := strconv.Atoi(digits)
			if err != nil {
				panic(err) // only token writes them
			}
			numbers = append(numbers, n)
		}
	}
	return numbers
}

// asStateMachine is the state machine as package member sees it.
func (s *stateMachine) asStateMachine() member.StateMachine {
	if s.durable {
		return durableMachine{s}
	}
	return s
}

// durableMachine is a state machine that keeps its state on disk by itself.
type durableMachine struct{ *stateMachine }

// Applied implements member.DurableStateMachine.
func (d durableMachine) Applied() protocol.Position { return d.position + d.member.astray }

// Sync implements member.DurableStateMachine.
func (d durableMachine) Sync() error {
	if d.damage != nil {
		return d.damage
	}
	d.member.saved = d.freeze()
	return nil
}

// command is an operation as it stands in the log: number, kind, key, value and expected value,
// separated by spaces. After a bar come bytes that only make it longer.
func command(number int, op check.Operation, padding int) []byte {
	b := fmt.Appendf(nil, "%d %d %s %s %s|", number, op.Kind, op.Key, op.Value, op.Expect)
	for range padding {
		b = append(b, '.')
	}
	return b
}

func parseCommand(b []byte) (number int, op check.Operation, err error) {
	text, _, _ := bytes.Cut(b, []byte{'|'})
	f := strings.Split(string(text), " ")
	if len(f) != 5 {
		return 0, op, fmt.Errorf("command %q: %d fields", b, len(f))
	}
	number, err = strconv.Atoi(f[0])
	if err != nil {
		return 0, op, err
	}
	kind, err := strconv.Atoi(f[1])
	return number, check.Operation{Kind: check.Kind(kind), Key: f[2], Value: f[3], Expect: f[4]}, err
}

// Apply implements member.StateMachine.
func (s *stateMachine) Apply(commands []member.Command) error {
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

func (s *stateMachine) apply(c *member.Command) error {
	number, op, err := parseCommand(c.Data)
	if err != nil {
		s.w.Violate(s.member.id, err)
		return err
	}
	text := string(c.Data[:bytes.IndexByte(c.Data, '|')])
	sequence, cursor, place := s.at(op.Key, c.Position)
	err = sequence.Apply(uint64(s.member.id), cursor, uint64(place), text)
	if err == nil && c.Position <= s.position {
		err = fmt.Errorf("member %s applied position %d after %d", s.member.id, c.Position, s.position)
	}
	err = errors.Join(err, s.judgeGroup(op.Key), s.judgeBirth())
	if err != nil {
		s.w.Violate(s.member.id, err)
		return err
	}
	s.commands++
	s.chain = check.Chain(s.chain, text)
	s.position = c.Position
	if c.Body != nil {
		s.bodies[number] = *c.Body
	}
	c.Result = s.execute(number, &op, text)
	s.w.applied(number, place, c.Result.(answer))
	if s.w.Tracing() {
		s.w.Tracef("%s   applies %d: %s", s.member.id, c.Position, text)
	}
	return nil
}

// value is the state of one key. See check.Operation for the version.
type value struct {
	text    string
	found   bool
	version uint64
	chain   uint64 // of all its commands, where each key has its own order
}

// place is the value's version, and the chain if there is one.
func (v *value) place() string {
	if v.chain == 0 {
		return strconv.FormatUint(v.version, 10)
	}
	return fmt.Sprintf("%d/%d", v.version, v.chain)
}

// answer is the result of a command: whether it was done (a Swap may not be), and the key's
// version.
type answer struct {
	done    bool
	version uint64
}

func (s *stateMachine) execute(number int, op *check.Operation, command string) answer {
	v := s.values[op.Key]
	before := v.text
	v.version++
	if s.w.set.byKey() {
		v.chain = check.Chain(v.chain, command)
	}
	done := true
	switch op.Kind {
	case check.Put:
		v.text, v.found = op.Value, true
	case check.Append:
		v.text, v.found = v.text+op.Value, true
	case check.Delete:
		v.text, v.found = "", false
	case check.Swap:
		if done = v.found && v.text == op.Expect; done {
			v.text = op.Value
		}
	}
	s.values[op.Key] = v
	for _, n := range append(tokens(before), number) {
		if ref, ok := s.bodies[n]; ok && !strings.Contains(v.text, token(n)) {
			delete(s.bodies, n)
			s.member.dropped(s.position, ref)
		}
	}
	return answer{done, v.version}
}

// frozen is a view of the state.
type frozen struct {
	commands, chain uint64
	position        protocol.Position
	values          map[string]value
	bodies          map[int]protocol.BodyRef
	cursor          check.Cursor
	birth           string
	damage          error
}

func (s *stateMachine) freeze() *frozen {
	return &frozen{commands: s.commands, chain: s.chain, position: s.position, values: maps.Clone(s.values),
		bodies: maps.Clone(s.bodies), cursor: s.cursor, birth: s.birth, damage: s.damage}
}

// Snapshot implements member.StateMachine.
func (s *stateMachine) Snapshot() (member.Snapshot, error) {
	if s.damage != nil {
		return nil, s.damage
	}
	return s.freeze(), nil
}

// WriteTo implements member.Snapshot.
func (f *frozen) WriteTo(_ context.Context, w io.Writer) error {
	if _, err := fmt.Fprintf(w, "%d %d %d %d%s\n", f.commands, f.chain, f.position, len(f.bodies), f.birthField()); err != nil {
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
		if _, err := fmt.Fprintf(w, "%s %s %t %s\n", k, v.place(), v.found, v.text); err != nil {
			return err
		}
	}
	return nil
}

// Close implements member.Snapshot.
func (f *frozen) Close() error { return nil }

// Restore implements member.StateMachine.
func (s *stateMachine) Restore(r io.Reader) error {
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
	s.values = map[string]value{}
	for {
		line, err := in.ReadString('\n')
		if err == io.EOF && line == "" {
			break
		}
		if err != nil {
			return fmt.Errorf("state: %w", err)
		}
		var k, place string
		var v value
		if _, err := fmt.Sscanf(line, "%s %s %t", &k, &place, &v.found); err != nil {
			return fmt.Errorf("state: %q: %w", line, err)
		}
		version, chain, _ := strings.Cut(place, "/")
		if _, err := fmt.Sscan(version+" "+cmp.Or(chain, "0"), &v.version, &v.chain); err != nil {
			return fmt.Errorf("state: %q: %w", line, err)
		}
		v.text = strings.TrimSuffix(strings.SplitN(line, " ", 4)[3], "\n")
		s.values[k] = v
	}
	cursor, err := check.Cursor{}, s.placeKeys()
	if !s.w.set.byKey() {
		cursor, err = s.sequence.Restore(uint64(s.member.id), s.commands, s.chain)
	}
	if err != nil {
		s.w.Violate(s.member.id, err)
		return err
	}
	s.cursor, s.damage = cursor, nil
	if s.durable {
		s.member.saved = s.freeze()
	}
	return nil
}

// place writes where a body's entry is. It names the instance unless that is the first.
func place(r protocol.BodyRef) string {
	if r.Instance == firstInstance {
		return fmt.Sprint(r.Index)
	}
	return fmt.Sprintf("%d@%d", r.Index, r.Instance)
}

func parsePlace(text string, r *protocol.BodyRef) error {
	if _, err := fmt.Sscanf(text, "%d@%d", &r.Index, &r.Instance); err == nil {
		return nil
	}
	r.Instance = firstInstance
	_, err := fmt.Sscan(text, &r.Index)
	return err
}

func (s *stateMachine) restoreBodies(in io.Reader, count int) error {
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
