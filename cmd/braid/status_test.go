package main

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/braidlog/braid/internal/status"
	"github.com/braidlog/braid/protocol/setting"
)

// table runs showStatus and returns the lines of the table whose head contains column, with
// one space between cells.
func table(t *testing.T, column string, members ...status.Member) (lines []string) {
	t.Helper()
	var out bytes.Buffer
	require.NoError(t, showStatus(&out, members, false))
	for line := range strings.Lines(out.String()) {
		line = strings.Join(strings.Fields(line), " ")
		switch {
		case strings.Contains(line, column), lines != nil && line != "":
			lines = append(lines, line)
		case lines != nil:
			return lines
		}
	}
	return lines
}

// TestStatusOfQuorums: the tolerated failures are printed if quorums are not majorities.
func TestStatusOfQuorums(t *testing.T) {
	usual := status.Member{Name: "m1", ID: "1", Ready: true, Protocol: "raft"}
	require.Empty(t, table(t, "SETTINGS", usual))
	m1 := status.Member{Name: "m1", ID: "1", Ready: true, Protocol: "iss", Settings: setting.MustParse("quorums=4/2"),
		Tolerance: "quorums 4/2 of 5 voters: so much", Profile: 2}
	m2 := status.Member{Name: "m2", ID: "2", Ready: true, Protocol: "iss",
		Settings: setting.MustParse("relays=2", "other=7")}
	require.Equal(t, []string{
		"MEMBER PROTOCOL PROFILE SETTINGS TOLERANCE",
		"m1 iss 2 quorums=4/2 quorums 4/2 of 5 voters: so much",
		"m2 iss 0 relays=2 -",
	}, table(t, "SETTINGS", m1, m2))
}

// TestStatusOfZones: members are listed by their zones, if one has any, also those that do not answer.
func TestStatusOfZones(t *testing.T) {
	m1 := status.Member{Name: "m1", ID: "1", Ready: true, Members: []status.Peer{{ID: "1", Name: "m1"}}}
	require.Empty(t, table(t, "ZONE", m1))
	m2 := status.Member{Name: "m2", ID: "2", Ready: true, Applied: 7, Members: []status.Peer{
		{ID: "1", Name: "m1", Zone: "west"}, {ID: "2", Name: "m2", Zone: "east"}, {ID: "3", Name: "m3", Zone: "west"},
		{ID: "4"},
	}}
	require.Equal(t, []string{"ZONE MEMBERS", "- 4", "east m2", "west m1, m3"}, table(t, "ZONE", m1, m2))
}

func TestStatusOfBodies(t *testing.T) {
	lacks, holds := true, false
	leader := status.Member{
		Name: "m1", ID: "1", Leader: "1", Ready: true, Placement: "code",
		Bodies: status.Bodies{Held: 3, LiveBytes: 3 << 20, TotalBytes: 64 << 20, Fetched: 2, Served: 4,
			Corrupt: 1, Repaired: 1},
		Instances: []status.Instance{{Instance: 1, Role: "leader", Leader: "1", K: 2}},
		Members: []status.Peer{{ID: "1"}, {ID: "2", Lacking: &lacks}, {ID: "3", Lacking: &holds},
			{ID: "4", Lacking: &lacks}},
	}
	follower := func(name, id string, change func(*status.Member)) status.Member {
		m := status.Member{Name: name, ID: id, Leader: "1", Ready: true, Placement: "code",
			Instances: []status.Instance{{Instance: 1, Leader: "1"}}}
		if change != nil {
			change(&m)
		}
		return m
	}
	got := table(t, "PLACEMENT", leader, follower("m2", "2", nil), follower("m3", "3", nil),
		follower("m4", "4", func(m *status.Member) { m.Bodies.Missing, m.Bodies.Failing = 1, "1 of 2 fragments" }),
		follower("m5", "5", func(m *status.Member) { m.Instances[0].Lacking = true }),
		follower("m6", "6", func(m *status.Member) { m.Instances[0].Preparing = 7 }),
		follower("m7", "7", func(m *status.Member) { m.Bodies.Short = 5 }))
	require.Equal(t, []string{
		"MEMBER PLACEMENT CUT IN BODIES BYTES FILES MISSING FETCHED SERVED DAMAGED REPAIRED STATE",
		"m1 code 2 3 3 MiB 64 MiB 0 2 4 1 1 complete",
		"m2 code - 0 0 B 0 B 0 0 0 0 0 lacks some, its leader says",
		"m3 code - 0 0 B 0 B 0 0 0 0 0 complete",
		"m4 code - 0 0 B 0 B 1 0 0 0 0 cannot restore: 1 of 2 fragments",
		"m5 code - 0 0 B 0 B 0 0 0 0 0 restores what it lacks",
		"m6 code - 0 0 B 0 B 0 0 0 0 0 prepares to lead: 7 to be made whole",
		"m7 code - 0 0 B 0 B 0 0 0 0 0 makes 5 whole, so that members may leave",
	}, got)
	require.Empty(t, table(t, "PLACEMENT", status.Member{Name: "etcd", ID: "1", Ready: true}))
}

func TestStatusOfWovenInstances(t *testing.T) {
	lag := uint64(900)
	rounds := func(applied, committed, appended, skips uint64) *status.Rounds {
		return &status.Rounds{Applied: applied, Committed: committed, Appended: appended, Skips: skips}
	}
	instance := func(id uint64, role, leader string, r *status.Rounds, peers ...status.InstancePeer) status.Instance {
		return status.Instance{Instance: id, Role: role, Leader: leader, Term: 3, Last: 9, Durable: 9, Commit: 8, Applied: 7,
			ApplyLag: id, Rounds: r, Peers: peers}
	}
	m1 := status.Member{
		Name: "m1", ID: "1", Leader: "1", Ready: true, Revision: 40, Applied: 70, Next: &status.Slot{Round: 12, Instance: 2},
		Instances: []status.Instance{
			instance(1, "leader", "1", rounds(12, 64, 64, 2), status.InstancePeer{ID: "2", Lag: 5}),
			instance(2, "follower", "2", rounds(11, 11, 15, 1)),
		},
		Members: []status.Peer{{ID: "1", Name: "m1"}, {ID: "2", Name: "m2", Lag: &lag}},
	}
	m2 := status.Member{
		Name: "m2", ID: "2", Leader: "1", Ready: true, Revision: 39, Applied: 69, Next: &status.Slot{Round: 11, Instance: 2},
		Instances: []status.Instance{
			instance(1, "follower", "1", rounds(11, 64, 64, 0)),
			instance(2, "leader", "2", rounds(10, 12, 16, 7), status.InstancePeer{ID: "1", Lag: 6}),
		},
	}
	require.Equal(t, []string{
		"MEMBER POSITION NEXT LEADS ROUNDS APPLIED COMMITTED APPENDED SKIPS",
		"m1 70 round 12 of 2 1 12 11 64 11 64 15 3",
		"m2 69 round 11 of 2 2 11 10 64 12 64 16 7",
	}, table(t, "ROUNDS", m1, m2))
	require.Equal(t, []string{
		"MEMBER INSTANCE ROLE LEADER TERM LAST DURABLE COMMITTED APPLIED BEHIND",
		"m1 1 leader m1 3 9 9 8 7 0 log, 1 apply",
		"m1 2 follower m2 3 9 9 8 7 6 log, 2 apply",
		"m2 1 follower m1 3 9 9 8 7 5 log, 1 apply",
		"m2 2 leader m2 3 9 9 8 7 0 log, 2 apply",
	}, table(t, "BEHIND", m1, m2))
	require.Empty(t, table(t, "ROUNDS", status.Member{Name: "raft", ID: "1", Ready: true}))
}

func TestStatusOfLanes(t *testing.T) {
	member := func(id, role string, l status.Lanes) status.Member {
		return status.Member{
			Name: "m" + id, ID: id, Leader: "1", Ready: true,
			Instances: []status.Instance{{Instance: 1, Role: role, Leader: "1", Lanes: &l}},
			Members:   []status.Peer{{ID: "1", Name: "m1"}, {ID: "2", Name: "m2"}, {ID: "3", Name: "m3"}},
		}
	}
	lanes := []status.Lane{
		{Member: "2", Life: 3, Confirmed: 7, Durable: 8, Held: 9, HeldBytes: 100},
		{Member: "3", Life: 1, HeldBytes: 256, Held: 2},
		{Member: "3", Life: 2, Own: true, Confirmed: 4, Durable: 5, Held: 6},
	}
	require.Equal(t, []string{
		"MEMBER GENERATION CONFIRMED ACCEPTED HELD FULLEST LANE SENT RECEIVED SPARED SENT WHOLE MISSED REFUSED LANE",
		"m1 2 0 0 0 - 0 B 3 KiB 2 KiB 1 KiB 0 0 leads, and needs none",
		"m3 2 4 5 6 m3: 25% of 1 KiB 3 KiB 5 B 0 B 0 B 8 9 open, accepts",
		"m4 2 0 0 0 - 0 B 0 B 0 B 0 B 0 0 open, confirmed only",
		"m5 0 0 0 0 - 0 B 0 B 0 B 0 B 0 0 not open",
		"m7 2 0 0 0 - 0 B 0 B 0 B 0 B 0 0 open, the leader is nearer",
	}, table(t, "FULLEST",
		member("1", "leader", status.Lanes{Generation: 2, Accepting: true, Received: 3 << 10, Spared: 2 << 10, WholeGroups: 1,
			WholeBytes: 1 << 10}),
		member("3", "follower", status.Lanes{
			Open: true, Accepted: 5, Generation: 2, Accepting: true, Window: 1 << 10, Lanes: lanes, Sent: 3 << 10, Received: 5,
			Missed: 8, Refused: 9,
		}),
		member("4", "follower", status.Lanes{Open: true, Generation: 2}),
		member("5", "follower", status.Lanes{}),
		member("7", "follower", status.Lanes{Open: true, Accepting: true, Generation: 2, ByLeader: true}),
		status.Member{Name: "raft", ID: "6", Ready: true}))
	require.Contains(t, table(t, "FULLEST", member("1", "leader", status.Lanes{Fence: true}))[1],
		"a change of members waits for the fence")
	require.Empty(t, table(t, "FULLEST", status.Member{Name: "raft", ID: "6", Ready: true}))
}

func TestStatusOfEpochs(t *testing.T) {
	member := func(id string, e status.Epoch) status.Member {
		return status.Member{
			Name: "m" + id, ID: id, Leader: "1", Ready: true,
			Instances: []status.Instance{{Instance: 1, Role: "follower", Leader: "1", Epoch: &e}},
			Members:   []status.Peer{{ID: "1", Name: "m1"}, {ID: "2", Name: "m2"}, {ID: "3", Name: "m3"}},
		}
	}
	segments := []status.Segment{{Leader: "1", Decided: 103, Last: 116},
		{Leader: "2", Decided: 110, Last: 117, Ballot: 2, By: "3"}}
	require.Equal(t, []string{
		"MEMBER EPOCH SLOTS BANNED SEGMENTS DECIDED NO VALUE EPOCH'S STATE",
		"m1 7 100 to 117 m3 until 74 m1 103, m2 110 (ballot 2 of m3) 33% of 99 ends",
		"m2 8 118 to 149 - m1 117 0% of 1 under way",
		"m3 8 118 to 149 m2, m3 - - a change of members waits for the next epoch",
		"m1 9 150 to 181 - - - too few members are up",
	}, table(t, "SEGMENTS",
		member("1", status.Epoch{Number: 7, First: 100, Last: 117, Ending: true, Segments: segments, Banned: []string{"3"},
			BannedUntil: []uint64{74}, Slots: 99, Skipped: 33}),
		member("2", status.Epoch{Number: 8, First: 118, Last: 149, Segments: []status.Segment{{Leader: "1", Decided: 117}},
			Slots: 1}),
		member("3", status.Epoch{Number: 8, First: 118, Last: 149, Ending: true, Unsettled: true,
			Banned: []string{"2", "3"}}),
		member("1", status.Epoch{Number: 9, First: 150, Last: 181, NoQuorum: true}),
		status.Member{Name: "raft", ID: "6", Ready: true}))
	require.Empty(t, table(t, "SEGMENTS", status.Member{Name: "raft", ID: "6", Ready: true}))
}

func TestStatusAsJSON(t *testing.T) {
	var out bytes.Buffer
	member := status.Member{Name: "m1", ID: "1", Ready: true, Placement: "code",
		Bodies: status.Bodies{Held: 3, Repaired: 1}}
	require.NoError(t, showStatus(&out, []status.Member{member}, true))
	var got []status.Member
	require.NoError(t, json.Unmarshal(out.Bytes(), &got))
	require.Equal(t, []status.Member{member}, got)
	require.Error(t, showStatus(&out, []status.Member{{Error: "no answer"}}, true))
}
