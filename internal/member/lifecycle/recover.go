package lifecycle

import (
	"fmt"

	"github.com/braidlog/braid/internal/member"
	"github.com/braidlog/braid/internal/order"
	"github.com/braidlog/braid/internal/wal"
	"github.com/braidlog/braid/protocol"
)

// recoverResident is how many payload bytes recovery keeps in memory, of all instances. The
// applier reads the rest again when it gets there, so that a long log does not need memory.
const recoverResident = 64 << 20

// CoverOf says for which part of a member's log its newest snapshot stands. Damage there does not
// keep the log from opening. cells says that instances may have cells. No snapshot stands for these,
// because they hold what the member promised.
func CoverOf(meta *member.Meta, cells bool) *wal.Cover {
	c := &wal.Cover{Cells: cells}
	for _, id := range meta.Cursor.Instances() {
		c.Instances = append(c.Instances, uint32(id))
	}
	c.Upto = func(instance uint32) uint64 {
		id := protocol.InstanceID(instance)
		if meta.Cursor.Retired(id) {
			return uint64(member.AllIndexes)
		}
		return uint64(meta.Cursor.Point(id).Index)
	}
	return c
}

// Recover reads from an instance's log and newest snapshot what the instance needs to start. A snapshot may be ahead of
// the log: it came from the leader, and a crash came before the log was started again. Then the snapshot wins, because
// it is committed.
func Recover(log *wal.Log, instance protocol.InstanceID, meta member.Meta) (protocol.Recovered, error) {
	r := recovery{instance: instance, limit: recoverResident / max(1, len(meta.Cursor.Points))}
	r.Base = meta.Base(instance)
	if err := r.read(log); err != nil {
		return protocol.Recovered{}, err
	}
	if r.logBase.Index > r.Base.Index {
		return protocol.Recovered{}, &protocol.CorruptError{What: "log", Detail: fmt.Sprintf(
			"instance %d begins after index %d, but the newest snapshot is at %d", instance, r.logBase.Index, r.Base.Index)}
	}
	if floor := protocol.Index(log.Floor(uint32(instance))); floor > r.Base.Index {
		return protocol.Recovered{}, &protocol.CorruptError{What: "log", Detail: fmt.Sprintf(
			"instance %d gave up its entries up to %d, but the newest snapshot that can be read is at %d", instance, floor,
			r.Base.Index)}
	}
	restart, err := r.join()
	if err != nil {
		return protocol.Recovered{}, err
	}
	if restart {
		base := protocol.Record{Kind: protocol.RecordBase, Base: &r.Base}
		if err := log.AppendAtStart([]wal.Record{member.WALRecord(instance, &base)}); err != nil {
			return protocol.Recovered{}, err
		}
		if err := log.Sync(); err != nil {
			return protocol.Recovered{}, err
		}
	}
	r.State.Commit = max(r.State.Commit, r.Base.Index)
	return r.Recovered, nil
}

// Pending is what the log has of an instance that is newer than the newest snapshot. The instance
// begins where the global log says so, once that is replayed.
type Pending struct{ recovery }

// NewUnborn returns an instance of which the log has nothing.
func NewUnborn(instance protocol.InstanceID) *Pending {
	return &Pending{recovery: recovery{instance: instance}}
}

// RecoverPending reads what the log has of such an instance.
func RecoverPending(log *wal.Log, instance protocol.InstanceID) (*Pending, error) {
	u := &Pending{recovery{instance: instance, limit: recoverResident / order.MaxInstances}}
	err := u.read(log)
	u.Base.Config = u.logBase.Config // its profile tells the core
	return u, err
}

// Begin returns what the instance needs to start from a base: that of its first moment, or of a
// snapshot. records are to be written to the log first. The log of an instance begins with its
// base and its hard state, even if both say nothing. So if a record before them is damaged and
// nothing is known of it, it cannot have been this instance's.
func (u *Pending) Begin(base protocol.Base) (rec protocol.Recovered, records []wal.Record, err error) {
	r := u.recovery
	r.Base = base
	for len(r.Entries) > 0 && r.Entries[0].Index <= base.Index {
		if e := &r.Entries[0]; e.Index == base.Index {
			r.at, r.found = protocol.Entry{Index: e.Index, Term: e.Term}, true
		}
		r.Entries = r.Entries[1:]
	}
	restart, err := r.join()
	r.State.Commit = max(r.State.Commit, base.Index)
	if restart {
		r.State.Commit = base.Index
	}
	if restart || !r.written {
		records = append(records, member.WALRecord(u.instance, &protocol.Record{Kind: protocol.RecordBase, Base: &base}))
	}
	if !r.written {
		records = append(records, member.WALRecord(u.instance, &protocol.Record{Kind: protocol.RecordState, State: r.State}))
	}
	return r.Recovered, records, err
}

type recovery struct {
	protocol.Recovered
	instance protocol.InstanceID
	logBase  protocol.Base
	// at is the log's entry at the snapshot's index, if it has one.
	at       protocol.Entry
	found    bool
	written  bool // the log has something of the instance
	resident int  // payload bytes that are kept in memory
	limit    int  // of resident
}

func (r *recovery) read(log *wal.Log) error {
	if err := log.Replay(uint32(r.instance), r.record); err != nil {
		return fmt.Errorf("recover instance %d: %w", r.instance, err)
	}
	return nil
}

func (r *recovery) record(kind wal.Kind, index uint64, data []byte) (err error) {
	r.written = true
	switch kind {
	case wal.KindState:
		r.State, err = member.DecodeState(data)
	case wal.KindBase:
		r.logBase, err = member.DecodeBase(data)
	case wal.KindEntry:
		err = r.entry(protocol.Index(index), data)
	case wal.KindCell:
		r.Cells = append(r.Cells, protocol.Cell{Number: index, Data: data})
	}
	return err
}

func (r *recovery) entry(index protocol.Index, data []byte) error {
	e, rest, err := protocol.DecodeEntry(data, true)
	if err != nil {
		return err
	}
	if e.Index != index || len(rest) > 0 {
		return &protocol.CorruptError{What: "log",
			Detail: fmt.Sprintf("record of index %d holds entry %d and %d bytes more", index, e.Index, len(rest))}
	}
	if index < r.Base.Index {
		return nil
	}
	if index == r.Base.Index {
		r.at, r.found = protocol.Entry{Index: e.Index, Term: e.Term}, true
		return nil
	}
	r.keep(e)
	return nil
}

// keep copies an entry out of the buffer that replay lends. It leaves a batch's payload out if
// that does not fit into the limit.
func (r *recovery) keep(e protocol.Entry) {
	payload := e.Payload
	e.Payload = nil
	if !e.Kind.Commands() || r.resident+len(payload) <= r.limit {
		e.Payload = append([]byte(nil), payload...)
		r.resident += len(payload)
	}
	// Sealing with the same place gives the same bytes, in memory of our own.
	e.Seal(e.Index, e.Term, make([]byte, protocol.HeadSize))
	r.Entries = append(r.Entries, e)
}

// join drops the log's entries if they do not continue the snapshot. It reports whether the log on disk must then be
// started again after the snapshot.
func (r *recovery) join() (restart bool, err error) {
	for i := range r.Entries {
		if want := r.Base.Index + 1 + protocol.Index(i); r.Entries[i].Index != want {
			return false, &protocol.CorruptError{What: "log", Detail: fmt.Sprintf(
				"instance %d: entry %d follows %d (snapshot at %d)", r.instance, r.Entries[i].Index, want-1, r.Base.Index)}
		}
	}
	// There may be entries right after the snapshot without the one at it. Then the log was cut
	// there, which happens only under a snapshot of this very log.
	continues := r.found && r.at.Term == r.Base.Term || !r.found && len(r.Entries) > 0 || r.logBase.Index == r.Base.Index
	if continues || r.Base.Index == 0 {
		return false, nil
	}
	r.Entries = nil
	return true, nil
}

// LoadFrom returns a Loader that reads payloads from a log.
func LoadFrom(log *wal.Log) member.Loader {
	return func(instance protocol.InstanceID, e *protocol.Entry) error {
		data, err := log.ReadEntry(uint32(instance), uint64(e.Index))
		if err != nil {
			return err
		}
		full, _, err := protocol.DecodeEntry(data, true)
		if err != nil {
			return err
		}
		if full.Term != e.Term {
			return &member.ReplacedError{Index: e.Index, Have: full.Term, Want: e.Term}
		}
		if full.Digest != e.Digest {
			return &protocol.CorruptError{What: "log", Detail: fmt.Sprintf(
				"index %d of term %d has digest %08x, want %08x", e.Index, e.Term, full.Digest, e.Digest)}
		}
		e.Payload = full.Payload
		return nil
	}
}
