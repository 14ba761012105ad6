package mapkv

import (
	"bytes"
	"hash/maphash"
	"maps"
	"sync"

	"github.com/braidlog/braid"
)

// shards is how many maps the keys are spread over: a snapshot makes the first write to
// each of them copy it, so no single write copies much.
const shards = 256

// Map is the state machine: keys and values. Reads are safe beside everything else.
type Map struct {
	seed maphash.Seed
	mu   sync.RWMutex
	// parts hold the keys by their hash.
	// Invariant: a part that is frozen is not written to; a snapshot reads it.
	parts    [shards]map[string][]byte
	frozen   [shards]bool
	appended uint64 // commands of POST /append
}

// NewMap returns an empty map.
func NewMap() *Map { return &Map{seed: maphash.MakeSeed()} }

// Get returns the value of a key. It must not be changed.
func (m *Map) Get(key string) (value []byte, ok bool) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	value, ok = m.parts[m.shard(key)][key]
	return value, ok
}

// Len returns the number of keys, and of commands that were only appended to the log.
func (m *Map) Len() (keys int, appended uint64) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	for _, p := range m.parts {
		keys += len(p)
	}
	return keys, m.appended
}

func (m *Map) shard(key string) int { return int(maphash.String(m.seed, key) % shards) }

// Apply implements [braid.StateMachine]. The result of a command is nil, or the error that
// makes it do nothing.
func (m *Map) Apply(commands []braid.Command) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	for i := range commands {
		m.apply(&commands[i])
	}
	return nil
}

func (m *Map) apply(c *braid.Command) {
	op, key, value, err := parse(c.Data)
	switch {
	case err != nil:
		c.Result = err
	case op == opPut:
		m.writable(string(key))[string(key)] = bytes.Clone(value)
	case op == opDelete:
		delete(m.writable(string(key)), string(key))
	case op == opAppend:
		m.appended++
		c.Result = c.Position
	}
}

// writable returns the part that a key belongs to, which no snapshot reads.
func (m *Map) writable(key string) map[string][]byte {
	i := m.shard(key)
	switch {
	case m.parts[i] == nil:
		m.parts[i] = map[string][]byte{}
	case m.frozen[i]:
		m.parts[i] = maps.Clone(m.parts[i])
	}
	m.frozen[i] = false
	return m.parts[i]
}
