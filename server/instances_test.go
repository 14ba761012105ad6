package server

import (
	"context"
	"net/http"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/braidlog/braid"
	"github.com/braidlog/braid/internal/store"
	"github.com/braidlog/braid/protocol"
	"github.com/braidlog/braid/server/internal/page"
)

// woven makes the fake log pretend that a second instance is merged with the first. more changes the second's status.
func woven(more func(st *braid.Status)) func(*fakeLog) {
	return func(l *fakeLog) {
		l.amend = func(st *braid.Status) {
			st.Order, st.Begun, st.Next = braid.OrderNiagara, 3, braid.Slot{Round: 12, Instance: 2}
			second := st.Instances[0]
			second.Instance, second.Term, second.Commit, second.Last = 2, 7, 30, 40
			second.Leader, second.Role = 0x20, protocol.Follower
			second.Peers = nil
			st.Instances = append(st.Instances, second)
			st.Progress = []braid.InstanceProgress{
				{Instance: 1, Applied: 5, AppliedRounds: 12, CommittedRounds: 64, AppendedRounds: 64, Skips: 3},
				{Instance: 2, Applied: 28, Waiting: 2, AppliedRounds: 11, CommittedRounds: 13, AppendedRounds: 15,
					Wanted: braid.Slot{Round: 15, Instance: 2}},
			}
			if more != nil {
				more(st)
			}
		}
	}
}

func TestStatusOfInstances(t *testing.T) {
	f := start(t)
	ctx := testContext(t)
	eventually(t, "the name", func() bool { return f.view(testContext(t)).Members[0].Name == "one" })
	f.fake.set(func(l *fakeLog) {
		l.members = append(l.members, braid.Member{ID: 0x20, Name: "two"})
		woven(func(st *braid.Status) {
			st.Instances[0].Peers = []protocol.PeerStatus{{ID: 0x20, Active: true, Match: st.Instances[0].Last,
				InflightBytes: 5}}
			third := st.Instances[1]
			third.Instance, third.Leader, third.Last = 3, 0x10, 50
			third.Peers = []protocol.PeerStatus{{ID: 0x20, Match: 41, InflightBytes: 7, Lacking: true}}
			st.Instances = append(st.Instances, third)
		})(l)
	})
	st, err := f.client.Status(ctx, f.addr)
	require.NoError(t, err)
	require.EqualValues(t, 0x10, st.Leader)
	require.EqualValues(t, 2, st.RaftTerm, "the first instance's")
	position := f.log.Status().Applied
	require.EqualValues(t, position, st.RaftAppliedIndex)
	require.EqualValues(t, position+2, st.RaftIndex)
	require.Empty(t, st.Errors)

	v := f.view(testContext(t))
	require.Equal(t, &page.Slot{Round: 12, Instance: 2}, v.Next)
	require.Equal(t, "niagara", v.Order)
	require.Equal(t, 3, v.Begun)
	require.Equal(t, uint64(f.log.Status().Applied), v.Applied) // the read that shows it is ready is ordered, too
	require.Equal(t, &page.Rounds{Applied: 11, Committed: 13, Appended: 15, Wanted: &page.Slot{Round: 15, Instance: 2}},
		v.Instances[1].Rounds)
	require.Equal(t, []uint64{28, 30, 2}, []uint64{v.Instances[1].Applied, v.Instances[1].Commit, v.Instances[1].ApplyLag})
	require.Equal(t, []page.Peer{{ID: "20", Match: 41, Lag: 9, InflightBytes: 7, Lacking: true}}, v.Instances[2].Peers)
	two := v.Members[1] // the worst of what instances 1 and 3 know
	require.Equal(t, []any{false, uint64(41), uint64(9), 12, true},
		[]any{*two.Active, *two.Match, *two.Lag, *two.InflightBytes, *two.Lacking})

	_, metrics := f.fetch(t, "/metrics")
	for _, want := range []string{
		`braid_term{instance="2"} 7`, `braid_instance_has_leader{instance="2"} 1`, `braid_instance_is_leader{instance="1"} 1`,
		`braid_instance_is_leader{instance="2"} 0`, `braid_instance_commit_index{instance="2"} 30`,
		`braid_instance_applied_index{instance="2"} 28`,
		`braid_instance_apply_lag{instance="2"} 2`, `braid_rounds_applied{instance="2"} 11`,
		`braid_rounds_committed{instance="1"} 64`,
		`braid_rounds_appended{instance="2"} 15`, `braid_rounds_wanted{instance="2"} 15`, `braid_skips_total{instance="1"} 3`,
		`braid_peer_match_index{instance="3",member="20"} 41`, "braid_apply_lag 2", "etcd_server_has_leader 1",
	} {
		require.Contains(t, metrics, "\n"+want+"\n")
	}
}

func TestAnInstanceWithoutALeader(t *testing.T) {
	f := start(t)
	ctx := testContext(t)
	f.fake.set(woven(func(st *braid.Status) { st.Instances[1].Leader = 0 }))
	eventually(t, "an error in the status", func() bool {
		st, err := f.client.Status(ctx, f.addr)
		return err == nil && len(st.Errors) == 1 && st.Errors[0] == "etcdserver: no leader" && st.Leader == 0x10
	})
	code, body := f.fetch(t, "/health")
	require.Equal(t, http.StatusServiceUnavailable, code)
	require.Contains(t, body, "RAFT NO LEADER")
	_, metrics := f.fetch(t, "/metrics")
	require.Contains(t, metrics, "\netcd_server_has_leader 0\n")
	require.Contains(t, metrics, "\netcd_server_is_leader 1\n")

	w := f.rawWatch(t, clientv3.WithRequireLeader(ctx))
	_, err := w.stream.Recv()
	requireStatus(t, rpctypes.ErrGRPCNoLeader, err)
	f.fake.set(woven(nil))
	eventually(t, "health", func() bool { code, _ := f.fetch(t, "/health"); return code == http.StatusOK })
}

// A learner is ready according to every instance's leader. The fake log has this member answer for the other one.
func TestPromotionAsksEveryLeader(t *testing.T) {
	f := start(t)
	ctx := testContext(t)
	added, err := f.client.MemberAddAsLearner(ctx, []string{"http://127.0.0.1:2"})
	require.NoError(t, err)
	peers := func(match protocol.Index) []protocol.PeerStatus {
		return []protocol.PeerStatus{{ID: braid.MemberID(added.Member.ID), Match: match}}
	}
	state := func(leader braid.MemberID, match protocol.Index) {
		f.fake.set(woven(func(st *braid.Status) {
			st.Instances[0].Peers = peers(1 << 20)
			st.Instances[1].Leader, st.Instances[1].Peers = leader, peers(match)
		}))
	}
	for _, s := range []struct {
		leader braid.MemberID
		match  protocol.Index
	}{{0, 1 << 20}, {0x10, 1}, {0x10, 35}} {
		state(s.leader, s.match)
		_, err = f.client.MemberPromote(ctx, added.Member.ID)
		require.ErrorIs(t, err, rpctypes.ErrMemberLearnerNotReady)
	}
	state(0x20, 36)
	promoted, err := f.client.MemberPromote(ctx, added.Member.ID)
	require.NoError(t, err)
	require.False(t, promoted.Members[1].IsLearner)
}

// The claim of a leader before may take its place in the log after that of the leader now, whose leases it claims and
// does not keep: the leader claims them again.
func TestLateClaimIsAnswered(t *testing.T) {
	f := start(t)
	ctx := testContext(t)
	eventually(t, "the leases", f.store.Leases().IsPrimary)
	other, err := store.Open(store.Options{Dir: filepath.Join(t.TempDir(), "other"), ClusterID: 0x77, MemberID: 0x20,
		NoSync: true, BcryptCost: 4})
	require.NoError(t, err)
	defer other.Close()
	_, err = f.fake.Propose(ctx, other.Leases().Claim())
	require.NoError(t, err)
	eventually(t, "the leases again", func() bool {
		return f.store.Leases().IsPrimary() && f.store.Leases().Primary() == 0x10
	})
	granted, err := f.client.Grant(ctx, 60)
	require.NoError(t, err)
	alive, err := pb.NewLeaseClient(f.client.ActiveConnection()).LeaseTimeToLive(ctx,
		&pb.LeaseTimeToLiveRequest{ID: int64(granted.ID)})
	require.NoError(t, err)
	require.EqualValues(t, 60, alive.GrantedTTL)
}

func TestTune(t *testing.T) {
	f := start(t)
	ctx, conn := testContext(t), f.client.ActiveConnection()
	f.fake.set(func(l *fakeLog) {
		l.tunables = []braid.Tunable{{Name: "lease-reads", Value: "false", Waits: "a majority"}}
	})
	shown, err := Tune(ctx, conn, braid.Tuning{})
	require.NoError(t, err)
	require.Equal(t, f.fake.tunables, shown.Settings)
	want := braid.Tuning{Set: map[string]string{"lease-reads": "true", "code-k": ""}, Version: 3}
	tuned, err := Tune(ctx, conn, want)
	require.NoError(t, err)
	require.EqualValues(t, 4, tuned.Profile.Version)
	require.Equal(t, want.Set, tuned.Profile.Settings)
	f.fake.set(func(l *fakeLog) { require.Equal(t, want, l.tuned) })
	for code, refusal := range map[codes.Code]error{
		codes.Unavailable:        &braid.TuneError{Reason: "a member is away", Retry: true},
		codes.FailedPrecondition: &braid.RefusedError{What: "tune", Reason: protocol.ReasonFixed},
		codes.Aborted:            braid.ErrProfileReplaced,
		codes.InvalidArgument:    braid.ErrNotTunable,
	} {
		f.fake.set(func(l *fakeLog) { l.untuned = refusal })
		_, err = Tune(ctx, conn, want)
		require.Equal(t, code, status.Code(err), "%v", err)
	}
}

func TestSwitch(t *testing.T) {
	f := start(t)
	ctx, conn := testContext(t), f.client.ActiveConnection()
	want := braid.Switch{Protocol: "iss", Settings: map[string]string{"relays": "2", "quorums": ""}, Version: 3}
	plan, err := PlanSwitch(ctx, conn, want)
	require.NoError(t, err)
	require.Equal(t, braid.SwitchPlan{Version: 3, Seal: 4, Protocol: "iss"}, plan)
	f.fake.set(func(l *fakeLog) { require.Zero(t, l.switched) })
	p, err := Switch(ctx, conn, want)
	require.NoError(t, err)
	require.Equal(t, braid.Profile{Version: 4, Protocol: "iss", Settings: want.Settings}, p)
	f.fake.set(func(l *fakeLog) { require.Equal(t, want, l.switched) })
	for code, refusal := range map[codes.Code]error{
		codes.Unavailable:        &braid.SwitchError{Reason: "a member is away", Retry: true},
		codes.FailedPrecondition: &braid.SwitchError{Reason: "no"},
		codes.Aborted:            braid.ErrProfileReplaced,
		codes.InvalidArgument:    braid.ErrNotTunable,
	} {
		f.fake.set(func(l *fakeLog) { l.unswitched = refusal })
		_, err = Switch(ctx, conn, want)
		require.Equal(t, code, status.Code(err), "%v", err)
		_, err = PlanSwitch(ctx, conn, want)
		require.Equal(t, code, status.Code(err), "%v", err)
	}
}

// TestSettingsAreShownWithoutALeader: they are the member's own, and may be what explains an election.
func TestSettingsAreShownWithoutALeader(t *testing.T) {
	f := start(t)
	ctx, conn := testContext(t), f.client.ActiveConnection()
	f.fake.set(func(l *fakeLog) {
		l.leader, l.barrier = 0, braid.ErrReadTimeout
		l.tunables = []braid.Tunable{{Name: "lease-reads", Value: "true", Waits: "a majority"}}
	})
	eventually(t, "the loss of the leader", func() bool { return !f.self.Load().led })
	shown, err := Tune(ctx, conn, braid.Tuning{})
	require.NoError(t, err)
	require.Equal(t, f.fake.tunables, shown.Settings)
}

// TestChangesWaitAsLongAsTheCaller: the time for a request is shorter than what a change may take.
func TestChangesWaitAsLongAsTheCaller(t *testing.T) {
	f := start(t)
	conn := f.client.ActiveConnection()
	left := func() (left time.Duration) {
		f.fake.set(func(l *fakeLog) { left = time.Until(l.until) })
		return left
	}
	for _, change := range []func(ctx context.Context) error{
		func(ctx context.Context) error {
			_, err := Tune(ctx, conn, braid.Tuning{Set: map[string]string{"lease-reads": "true"}})
			return err
		},
		func(ctx context.Context) error { return Reshape(ctx, conn, 2) },
		func(ctx context.Context) error {
			_, err := Switch(ctx, conn, braid.Switch{Protocol: "iss"})
			return err
		},
	} {
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		require.NoError(t, change(ctx))
		cancel()
		require.Greater(t, left(), 50*time.Minute)
		f.fake.set(func(l *fakeLog) { l.unread = 3 })
		require.NoError(t, change(t.Context()), "there is a leader after some time")
		require.LessOrEqual(t, left(), longestChange)
		require.Greater(t, left(), f.timeout)
	}
}

func TestReshape(t *testing.T) {
	f := start(t)
	ctx := testContext(t)
	conn := f.client.ActiveConnection()
	f.fake.set(woven(nil))
	for _, n := range []int{0, 65} {
		require.Equal(t, codes.InvalidArgument, status.Code(Reshape(ctx, conn, n)))
	}
	require.NoError(t, Reshape(ctx, conn, 8))
	f.fake.set(func(l *fakeLog) {
		require.Equal(t, 8, l.instances)
		l.refuse = &braid.RefusedError{What: "reshape", Reason: protocol.ReasonChangePending}
	})
	require.Equal(t, codes.Unavailable, status.Code(Reshape(ctx, conn, 4)))
	f.fake.set(func(l *fakeLog) { l.refuse = nil })

	for _, name := range []string{"root", "alice"} {
		_, err := f.client.UserAdd(ctx, name, "pw")
		require.NoError(t, err)
	}
	_, err := f.client.UserGrantRole(ctx, "root", "root")
	require.NoError(t, err)
	_, err = f.client.AuthEnable(ctx)
	require.NoError(t, err)
	require.Error(t, Reshape(ctx, conn, 4), "nobody may")
	alice := f.dial(t, clientv3.Config{Username: "alice", Password: "pw"})
	require.Equal(t, codes.PermissionDenied, status.Code(Reshape(ctx, alice.ActiveConnection(), 4)))
	root := f.dial(t, clientv3.Config{Username: "root", Password: "pw"})
	require.NoError(t, Reshape(ctx, root.ActiveConnection(), 4))
}
