package mapkv

import (
	"hash/maphash"
	"maps"
	"sync"

	"github.com/braidlog/braid"
)

// shards is how many maps the keys are spread over: a snapshot makes the first write to
// each of them copy it, so no single write copies much.
const shards = 256

// Map is the state machine: keys and values. Large values are bodies: the map holds their names, and tells which of
// them are live. Reads are safe alongside everything else.
type Map struct {
	seed maphash.Seed
	mu   sync.RWMutex
	// parts hold the keys by their hash.
	// Invariant: a part that is frozen is not written to; a snapshot reads it.
	parts    [shards]map[string]Value
	frozen   [shards]bool
	appended uint64 // commands of POST /append
	// dropped are bodies that were passed to the map and that no value refers to. Invariant: no body is in two values,
	// or twice in one: each belongs to one command.
	dropped drops
}

// NewMap returns an empty map.
func NewMap() *Map { return &Map{seed: maphash.MakeSeed()} }

// Get returns the value of a key.
func (m *Map) Get(key string) (value Value, ok bool) {
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

// found is the result of a read in the log. A key that does not exist has no chunks.
type found struct{ value Value }

// Apply implements [braid.StateMachine]. The result of a command is nil, the error for which it has no effect, or the
// requested value.
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
	if err == nil {
		switch op {
		case opPut:
			m.put(string(key), chunk(c, value))
			return
		case opExtend:
			if err = m.extend(string(key), chunk(c, value)); err == nil {
				return
			}
		case opDelete:
			m.remove(string(key))
		case opAppend:
			m.appended++
			c.Result = c.Position
		case opGet:
			c.Result = found{m.parts[m.shard(string(key))][string(key)]}
		}
	}
	if err != nil {
		c.Result = err
	}
	if c.Body != nil { // which is in no value
		m.dropped.add(Value{Chunks: []Chunk{{Body: *c.Body}}})
	}
}

func (m *Map) put(key string, c Chunk) {
	part := m.writable(key)
	m.dropped.add(part[key])
	part[key] = Value{[]Chunk{c}, c.Size()}
}

func (m *Map) extend(key string, c Chunk) error {
	part := m.writable(key)
	v, err := part[key].extended(c)
	if err == nil {
		part[key] = v
	}
	return err
}

func (m *Map) remove(key string) {
	part := m.writable(key)
	m.dropped.add(part[key])
	delete(part, key)
}

// LiveBodies implements [braid.BodyKeeper].
func (m *Map) LiveBodies(yield func(braid.BodyRef)) error {
	m.mu.RLock()
	defer m.mu.RUnlock()
	for _, part := range m.parts {
		for _, v := range part {
			for i := range v.Chunks {
				if body := v.Chunks[i].Body; body.Size > 0 {
					yield(body)
				}
			}
		}
	}
	return nil
}

// Dropped returns the bodies that neither the map nor a snapshot for a restart refers to, given the number of
// snapshots that the member has written. The map forgets them; the caller releases them.
func (m *Map) Dropped(snapshots uint64) []braid.BodyRef {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.dropped.take(snapshots)
}

// writable returns the part of a key, which no snapshot reads.
func (m *Map) writable(key string) map[string]Value {
	i := m.shard(key)
	switch {
	case m.parts[i] == nil:
		m.parts[i] = map[string]Value{}
	case m.frozen[i]:
		m.parts[i] = maps.Clone(m.parts[i])
	}
	m.frozen[i] = false
	return m.parts[i]
}
