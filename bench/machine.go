package bench

import (
	"context"
	"encoding/binary"
	"encoding/gob"
	"fmt"
	"hash/crc32"
	"io"
	"maps"
	"math/bits"
	"slices"
	"sync"

	"github.com/braidlog/braid"
)

// MinPayload is the size of the smallest command: its sender and its number.
const MinPayload = 8

// seqBits is the number of bits of a command's identity that are the sender's sequence number; the others are the
// sender's number.
const seqBits = 44

// maxSenders is the maximal number of senders of a run.
const maxSenders = 1 << (64 - seqBits)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// putIdentity writes the identity of the seq-th command (from 0) of a sender.
func putIdentity(command []byte, sender int, seq uint64) {
	binary.LittleEndian.PutUint64(command, uint64(sender)<<seqBits|seq)
}

func identity(command []byte) (sender int, seq uint64) {
	id := binary.LittleEndian.Uint64(command)
	return int(id >> seqBits), id & (1<<seqBits - 1)
}

// Machine is the state machine of the log benchmark. It counts and hashes the commands and remembers which it has
// seen. The verification of a run compares that. All contestants use it.
type Machine struct {
	mu sync.Mutex
	s  tally
	// groups are those of Split. Then no command is applied to the machine itself.
	groups []*Machine
	// key is that of ByKey, else nil.
	key func(command []byte) uint64
}

// tally is a Machine's state, with exported fields to be written into snapshots.
type tally struct {
	Count      uint64 // commands applied
	Duplicates uint64 // of them applied before
	Malformed  uint64 // of them without an identity of this run
	Hash       uint64 // over the commands in their order
	Seen       []bitmap
	// Keys are hashes over the commands of each key in their order, in place of Hash.
	Keys map[uint64]uint64
}

// NewMachine returns the state machine of one member, for commands of a given number of senders.
func NewMachine(senders int) *Machine {
	return &Machine{s: tally{Seen: make([]bitmap, senders)}}
}

// Split returns one machine for each of this number of groups, which have no common order. Together they are verified
// as one.
func (m *Machine) Split(groups int) []*Machine {
	for range groups {
		m.groups = append(m.groups, NewMachine(len(m.s.Seen)))
	}
	return m.groups
}

// ByKey verifies only the order of commands with the same key, for protocols that order nothing else. key returns the
// key of a command.
func (m *Machine) ByKey(key func(command []byte) uint64) { m.key = key }

// mix returns the hash of the commands behind h and one more. Short commands are mixed in by words, which costs next
// to nothing; long ones by a checksum that the CPU computes.
func mix(h uint64, command []byte) uint64 {
	const odd, short = 0x9E3779B97F4A7C15, 64
	h = (h ^ uint64(len(command))) * odd
	if len(command) > short {
		return (h ^ uint64(crc32.Checksum(command, castagnoli))) * odd
	}
	for ; len(command) >= 8; command = command[8:] {
		h = (bits.RotateLeft64(h, 29) ^ binary.LittleEndian.Uint64(command)) * odd
	}
	for _, b := range command {
		h = (h ^ uint64(b)) * odd
	}
	return h
}

// apply takes one command.
func (t *tally) apply(command []byte) {
	t.Count++
	if len(command) < MinPayload {
		t.Malformed++
		return
	}
	sender, seq := identity(command)
	switch {
	case sender >= len(t.Seen):
		t.Malformed++
	case !t.Seen[sender].set(seq):
		t.Duplicates++
	}
}

// apply takes one command, and its place in the order.
func (m *Machine) apply(command []byte) {
	m.s.apply(command)
	if m.key == nil {
		m.s.Hash = mix(m.s.Hash, command)
		return
	}
	if m.s.Keys == nil {
		m.s.Keys = map[uint64]uint64{}
	}
	key := m.key(command)
	m.s.Keys[key] = mix(m.s.Keys[key], command)
}

// ApplyAll applies commands in order.
func (m *Machine) ApplyAll(commands [][]byte) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, c := range commands {
		m.apply(c)
	}
}

// Apply implements [braid.StateMachine].
func (m *Machine) Apply(commands []braid.Command) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	for i := range commands {
		m.apply(commands[i].Data)
	}
	return nil
}

// Digest returns the number of applied commands, and the hash over them in their order. With groups it is over each
// group's order, and by key over each key's.
func (m *Machine) Digest() (count, hash uint64) {
	for _, g := range m.groups {
		n, h := g.Digest()
		count, hash = count+n, (hash^h)*0x9E3779B97F4A7C15
	}
	if m.groups != nil {
		return count, hash
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	count, hash = m.s.Count, m.s.Hash
	for key, of := range m.s.Keys { // a sum has no order
		hash += (of ^ KeyOf(key)) * 0x9E3779B97F4A7C15
	}
	return count, hash
}

// Duplicates returns how many commands were applied that had been applied before. It is not for groups.
func (m *Machine) Duplicates() uint64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.s.Duplicates
}

// Has reports whether the command of the first sender with a number was applied. It is not for groups.
func (m *Machine) Has(number uint64) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.s.Seen[0].has(number)
}

// Snapshot implements [braid.StateMachine].
func (m *Machine) Snapshot() (braid.Snapshot, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	s := m.s
	s.Seen, s.Keys = slices.Clone(m.s.Seen), maps.Clone(m.s.Keys)
	for i := range s.Seen {
		s.Seen[i].Words = slices.Clone(s.Seen[i].Words)
	}
	return &machineSnapshot{s}, nil
}

// Restore implements [braid.StateMachine].
func (m *Machine) Restore(r io.Reader) error {
	var s tally
	if err := gob.NewDecoder(r).Decode(&s); err != nil {
		return fmt.Errorf("benchmark snapshot: %w", err)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.s = s
	return nil
}

type machineSnapshot struct{ s tally }

func (s *machineSnapshot) WriteTo(_ context.Context, w io.Writer) error {
	return gob.NewEncoder(w).Encode(&s.s)
}

func (s *machineSnapshot) Close() error { return nil }

// bitmap is a set of sequence numbers that are added roughly in order. A complete prefix takes no memory.
type bitmap struct {
	Base  uint64   // all numbers below Base*64 are in the set
	Words []uint64 // from Base on
}

// set adds n and reports whether it was new.
func (b *bitmap) set(n uint64) bool {
	word, bit := n/64, uint64(1)<<(n%64)
	if word < b.Base {
		return false
	}
	i := word - b.Base
	for i >= uint64(len(b.Words)) {
		b.Words = append(b.Words, 0)
	}
	if b.Words[i]&bit != 0 {
		return false
	}
	b.Words[i] |= bit
	if len(b.Words) >= 1024 && b.Words[0] == ^uint64(0) {
		b.trim()
	}
	return true
}

// trim drops the full words at the front.
func (b *bitmap) trim() {
	n := 0
	for n < len(b.Words) && b.Words[n] == ^uint64(0) {
		n++
	}
	b.Base += uint64(n)
	b.Words = append(b.Words[:0], b.Words[n:]...)
}

// has reports whether n is in the set.
func (b *bitmap) has(n uint64) bool {
	word := n / 64
	if word < b.Base {
		return true
	}
	i := word - b.Base
	return i < uint64(len(b.Words)) && b.Words[i]&(1<<(n%64)) != 0
}
