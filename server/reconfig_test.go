package server

import (
	"testing"

	"github.com/stretchr/testify/require"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"

	"github.com/braidlog/braid"
	"github.com/braidlog/braid/protocol"
)

// among starts a member that is one of some. Names of members that have not started are "".
func among(t *testing.T, reached []braid.MemberID, others []braid.Member, change ...func(*Config)) *fixture {
	f := start(t, change...)
	eventually(t, "name and client URLs", func() bool { return len(f.cluster.find(0x10).ClientURLs) == 1 })
	f.fake.set(func(l *fakeLog) {
		l.members = append(l.members, others...)
		l.amend = func(st *braid.Status) {
			for _, id := range reached {
				st.Links.Peers = append(st.Links.Peers, braid.PeerStats{ID: id, Connected: true})
			}
		}
	})
	return f
}

func others(names ...string) (all []braid.Member) {
	for i, name := range names {
		all = append(all, braid.Member{ID: braid.MemberID(i + 1), Name: name})
	}
	return all
}

// TestStrictReconfig has etcd's conditions, each with the least cluster in which it holds and in which it does not. Ids
// are 0x10 of the member that is asked, and 1, 2, … of the others.
func TestStrictReconfig(t *testing.T) {
	lax := func(c *Config) { c.LaxReconfig = true }
	joining := append(others("two"), braid.Member{ID: 2, Learner: true, Joining: true})
	learner := braid.Member{ID: 9, Learner: true}
	type ids = []braid.MemberID
	for name, c := range map[string]struct {
		others  []braid.Member
		reached ids
		do      string
		id      uint64
		want    error
	}{
		"one grows":                          {nil, nil, "add", 0, nil},
		"a second was added":                 {others(""), ids{1}, "add", 0, rpctypes.ErrMemberNotEnoughStarted},
		"a second was added, and a learner":  {others(""), ids{1}, "learn", 0, nil},
		"two of three have started":          {joining, ids{1, 2}, "add", 0, rpctypes.ErrMemberNotEnoughStarted},
		"three have started":                 {others("two", "three"), ids{1, 2}, "add", 0, nil},
		"one of three is cut off":            {others("two", "three"), ids{1}, "add", 0, rpctypes.ErrUnhealthy},
		"one of three is cut off: a learner": {others("two", "three"), ids{1}, "learn", 0, rpctypes.ErrUnhealthy},
		"one of four is cut off":             {others("two", "three", "four"), ids{1, 2}, "add", 0, nil},

		"the last one":                   {nil, nil, "remove", 0x10, rpctypes.ErrMemberNotEnoughStarted},
		"the one that started":           {others(""), ids{1}, "remove", 0x10, rpctypes.ErrMemberNotEnoughStarted},
		"the one that did not start":     {others(""), nil, "remove", 1, nil},
		"one of two":                     {others("two"), ids{1}, "remove", 1, nil},
		"one of two that is cut off":     {others("two"), nil, "remove", 1, nil},
		"one of three":                   {others("two", "three"), ids{1, 2}, "remove", 1, nil},
		"one of three that is cut off":   {others("two", "three"), ids{2}, "remove", 1, nil},
		"one of three, another cut off":  {others("two", "three"), ids{1}, "remove", 1, rpctypes.ErrUnhealthy},
		"itself, another cut off":        {others("two", "three"), ids{1}, "remove", 0x10, rpctypes.ErrUnhealthy},
		"one of four, another cut off":   {others("2", "3", "4"), ids{1, 2}, "remove", 1, nil},
		"one of five, another cut off":   {others("2", "3", "4", "5"), ids{1, 2, 3}, "remove", 1, nil},
		"one of five, two cut off":       {others("2", "3", "4", "5"), ids{1, 2}, "remove", 1, rpctypes.ErrUnhealthy},
		"a learner, another cut off":     {append(others("two"), learner), nil, "remove", 9, nil},
		"a member that is not there":     {others("two"), nil, "remove", 77, rpctypes.ErrMemberNotFound},
		"a learner becomes a voter":      {append(others("two"), learner), nil, "promote", 9, nil},
		"a learner of one becomes voter": {[]braid.Member{learner}, nil, "promote", 9, nil},
		"too few have started": {append(others("", ""), learner), nil, "promote", 9,
			rpctypes.ErrMemberNotEnoughStarted},
	} {
		t.Run(name, func(t *testing.T) {
			require.ErrorIs(t, reconfigure(t, among(t, c.reached, c.others), c.do, c.id), c.want)
			if c.want == rpctypes.ErrMemberNotFound {
				return
			}
			require.NoError(t, reconfigure(t, among(t, c.reached, c.others, lax), c.do, c.id), "the log has its own conditions")
		})
	}
}

func reconfigure(t *testing.T, f *fixture, do string, id uint64) (err error) {
	ctx, url := testContext(t), []string{"http://127.0.0.1:7"}
	switch do {
	case "add":
		_, err = f.client.MemberAdd(ctx, url)
	case "learn":
		_, err = f.client.MemberAddAsLearner(ctx, url)
	case "remove":
		_, err = f.client.MemberRemove(ctx, id)
	case "promote":
		f.fake.set(func(l *fakeLog) { l.peers = []protocol.PeerStatus{{ID: braid.MemberID(id), Match: 1 << 20}} })
		_, err = f.client.MemberPromote(ctx, id)
	}
	return err
}
