package main

import (
	"encoding/binary"

	"go.etcd.io/raft/v3/raftpb"
)

// An entry's data is a header that names the proposal (the member and a number that it
// counts up), and one command, or several with a length before each.
const etcdHeader = 8

// proposeQueued proposes the commands that were taken from the queue, all in one message.
func (m *etcdMember) proposeQueued() {
	if len(m.taken.ends) == 0 {
		return
	}
	data := m.encodeQueued()
	if cap(m.entries) < len(data) {
		m.entries = make([]raftpb.Entry, len(data))
	}
	m.pointers = m.pointers[:0]
	for i, d := range data {
		e := &m.entries[:len(data)][i]
		e.Data = d
		m.pointers = append(m.pointers, e)
	}
	err := m.raw.Step(&raftpb.Message{Type: raftpb.MsgProp.Enum(), From: new(m.id), Entries: m.pointers})
	if err != nil {
		m.pending.failLast(len(data), err)
	}
	m.taken.reset()
}

// encodeQueued encodes the commands that were taken from the queue as data of entries, and records them as pending.
// The library copies what is proposed, so the memory is reused.
func (m *etcdMember) encodeQueued() [][]byte {
	t := &m.taken
	m.scratch = m.scratch[:0]
	need := len(t.bytes) + len(t.ends)*(etcdHeader+binary.MaxVarintLen32)
	if cap(m.scratch) < need {
		m.scratch = make([]byte, 0, need)
	}
	m.batch = m.batch[:0]
	for i := 0; i < len(t.ends); {
		begin := len(m.scratch)
		m.lastID++
		m.scratch = binary.LittleEndian.AppendUint64(m.scratch, m.id<<56|m.lastID)
		p := pendingProposal{id: m.lastID}
		if m.tuning.packBytes == 0 {
			m.scratch = append(m.scratch, t.command(i)...)
			p.done = t.dones[i]
			i++
		} else {
			for ; i < len(t.ends) && len(m.scratch)-begin < m.tuning.packBytes; i++ {
				c := t.command(i)
				m.scratch = append(binary.AppendUvarint(m.scratch, uint64(len(c))), c...)
				p.more = append(p.more, t.dones[i])
			}
		}
		m.pending.push(p)
		m.batch = append(m.batch, m.scratch[begin:])
	}
	return m.batch
}

// command is the i-th of the proposals.
func (p *proposals) command(i int) []byte {
	begin := 0
	if i > 0 {
		begin = p.ends[i-1]
	}
	return p.bytes[begin:p.ends[i]]
}

// apply applies committed entries and answers those that were proposed here.
func (m *etcdMember) apply(entries []*raftpb.Entry) {
	if len(entries) == 0 {
		return
	}
	m.batch = m.batch[:0]
	for _, e := range entries {
		data := e.GetData()
		if e.GetType() != raftpb.EntryNormal || len(data) < etcdHeader {
			continue // the empty entry of a new leader
		}
		m.batch = m.unpack(m.batch, data[etcdHeader:])
	}
	m.machine.ApplyAll(m.batch)
	clear(m.batch)
	for _, e := range entries {
		data := e.GetData()
		if len(data) < etcdHeader {
			continue
		}
		if id := binary.LittleEndian.Uint64(data); id>>56 == m.id {
			m.pending.answer(id & (1<<56 - 1))
		}
	}
	m.cluster.applied[m.i].Store(entries[len(entries)-1].GetIndex())
}

// unpack appends the commands of an entry.
func (m *etcdMember) unpack(commands [][]byte, data []byte) [][]byte {
	if m.tuning.packBytes == 0 {
		return append(commands, data)
	}
	for len(data) > 0 {
		n, w := binary.Uvarint(data)
		commands = append(commands, data[w:w+int(n)])
		data = data[w+int(n):]
	}
	return commands
}

// pendingProposal is an entry that was proposed and waits to be applied.
type pendingProposal struct {
	id   uint64
	done func(any, error)
	more []func(any, error) // with packed entries, instead of done
}

func (p *pendingProposal) answer(err error) {
	if p.done != nil {
		p.done(nil, err)
	}
	for _, d := range p.more {
		d(nil, err)
	}
	*p = pendingProposal{}
}

// ring is a queue of pending proposals with ascending ids.
type ring struct {
	items []pendingProposal
	head  int
}

func (r *ring) push(p pendingProposal) {
	if r.head > 0 && r.head*2 >= len(r.items) && len(r.items) == cap(r.items) {
		n := copy(r.items, r.items[r.head:])
		clear(r.items[n:])
		r.items, r.head = r.items[:n], 0
	}
	r.items = append(r.items, p)
}

// answer answers the proposal with an id. Entries are applied in the order in which they were proposed: older ones
// were lost in a change of leader.
func (r *ring) answer(id uint64) {
	for r.head < len(r.items) && r.items[r.head].id <= id {
		var err error
		if r.items[r.head].id < id {
			err = errDeposed
		}
		r.items[r.head].answer(err)
		r.head++
	}
	if r.head == len(r.items) {
		r.items, r.head = r.items[:0], 0
	}
}

// failLast fails the last n proposals.
func (r *ring) failLast(n int, err error) {
	for i := len(r.items) - n; i < len(r.items); i++ {
		r.items[i].answer(err)
	}
	r.items = r.items[:len(r.items)-n]
}

func (r *ring) failAll(err error) { r.failLast(len(r.items)-r.head, err); r.items, r.head = nil, 0 }
