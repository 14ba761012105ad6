package judge

import (
	"encoding/binary"

	"github.com/braidlog/braid/internal/check"
	"github.com/braidlog/braid/protocol"
)

// DigestOf identifies an entry by its envelope, which covers the payload's digest.
func DigestOf(e *protocol.Entry) uint64 {
	return uint64(binary.LittleEndian.Uint32(e.Head()))<<32 | uint64(e.Digest)
}

// VotersOf returns the voters of a membership.
func VotersOf(c *protocol.Config) *check.Voters {
	v := &check.Voters{}
	for _, id := range c.Voters() {
		v.Incoming = append(v.Incoming, uint64(id))
		if zone := c.Find(id).Zone; zone != "" {
			if v.Zones == nil {
				v.Zones = map[uint64]string{}
			}
			v.Zones[uint64(id)] = zone
		}
	}
	for _, id := range c.Outgoing {
		v.Outgoing = append(v.Outgoing, uint64(id))
	}
	return v
}

// BodyOf returns the body of an entry, as far as the entry has it.
func BodyOf(e *protocol.Entry) check.Body {
	b := check.Body{Index: uint64(e.Index), Term: uint64(e.Term), K: e.K, Form: check.Form(e.Form), Size: e.BodySize,
		Digest: e.BodyDigest}
	if e.Form != protocol.FormNone {
		b.Bytes = e.Body
	}
	return b
}

// SlotOf returns the effect of an entry in the global log.
func SlotOf(e *protocol.Entry) check.Slots {
	switch e.Kind {
	case protocol.EntryBatch, protocol.EntryGroup:
		return check.Slots{Fills: true, Covers: e.Width()}
	case protocol.EntryConfig, protocol.EntryLane, protocol.EntryGeneration:
		return check.Slots{Covers: 1}
	case protocol.EntryEmpty:
		return check.Slots{Covers: 1, Waits: true}
	case protocol.EntrySeal:
		return check.Slots{Fills: true}
	case protocol.EntryReshape:
		return check.Slots{Fills: true, Instances: e.Instances()}
	case protocol.EntrySkip:
		return check.Slots{SkipsTo: uint64(e.Round())}
	}
	return check.Slots{}
}

// Bare reports whether an entry may replace any other in its slot, in the same epoch.
func Bare(e *protocol.Entry) bool {
	return e.Kind == protocol.EntryNoop || e.Kind == protocol.EntryEmpty
}

// Record converts a record to the ledger's type. A record of a body alone does not concern the log.
func (j *Instance) Record(r *protocol.Record) check.Record {
	switch r.Kind {
	case protocol.RecordEntry:
		return entryRecord(&r.Entry)
	case protocol.RecordBody:
		return check.Record{}
	case protocol.RecordCell:
		return j.cellRecord(r.Cell)
	case protocol.RecordDrop:
		return check.Record{Kind: check.DropRecord, Index: r.Cell.Number}
	case protocol.RecordState:
		return check.Record{Kind: check.StateRecord, Term: uint64(r.State.Term), Vote: uint64(r.State.Vote)}
	}
	return check.Record{Kind: check.BaseRecord, Index: uint64(r.Base.Index), Term: uint64(r.Base.Term),
		Voters: VotersOf(&r.Base.Config)}
}

func (j *Instance) cellRecord(cell protocol.Cell) check.Record {
	r := check.Record{Kind: check.CellRecord, Index: cell.Number, Digest: uint64(protocol.Digest(cell.Bytes()))}
	if accepted := j.Core.Cells.Accepted(); accepted != nil {
		if e, ok := accepted(cell); ok {
			holds := entryRecord(&e)
			r.Holds = &holds
		}
	}
	return r
}

func entryRecord(e *protocol.Entry) check.Record {
	r := check.Record{Kind: check.EntryRecord, Index: uint64(e.Index), Term: uint64(e.Term), Digest: DigestOf(e)}
	if e.Kind == protocol.EntryConfig {
		if config, err := protocol.DecodeConfig(e.Payload); err == nil {
			r.Voters = VotersOf(&config)
		}
	}
	return r
}

// Found converts the state that a member recovered from its disk to records for the ledger.
func (j *Instance) Found(rec *protocol.Recovered) []check.Record {
	out := []check.Record{
		j.Record(&protocol.Record{Kind: protocol.RecordState, State: rec.State}),
		j.Record(&protocol.Record{Kind: protocol.RecordBase, Base: &rec.Base}),
	}
	for i := range rec.Entries {
		out = append(out, entryRecord(&rec.Entries[i]))
	}
	for _, cell := range rec.Cells {
		out = append(out, j.cellRecord(cell))
	}
	return out
}
