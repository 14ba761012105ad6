package store

import (
	"context"
	"crypto/sha256"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/encoding/prototext"
	"google.golang.org/protobuf/proto"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"
	"go.etcd.io/etcd/server/v3/etcdserver/txn"

	"github.com/braidlog/braid/internal/testsize"
)

// pool are values that are easily mistaken for each other.
func pool() []string {
	a := big('a', 9000)
	return []string{
		"", "a", "b", big('a', 1500), big('a', threshold-1), big('a', threshold), a, a[:8999], a + "x",
		a[:8000] + "z" + a[8001:], big('b', 3000), recordMagic, recordMagic + "more",
		string(recordOf([]byte("b")).encode()), string(recordOf([]byte(a)).encode()),
	}
}

// asker makes random requests on few keys.
type asker struct{ *rand.Rand }

func (r asker) key() []byte   { return fmt.Appendf(nil, "k%d", r.IntN(6)) }
func (r asker) value() []byte { p := pool(); return []byte(p[r.IntN(len(p))]) }
func (r asker) end() []byte {
	return [][]byte{nil, nil, nil, {0}, []byte("k4"), []byte("k9")}[r.IntN(6)]
}

func (r asker) rangeOf() *pb.RangeRequest {
	return &pb.RangeRequest{
		Key: r.key(), RangeEnd: r.end(), SortTarget: []pb.RangeRequest_SortTarget{0, 4, 4}[r.IntN(3)],
		SortOrder: pb.RangeRequest_SortOrder(r.IntN(3)), Limit: int64(r.IntN(4)), KeysOnly: r.IntN(6) == 0,
		CountOnly: r.IntN(8) == 0,
	}
}

func (r asker) compare() *pb.Compare {
	c := &pb.Compare{
		Key: r.key(), RangeEnd: r.end(), Result: pb.Compare_CompareResult(r.IntN(4)), Target: pb.Compare_VALUE,
		TargetUnion: &pb.Compare_Value{Value: r.value()},
	}
	if r.IntN(4) == 0 {
		c.Target, c.TargetUnion = pb.Compare_VERSION, &pb.Compare_Version{Version: int64(r.IntN(3))}
	}
	return c
}

// txn puts no key twice on any path: keys of the inner transactions have a prefix.
func (r asker) txn(depth int) *pb.TxnRequest {
	t := &pb.TxnRequest{}
	for range 1 + r.IntN(2) {
		t.Compare = append(t.Compare, r.compare())
	}
	for _, ops := range []*[]*pb.RequestOp{&t.Success, &t.Failure} {
		for _, i := range r.Perm(6)[:r.IntN(4)] {
			p := &pb.PutRequest{Key: fmt.Appendf(nil, "k%d", i), Value: r.value(), PrevKv: r.IntN(2) == 0}
			if depth > 0 {
				p.Key = fmt.Appendf(nil, "k%d-inner", i)
			}
			*ops = append(*ops, &pb.RequestOp{Request: &pb.RequestOp_RequestPut{RequestPut: p}})
		}
		*ops = append(*ops, &pb.RequestOp{Request: &pb.RequestOp_RequestRange{RequestRange: r.rangeOf()}})
		if depth == 0 && r.IntN(2) == 0 {
			*ops = append(*ops, &pb.RequestOp{Request: &pb.RequestOp_RequestTxn{RequestTxn: r.txn(1)}})
		}
	}
	return t
}

func (r asker) request(revision int64) *pb.InternalRaftRequest {
	switch r.IntN(10) {
	case 0, 1, 2:
		return &pb.InternalRaftRequest{Put: &pb.PutRequest{Key: r.key(), Value: r.value(), PrevKv: r.IntN(2) == 0}}
	case 3:
		return &pb.InternalRaftRequest{Put: &pb.PutRequest{Key: r.key(), IgnoreValue: true, PrevKv: r.IntN(2) == 0}}
	case 4:
		return &pb.InternalRaftRequest{DeleteRange: &pb.DeleteRangeRequest{Key: r.key(), RangeEnd: r.end(), PrevKv: true}}
	case 5:
		return compact(1 + r.Int64N(revision))
	}
	return &pb.InternalRaftRequest{Txn: r.txn(0)}
}

// plain makes answers comparable: keys with equal values have no order among themselves.
func plain(m proto.Message) proto.Message {
	m = proto.Clone(m)
	strip := func(r *pb.RangeResponse) {
		for i, kv := range r.Kvs {
			r.Kvs[i] = &mvccpb.KeyValue{Value: kv.Value}
		}
	}
	var ranges func(r *pb.TxnResponse)
	ranges = func(r *pb.TxnResponse) {
		for _, op := range r.Responses {
			if x := op.GetResponseRange(); x != nil {
				strip(x)
			}
			if x := op.GetResponseTxn(); x != nil {
				ranges(x)
			}
		}
	}
	switch r := m.(type) {
	case *pb.RangeResponse:
		strip(r)
	case *pb.TxnResponse:
		ranges(r)
	}
	return m
}

// same demands that two answers to a request are the same.
func same(t testing.TB, step int, asked, want, got proto.Message) {
	t.Helper()
	want, got = plain(want), plain(got)
	if !proto.Equal(want, got) {
		require.Equal(t, short(want), short(got), "step %d: %s", step, short(asked))
	}
}

// short is a message as text, with long values by their digests.
func short(m proto.Message) string {
	text := prototext.MarshalOptions{Multiline: true}.Format(m)
	return long.ReplaceAllStringFunc(text, func(s string) string {
		return fmt.Sprintf("%s… %x", s[:10], sha256.Sum256([]byte(s)))
	})
}

var long = regexp.MustCompile(`"[^"\n]{200,}"`)

// contest sends the same requests to a store with bodies and, unchanged, to etcd's code with every value in the
// database: all answers must be the same.
func contest(n *large, oracle *node, r asker, steps int) {
	t, ctx := n.t, context.Background()
	for step := range steps {
		n.largeFrom.Store([]int64{smallestRecord, threshold, threshold, 5000, 0}[r.IntN(5)]) // any member may propose
		request := r.request(oracle.Revision())
		asIs, err := encode([]byte{kindRequest}, request)
		require.NoError(t, err)
		want := oracle.raw(asIs)[0]
		got, err := n.try(request)
		require.Equal(t, want.Err, err, "step %d", step)
		if err == nil {
			same(t, step, request, want.Resp, got)
		}
		asked := r.rangeOf()
		if r.IntN(3) == 0 {
			asked.Revision = max(oracle.CompactRevision(), 1) + r.Int64N(oracle.Revision()-max(oracle.CompactRevision(), 1)+1)
		}
		wantRange, _, err := txn.Range(ctx, oracle.lg, oracle.KV(), asked, true)
		require.NoError(t, err)
		gotRange, err := n.Range(ctx, asked)
		require.NoError(t, err, "step %d", step)
		same(t, step, asked, wantRange, gotRange)

		read := &pb.TxnRequest{
			Compare: []*pb.Compare{r.compare()},
			Success: []*pb.RequestOp{{Request: &pb.RequestOp_RequestRange{RequestRange: r.rangeOf()}}},
			Failure: []*pb.RequestOp{{Request: &pb.RequestOp_RequestRange{RequestRange: r.rangeOf()}}},
		}
		wantTxn, _, err := txn.Txn(ctx, oracle.lg, read, true, oracle.KV(), oracle.Lessor(), false)
		require.NoError(t, err)
		gotTxn, err := n.Txn(ctx, read)
		require.NoError(t, err, "step %d", step)
		same(t, step, read, wantTxn, gotTxn)
	}
}

// TestLargeValuesBehaveLikeSmallOnes also continues from a snapshot for clients, with every
// value in the database: etcd's own history, and its own hash.
func TestLargeValuesBehaveLikeSmallOnes(t *testing.T) {
	testsize.Long(t)
	for seed := range uint64(2) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			r := asker{rand.New(rand.NewPCG(seed, 3))}
			oracle, n := openTemp(t), openLarge(t)
			contest(n, oracle, r, 120)
			crashes := asker{rand.New(rand.NewPCG(seed, 4))} // when depends on the disk, too
			followers(t, n, crashes)

			imported := importLarge(t, n)
			settle(t, oracle)
			e, err := imported.Encode(context.Background(), compact(imported.Revision()))
			require.NoError(t, err)
			require.NoError(t, imported.FinishCompaction(context.Background(), imported.order(e)))
			imported.put("settled", "x")
			require.Equal(t, hashKV(t, oracle), hashKV(t, imported.node))
			contest(imported, oracle, r, 80)
			followers(t, imported, crashes)
		})
	}
}

func hashKV(t *testing.T, n *node) HashKV {
	h, err := n.HashKV(context.Background(), 0)
	require.NoError(t, err)
	return h
}

// followers applies the same log on members that hold no bytes, in batches of other sizes,
// one with a crash: they end in the same state.
func followers(t *testing.T, n *large, r asker) {
	want := dumpLarge(n.node)
	for _, crash := range []bool{false, true} {
		none := newFakeBodies()
		none.fail = errAway
		o := largeOptions(n.start(t), none)
		o.BackendBatchLimit, o.BackendBatchInterval = 7, time.Hour
		m := open(t, o)
		for log := n.log; len(log) > 0; {
			k := min(1+r.IntN(30), len(log))
			require.NoError(t, m.Apply(bytesOnly(log[:k])))
			log = log[k:]
			if crash && r.IntN(5) == 0 {
				crashed := o
				crashed.Dir = clone(t, o.Dir)
				abandoned := m
				m = open(t, crashed)
				require.NoError(t, abandoned.Close())
				require.LessOrEqual(t, m.Applied(), n.log[len(n.log)-len(log)-1].Position)
				log = n.log[m.Applied():]
			}
		}
		require.NoError(t, m.Sync())
		require.Equal(t, want, dumpLarge(m))
		require.NoError(t, m.Close())
	}
}

// start is a directory as the store's was before its first command.
func (n *large) start(t *testing.T) string {
	if n.origin == "" {
		return t.TempDir()
	}
	dir := t.TempDir()
	require.NoError(t, Import(n.origin, dir, ImportOptions{}))
	return dir
}

func bytesOnly(log []Command) []Command {
	out := make([]Command, len(log))
	for i, c := range log {
		out[i] = Command{Position: c.Position, Data: c.Data, Body: c.Body}
	}
	return out
}

// dumpLarge is what has to be equal on members, whatever they hold of the bytes.
func dumpLarge(n *node) string {
	n.t.Helper()
	e, err := n.Encode(context.Background(), compact(n.Revision()))
	require.NoError(n.t, err)
	commands := []Command{{Position: n.Applied() + 1, Data: e.Command}}
	require.NoError(n.t, n.Apply(commands))
	require.NoError(n.t, n.FinishCompaction(context.Background(), commands[0].Result.(*Result)))
	n.next = n.Applied() + 1
	h, _, err := n.Hash()
	require.NoError(n.t, err)
	refs := n.database().refs
	refs.mu.Lock()
	defer refs.mu.Unlock()
	places, uses := 0, 0
	for _, p := range refs.places {
		places += len(p)
	}
	for _, b := range refs.bodies {
		uses += b.count
	}
	return fmt.Sprintf("applied %d revision %d hash %x, %d places, %d uses", n.Applied(), n.Revision(), h, places, uses)
}

// saved writes a snapshot for clients into a file.
func (n *large) saved(t testing.TB) string {
	file := filepath.Join(t.TempDir(), "saved.db")
	f, err := os.Create(file)
	require.NoError(t, err)
	size := n.clientSnapshot(f)
	info, err := f.Stat()
	require.NoError(t, err)
	require.Equal(t, size, info.Size())
	require.NoError(t, f.Close())
	left, err := filepath.Glob(filepath.Join(n.opts.Dir, copyPattern))
	require.NoError(t, err)
	require.Empty(t, left)
	return file
}

func importLarge(t *testing.T, n *large) *large {
	file, dir := n.saved(t), t.TempDir()
	require.NoError(t, Import(file, dir, ImportOptions{}))
	out := &large{bodies: newFakeBodies(), origin: file}
	out.node = open(t, largeOptions(dir, out.bodies))
	t.Cleanup(func() { require.NoError(t, out.Close()) })
	return out
}
