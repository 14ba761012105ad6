package store

import (
	"context"

	"go.etcd.io/etcd/pkg/v3/traceutil"
	"go.etcd.io/etcd/server/v3/lease"
	"go.etcd.io/etcd/server/v3/storage/mvcc"
)

// keys are etcd's keys, with the places of large values kept in step by the transactions
// that write.
type keys struct {
	mvcc.WatchableKV
	s *Store

	// What follows belongs to the apply goroutine.

	// command is the one being applied; nil between commands.
	command *command
	writing writing
}

// writing is a write transaction. There is one at a time.
type writing struct {
	mvcc.TxnWrite
	keys *keys
}

func newKeys(s *Store, kv mvcc.WatchableKV) *keys {
	k := &keys{WatchableKV: kv, s: s}
	k.writing.keys = k
	return k
}

func (k *keys) done() { k.command = nil }

// Write implements mvcc.KV.
func (k *keys) Write(trace *traceutil.Trace) mvcc.TxnWrite {
	k.writing.TxnWrite = k.WatchableKV.Write(trace)
	return &k.writing
}

// Put implements mvcc.TxnWrite.
func (w *writing) Put(key, value []byte, id lease.LeaseID) int64 {
	if !marked(value) {
		return w.TxnWrite.Put(key, value, id)
	}
	p, ref := w.keys.placeOf(w.TxnWrite, key, value)
	main := w.TxnWrite.Put(key, value, id)
	p.sub = int64(len(w.Changes()) - 1)
	db := w.keys.s.db
	db.refs.add(db.be.BatchTx(), main, p, ref)
	return main
}

// placeOf finds out what a value is that begins like a record: one that the command brought,
// the previous value of the key once more (ignore_value), or one that nobody replaced before
// it was ordered and that means just itself.
func (k *keys) placeOf(tx mvcc.ReadView, key, value []byte) (place, *BodyRef) {
	if r, ok := parseRecord(value); ok && k.command != nil {
		if offset, ok := k.command.values[r]; ok {
			return place{record: r, offset: offset}, k.command.body
		}
	}
	before, err := tx.Range(context.Background(), key, nil, mvcc.RangeOptions{})
	if err == nil && len(before.KVs) == 1 && string(before.KVs[0].Value) == string(value) {
		if p, ok := k.s.db.refs.find(before.KVs[0].ModRevision, value); ok {
			if p.body == nil {
				return p, nil
			}
			ref := p.body.ref
			return p, &ref
		}
	}
	return place{record: recordOf(value)}, nil
}

// Read implements mvcc.KV. A transaction that writes reads first, to compare: it is the only
// reader that asks for the shared buffer.
func (k *keys) Read(mode mvcc.ReadTxMode, trace *traceutil.Trace) mvcc.TxnRead {
	tx := k.WatchableKV.Read(mode, trace)
	if mode != mvcc.SharedBufReadTxMode || k.command == nil || len(k.command.compared) == 0 {
		return tx
	}
	return &comparing{tx, k.s.db.refs, k.command.compared}
}

// comparing shows values that are in the database as records if their size is one that is
// compared: whether a value is in the database or in a body, it compares alike.
type comparing struct {
	mvcc.TxnRead
	refs  *refs
	sizes map[uint64]struct{}
}

// Range implements mvcc.ReadView.
func (c *comparing) Range(ctx context.Context, key, end []byte, o mvcc.RangeOptions) (*mvcc.RangeResult, error) {
	r, err := c.TxnRead.Range(ctx, key, end, o)
	if err != nil {
		return r, err
	}
	for _, kv := range r.KVs {
		if _, compared := c.sizes[uint64(len(kv.Value))]; compared && !inBody(c.refs, kv.ModRevision, kv.Value) {
			kv.Value = recordOf(kv.Value).encode()
		}
	}
	return r, nil
}

// inBody reports whether a value that was read is a record whose bytes are elsewhere.
func inBody(r *refs, revision int64, value []byte) bool {
	if !marked(value) {
		return false
	}
	p, ok := r.find(revision, value)
	return ok && p.body != nil
}
