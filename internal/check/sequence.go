package check

import "fmt"

// Sequence judges state machine safety: all members apply the same commands at the same
// positions, and no command twice. Positions may have gaps; the gaps agree too.
//
// It keeps the whole sequence in memory: it is for bounded runs.
type Sequence struct {
	steps []applied
	seen  map[string]uint64 // command → position
}

// applied is one applied position; chain identifies everything applied up to and including it.
type applied struct {
	position uint64
	command  string
	chain    uint64
	first    uint64 // the member that applied it first
}

// Cursor is the place of one member's state machine in the sequence.
type Cursor struct{ next int }

// AgreementError indicates that two members applied different things.
type AgreementError struct {
	Member, First  uint64 // the member that applied it, and the one that applied the other one first
	Position       uint64
	Command, Other string
}

func (e *AgreementError) Error() string {
	return fmt.Sprintf("member %x applied %q at position %d where member %x had applied %q",
		e.Member, e.Command, e.Position, e.First, e.Other)
}

// TwiceError indicates that a command took effect twice.
type TwiceError struct {
	Command       string
	First, Second uint64 // positions
}

func (e *TwiceError) Error() string {
	return fmt.Sprintf("command %q took effect twice: at positions %d and %d", e.Command, e.First, e.Second)
}

// Apply records that a member applied command at position, after its cursor. Commands must be unique.
func (s *Sequence) Apply(member uint64, c *Cursor, position uint64, command string) error {
	if c.next < len(s.steps) {
		at := &s.steps[c.next]
		if at.position != position || at.command != command {
			return &AgreementError{Member: member, First: at.first, Position: position, Command: command,
				Other: fmt.Sprintf("%s (position %d)", at.command, at.position)}
		}
		c.next++
		return nil
	}
	if n := len(s.steps); n > 0 && s.steps[n-1].position >= position {
		return fmt.Errorf("member %x applied position %d after position %d", member, position, s.steps[n-1].position)
	}
	if s.seen == nil {
		s.seen = map[string]uint64{}
	}
	if first, ok := s.seen[command]; ok {
		return &TwiceError{Command: command, First: first, Second: position}
	}
	s.seen[command] = position
	s.steps = append(s.steps, applied{position: position, command: command, chain: s.chain(command), first: member})
	c.next++
	return nil
}

func (s *Sequence) chain(command string) uint64 {
	h := uint64(14695981039346656037)
	if n := len(s.steps); n > 0 {
		h = s.steps[n-1].chain
	}
	return Chain(h, command)
}

// Chain extends a chain value (FNV-1a) by a command. A state machine that carries the
// chain of all it applied in its snapshots lets [Sequence.Restore] judge the snapshot.
func Chain(chain uint64, command string) uint64 {
	if chain == 0 {
		chain = 14695981039346656037
	}
	for i := 0; i < len(command); i++ {
		chain = (chain ^ uint64(command[i])) * 1099511628211
	}
	return (chain ^ 0xff) * 1099511628211
}

// Restore records that a member's state machine was replaced by a state with the given number of commands and chain.
// It returns the member's new cursor.
func (s *Sequence) Restore(member, commands, chain uint64) (Cursor, error) {
	if commands == 0 {
		return Cursor{}, nil
	}
	if commands > uint64(len(s.steps)) {
		return Cursor{}, fmt.Errorf("member %x restored a state of %d commands; only %d were ever applied", member, commands,
			len(s.steps))
	}
	if want := s.steps[commands-1].chain; want != chain {
		return Cursor{}, fmt.Errorf("member %x restored a state of %d commands that differs from what was applied", member,
			commands)
	}
	return Cursor{next: int(commands)}, nil
}

// Position returns the position of a command.
func (s *Sequence) Position(command string) (uint64, bool) {
	p, ok := s.seen[command]
	return p, ok
}

// Len is the number of commands that the furthest member has applied.
func (s *Sequence) Len() int { return len(s.steps) }

// Behind is the number of commands by which the cursor is behind the furthest member.
func (s *Sequence) Behind(c Cursor) int { return len(s.steps) - c.next }
