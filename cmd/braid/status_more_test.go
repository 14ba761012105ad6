package main

import (
	"testing"

	"github.com/spf13/pflag"
	"github.com/stretchr/testify/require"

	"github.com/braidlog/braid/internal/status"
)

// Variables of etcdctl stand for flags that are not given.
func TestCtlVariables(t *testing.T) {
	complete := func(args ...string) (user string, endpoints []string, err error) {
		var l ctlLogin
		f := pflag.NewFlagSet("", pflag.ContinueOnError)
		f.StringSliceVar(&endpoints, "endpoints", []string{"default"}, "")
		l.flags(f, "")
		require.NoError(t, f.Parse(args))
		user, err = l.complete(f)
		return user, endpoints, err
	}
	user, endpoints, err := complete("--user=a:b")
	require.NoError(t, err)
	require.Equal(t, "a:b", user)
	require.Equal(t, []string{"default"}, endpoints)
	_, _, err = complete("--user=a")
	require.ErrorContains(t, err, "NAME:PASSWORD")

	t.Setenv("ETCDCTL_ENDPOINTS", "x:1,y:2")
	t.Setenv("ETCDCTL_USER", "root")
	t.Setenv("ETCDCTL_PASSWORD", "secret")
	user, endpoints, err = complete()
	require.NoError(t, err)
	require.Equal(t, "root:secret", user)
	require.Equal(t, []string{"x:1", "y:2"}, endpoints)
	user, endpoints, err = complete("--user=a:b", "--endpoints=z:3")
	require.NoError(t, err)
	require.Equal(t, "a:b", user)
	require.Equal(t, []string{"z:3"}, endpoints)
}

// Roles, leaders and terms are shown in the protocol's terms.
func TestRolesInTheWordsOfTheProtocol(t *testing.T) {
	names := func(id string) string { return "m" + id }
	text := func(id string, i status.Instance) string {
		role, leader, term := roleText(status.Member{ID: id}, i, names)
		return role + ", " + leader + ", " + term
	}
	require.Equal(t, "follower, m1, 7", text("2", status.Instance{Role: "follower", Leader: "1", Term: 7}))
	require.Equal(t, "leader, m1, ballot 2.1", text("1", status.Instance{Role: "leader", Leader: "1", Term: 513,
		Ballot: "2.1"}))
	epoch := &status.Epoch{Number: 9, Segments: []status.Segment{{Leader: "1"}, {Leader: "2"}}, Banned: []string{"3"}}
	require.Equal(t, "leads slots, 2 members, epoch 9",
		text("2", status.Instance{Role: "leader", Term: 7, Epoch: epoch}))
	require.Equal(t, "banned, 2 members, epoch 9", text("3", status.Instance{Role: "follower", Epoch: epoch}))
}

// The reasons why members do not answer all requests, and the remedies of alarms, are shown once each.
func TestReasonsOfMembers(t *testing.T) {
	remedy := status.Remedy{Alarm: "NOSPACE", Member: "1", Remedy: "Free space."}
	one := status.Member{Name: "m1", ID: "1", Ready: true, Serving: "reads", Why: "the alarm",
		Remedies: []status.Remedy{remedy}}
	two := status.Member{Name: "m2", ID: "2", Ready: true, Serving: "all", Remedies: []status.Remedy{remedy}}
	require.Equal(t, []string{"m1 answers reads only: the alarm", "NOSPACE: Free space."},
		table(t, "reads only", one, two))
}
