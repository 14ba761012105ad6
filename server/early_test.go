package server

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"

	"github.com/braidlog/braid"
)

// early is a server whose log answers early, and whose state is fresh for so long.
func early(t *testing.T, limit time.Duration) (*fixture, *laneClient) {
	f := start(t, func(c *Config) {
		open := c.openLog
		c.earlyFor = limit
		c.openLog = func(o braid.Options, sm braid.DurableStateMachine) (Log, error) {
			l, err := open(o, sm)
			l.(*fakeLog).early = true
			return l, err
		}
	})
	return f, &laneClient{t, testContext(t), pb.NewKVClient(f.client.ActiveConnection())}
}

// rooted makes root, so that authentication can be turned on, and returns the command for that.
func (f *fixture) rooted(t *testing.T) []byte {
	ctx := testContext(t)
	require.NoError(t, second(f.client.UserAdd(ctx, "root", "r")))
	require.NoError(t, second(f.client.UserGrantRole(ctx, "root", "root")))
	enable, err := f.store.Encode(ctx, &pb.InternalRaftRequest{AuthEnable: &pb.AuthEnableRequest{}})
	require.NoError(t, err)
	return enable.Command
}

// A member that lags behind AuthEnable accepts no put without a user.
func TestNothingIsAcceptedByAnOldState(t *testing.T) {
	f, one := early(t, time.Hour)
	enable := f.rooted(t)
	mode, _, err := one.put(putOf("k", "1"), metadataMode, modeAccepted)
	require.NoError(t, err)
	require.Equal(t, "[accepted]", mode)

	f.early.fresh.began.Store(-1) // it was long ago
	f.fake.set(func(l *fakeLog) { l.behind = enable })
	_, _, err = one.put(putOf("late", "1"), metadataMode, modeAccepted)
	require.Equal(t, codes.FailedPrecondition, status.Code(err), "%v", err)
	_, _, err = one.put(putOf("late", "1"))
	require.ErrorContains(t, err, "user name is empty")
	require.NoError(t, f.fake.drain(one.ctx))
	require.Empty(t, f.stored(t, "late"))
	require.Equal(t, "1", f.stored(t, "k"), "it was answered before")
}

// stored reads a key past all rights.
func (f *fixture) stored(t *testing.T, key string) string {
	resp, err := f.store.Range(f.store.Auth().WithRoot(testContext(t)), &pb.RangeRequest{Key: []byte(key)})
	require.NoError(t, err)
	if len(resp.Kvs) == 0 {
		return ""
	}
	return string(resp.Kvs[0].Value)
}

// What was answered early before AuthEnable takes effect before AuthEnable is acknowledged. What was not
// answered until then, and is ordered later, does not take effect.
func TestAuthEnableClosesWhatIsAccepted(t *testing.T) {
	f, one := early(t, time.Hour)
	f.rooted(t)
	mode, _, err := one.put(putOf("answered", "1"), metadataMode, modeAccepted)
	require.NoError(t, err)
	require.Equal(t, "[accepted]", mode)
	slow, err := f.store.EncodeAccepted(putOf("slow", "1"))
	require.NoError(t, err)
	require.Empty(t, f.stored(t, "answered"))

	require.NoError(t, second(f.client.AuthEnable(one.ctx)))
	require.Equal(t, "1", f.stored(t, "answered"))
	require.NoError(t, second(f.fake.Propose(one.ctx, slow.Command)))
	require.Empty(t, f.stored(t, "slow"))
}

// A put that becomes certain after its member learnt of AuthEnable is answered by what became of it.
func TestAnswersAreNotEarlyUnderAuth(t *testing.T) {
	f, one := early(t, time.Hour)
	enable := f.rooted(t)
	require.NoError(t, f.early.fresh.ensure(one.ctx))
	e, err := f.store.EncodeAccepted(putOf("k", "1"))
	require.NoError(t, err)
	f.fake.set(func(l *fakeLog) { l.lane = [][]byte{e.Command} })
	require.NoError(t, second(f.fake.Propose(one.ctx, enable)))
	resp, token, err := f.early.answer(one.ctx, putOf("k", "1"), &e, &braid.Accepted{})
	require.NoError(t, err)
	require.Empty(t, token, "it is confirmed")
	require.NotZero(t, resp.Header.Revision)
	require.Equal(t, "1", f.stored(t, "k"), "nothing was closed yet")

	require.NoError(t, f.early.close(one.ctx, f.store.Applied(), e.AuthRevision))
	_, _, err = f.early.answer(one.ctx, putOf("k", "1"), &e, &braid.Accepted{})
	require.ErrorIs(t, err, braid.ErrMaybeCommitted)
}

// Without a leader puts are answered early for a while and not forever.
func TestEarlyAnswersNeedAFreshState(t *testing.T) {
	f, one := early(t, 40*time.Millisecond)
	mode, _, err := one.put(putOf("k", "1"), metadataMode, modeAccepted)
	require.NoError(t, err)
	require.Equal(t, "[accepted]", mode)
	f.fake.set(func(l *fakeLog) { l.barrier = braid.ErrReadTimeout })
	eventually(t, "the state to be old", func() bool {
		_, _, err := one.put(putOf("k", "2"), metadataMode, modeAccepted)
		return status.Code(err) == codes.FailedPrecondition
	})
}

// With a member that does not answer AuthEnable takes as long as that member may answer early.
func TestAuthEnableWaitsForMembersThatDoNotAnswer(t *testing.T) {
	f, one := early(t, 60*time.Millisecond)
	f.rooted(t)
	f.fake.set(func(l *fakeLog) { l.members = append(l.members, braid.Member{ID: 0x20}); l.silent = true })
	began := time.Now()
	require.NoError(t, second(f.client.AuthEnable(one.ctx)))
	require.GreaterOrEqual(t, time.Since(began), 60*time.Millisecond)
}

// Three members of which one applies late: no put without a user takes effect once AuthEnable was acknowledged.
func TestAuthEnableWithAMemberThatLags(t *testing.T) {
	t.Parallel()
	slow := &slowMachine{}
	c := startReal(t, 3, onLCR, func(cfg *Config) {
		cfg.openLog = func(o braid.Options, sm braid.DurableStateMachine) (Log, error) {
			return braid.Open(o, slow.of(o.Self, sm))
		}
	})
	client, late := c.client(c.leader()), c.lanes(t, c.follower())
	ctx := testContext(t)
	require.NoError(t, second(client.UserAdd(ctx, "root", "r")))
	require.NoError(t, second(client.UserGrantRole(ctx, "root", "root")))
	eventually(t, "a put that is accepted", func() bool {
		mode, _, err := late.put(putOf("k", ""), metadataMode, modeAccepted)
		return err == nil && mode == "[accepted]"
	})
	slow.member.Store(uint64(c.follower()))
	require.NoError(t, second(client.AuthEnable(ctx)))
	for i := range 20 {
		_, _, err := late.put(putOf("stranger", ""), metadataMode, modeAccepted)
		require.Error(t, err, i)
	}
	slow.member.Store(0)
	root := c.servers[c.leader()]
	require.NoError(t, root.log.Read(ctx, braid.ReadOptions{Barrier: true}))
	resp, err := root.store.Range(root.store.Auth().WithRoot(ctx), &pb.RangeRequest{Key: []byte("stranger")})
	require.NoError(t, err)
	require.Empty(t, resp.Kvs)
}

// slowMachine has one member apply late.
type slowMachine struct{ member atomic.Uint64 }

func (s *slowMachine) of(id braid.MemberID, sm braid.DurableStateMachine) braid.DurableStateMachine {
	return &slowly{machine: sm.(*machine), late: func() bool { return s.member.Load() == uint64(id) }}
}

type slowly struct {
	*machine
	late func() bool
}

// Apply implements braid.StateMachine.
func (s *slowly) Apply(commands []braid.Command) error {
	if s.late() {
		<-time.After(100 * time.Millisecond)
	}
	return s.applyEntries(commands)
}

// A quota of a prefix is acknowledged when everything that was answered early is applied. From then on puts of such
// keys are answered when they are applied, and refused then.
func TestNoPutBelowAQuotaIsAnsweredEarly(t *testing.T) {
	f, one := early(t, time.Hour)
	for _, key := range []string{"q/1", "q/2"} {
		mode, _, err := one.put(putOf(key, "v"), metadataMode, modeAccepted)
		require.NoError(t, err)
		require.Equal(t, "[accepted]", mode)
	}
	e, err := f.store.EncodeAccepted(putOf("q/3", "v"))
	require.NoError(t, err)
	require.Empty(t, f.stored(t, "q/2"))
	usages, err := SetPrefixQuota(one.ctx, f.client.ActiveConnection(), PrefixQuota{Prefix: "q/", Keys: 1})
	require.NoError(t, err)
	require.EqualValues(t, 2, usages[0].UsedKeys)
	require.Equal(t, "v", f.stored(t, "q/2"))
	_, _, err = one.put(putOf("q/1", "v"), metadataMode, modeAccepted)
	require.Equal(t, codes.FailedPrecondition, status.Code(err))
	mode, _, err := one.put(putOf("q/1", "w"), metadataMode, modeConfirmed)
	require.NoError(t, err)
	require.Equal(t, "[confirmed]", mode)
	_, token, err := f.early.answer(one.ctx, putOf("q/3", "v"), &e, &braid.Accepted{})
	require.NoError(t, err)
	require.Empty(t, token, "it is not answered early any more")
}
