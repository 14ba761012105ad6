package store

import (
	"context"
	"sync/atomic"

	"go.etcd.io/etcd/api/v3/mvccpb"
	"go.etcd.io/etcd/pkg/v3/traceutil"
	"go.etcd.io/etcd/server/v3/lease"
	"go.etcd.io/etcd/server/v3/storage/backend"
	"go.etcd.io/etcd/server/v3/storage/mvcc"
)

// keys are etcd's keys. Their write transactions also update the places of large values, and what is used of quotas.
type keys struct {
	mvcc.WatchableKV
	db     func() *database
	quotas *prefixQuotas
	recent recentGets
	// readable is the newest revision that can be read; 0 while a write transaction ends, or another state is put in
	// place. It costs less than Rev, which begins a read transaction.
	readable atomic.Int64

	// What follows belongs to the apply goroutine.

	// command is the one being applied; nil between commands.
	command *command
	writing writing
	// revision is the newest one; 0: it is to be asked for.
	revision int64
}

// writing is a write transaction. There is one at a time.
type writing struct {
	mvcc.TxnWrite
	keys *keys
}

func newKeys(db func() *database, quotas *prefixQuotas, kv mvcc.WatchableKV) *keys {
	k := &keys{WatchableKV: kv, db: db, quotas: quotas}
	k.writing.keys = k
	k.recent.init()
	k.readable.Store(kv.Rev())
	return k
}

func (k *keys) done() { k.command = nil }

// newest is Rev for the apply goroutine, without a read transaction.
func (k *keys) newest() int64 {
	if k.revision == 0 {
		k.revision = k.Rev()
	}
	return k.revision
}

// Restore implements mvcc.KV.
func (k *keys) Restore(be backend.Backend) error {
	k.revision = 0
	return k.recent.restore(func() error {
		k.readable.Store(0)
		err := k.WatchableKV.Restore(be)
		k.readable.Store(k.Rev())
		return err
	})
}

// Write implements mvcc.KV. The steps of writes are not noted: nothing asks for them, and they were a tenth of what a
// member allocated for a put.
func (k *keys) Write(*traceutil.Trace) mvcc.TxnWrite {
	k.writing.TxnWrite = k.WatchableKV.Write(noSteps)
	return &k.writing
}

// noSteps is a trace that notes no steps. So all transactions can share it.
var noSteps = func() *traceutil.Trace {
	t := traceutil.TODO()
	var disabled traceutil.Trace
	t.StepWithFunction(func() { disabled = *t }, "")
	return &disabled
}()

// End implements mvcc.TxnWrite.
func (w *writing) End() {
	changes := w.Changes()
	if len(changes) == 0 {
		w.TxnWrite.End()
		return
	}
	w.keys.revision = w.Rev() + 1
	w.keys.recent.wrote(changes, w.keys.revision)
	w.keys.readable.Store(0)
	w.TxnWrite.End()
	w.keys.readable.Store(w.keys.revision)
}

// DeleteRange implements mvcc.TxnWrite.
func (w *writing) DeleteRange(key, end []byte) (n, rev int64) {
	w.keys.quotas.delete(w.TxnWrite, key, end)
	return w.TxnWrite.DeleteRange(key, end)
}

// Put implements mvcc.TxnWrite.
func (w *writing) Put(key, value []byte, id lease.LeaseID) int64 {
	if !marked(value) {
		w.keys.quotas.put(w.TxnWrite, key, int64(len(value)))
		return w.TxnWrite.Put(key, value, id)
	}
	p, ref := w.keys.placeOf(w.TxnWrite, key, value)
	w.keys.quotas.put(w.TxnWrite, key, int64(p.record.size))
	main := w.TxnWrite.Put(key, value, id)
	p.sub = int64(len(w.Changes()) - 1)
	db := w.keys.db()
	db.refs.add(db.be.BatchTx(), main, p, ref)
	return main
}

// placeOf returns the place of a value that begins like a record: one that the command has in its body, the previous
// value of the key again (ignore_value), or one that was not replaced by a record before it was ordered and means
// itself.
func (k *keys) placeOf(tx mvcc.ReadView, key, value []byte) (place, *BodyRef) {
	if r, ok := parseRecord(value); ok && k.command != nil {
		if offset, ok := k.command.values[r]; ok {
			return place{record: r, offset: offset}, k.command.body
		}
	}
	before, err := tx.Range(context.Background(), key, nil, mvcc.RangeOptions{})
	if err == nil && len(before.KVs) == 1 && string(before.KVs[0].Value) == string(value) {
		if p, ok := k.db().refs.find(before.KVs[0].ModRevision, value); ok {
			if p.body == nil {
				return p, nil
			}
			ref := p.body.ref
			return p, &ref
		}
	}
	return place{record: recordOf(value)}, nil
}

// valueSize is the size of the value that a put of the present command stands for.
func (k *keys) valueSize(tx mvcc.ReadView, key, value []byte) int64 {
	if !marked(value) {
		return int64(len(value))
	}
	p, _ := k.placeOf(tx, key, value)
	return int64(p.record.size)
}

// inBody returns where a value's bytes are if they are not in the database.
func inBody(r *refs, kv *mvccpb.KeyValue) (place, bool) {
	if !marked(kv.Value) {
		return place{}, false
	}
	p, ok := r.find(kv.ModRevision, kv.Value)
	return p, ok && p.body != nil
}
