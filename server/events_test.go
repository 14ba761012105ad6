package server

import (
	"errors"
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/braidlog/braid"
	"github.com/braidlog/braid/protocol"
	"github.com/braidlog/braid/server/internal/history"
	"github.com/braidlog/braid/server/internal/page"
)

// eventsOf are the events of observations in words. Those without a time are a second apart.
func eventsOf(observations ...*observation) (out []string) {
	for _, e := range loggedOf(observations...) {
		out = append(out, e.Text)
	}
	return out
}

// loggedOf are the events of observations.
func loggedOf(observations ...*observation) []history.Event {
	h := history.New("b")
	names := map[uint64]string{1: "m1", 2: "m2", 3: "m3"}
	log := eventLog{logger: slog.New(history.NewHandler(slog.DiscardHandler, h, 2,
		func(id uint64) string { return names[id] }))}
	for i, m := range observations {
		m.Self = 2
		if m.At.IsZero() {
			m.At = time.Unix(int64(100+i), 0)
		}
		log.observe(m)
	}
	return h.Since(history.Position{}).Events
}

// led is an observation with the leaders of instances, all in one term.
func led(term braid.Term, leaders ...braid.MemberID) *observation {
	m := &observation{}
	for i, leader := range leaders {
		m.Instances = append(m.Instances,
			braid.InstanceStatus{Instance: braid.InstanceID(i + 1), Leader: leader, Term: term})
	}
	return m
}

func TestEventsOfLeaders(t *testing.T) {
	lost := led(4, 0)
	lost.Links.Peers = []braid.PeerStats{{ID: 1, Connected: true, Heard: time.Unix(99, 800e6)}}
	stands := led(5, 0)
	stands.Instances[0].Role = protocol.Candidate
	require.Equal(t, []string{
		"m2 follows m1, term 4",
		"m2 lost its leader m1: nothing came from it for 2.2 s",
		"m2 stands for election in term 5",
		"m2 leads in term 5, after 4.2 s without a leader",
		"m3 leads in term 6, in place of m2",
	}, eventsOf(led(3, 0), led(4, 1), lost, stands, led(5, 2), led(6, 3)))

	require.Equal(t, []string{"m2 lost its leader m1: an election began in term 5"}, eventsOf(led(4, 1), led(5, 0)))

	lost = led(4, 0)
	lost.Links.Peers = []braid.PeerStats{{ID: 1, LastError: "refused"}}
	require.Equal(t, []string{"m2 lost its leader m1: the link to it is down: refused"},
		eventsOf(led(4, 1), lost))
}

// A member that no longer leads logs the reason, if it knows one. A handover or a later term is no fault.
func TestEventsOfAFormerLeader(t *testing.T) {
	silent := func(m *observation, ids ...braid.MemberID) *observation {
		for _, id := range ids {
			m.Links.Peers = append(m.Links.Peers, braid.PeerStats{ID: id, Connected: true, Heard: time.Unix(90, 0)})
		}
		return m
	}
	drained := led(5, 0)
	drained.Drained = true
	stalled := led(4, 0)
	stalled.Log.SyncStart = time.Unix(99, 0)
	moved := led(5, 3)
	moved.Log.SyncStart = time.Unix(99, 0)
	for want, now := range map[string]*observation{
		"info m2 no longer leads: it is drained":                                        drained,
		"info m2 no longer leads: an election began in term 5":                          led(5, 0),
		"warn m2 no longer leads: 2 of 2 other members do not answer":                   silent(led(4, 0), 1, 3),
		"warn m2 no longer leads":                                                       led(4, 0),
		"warn m2 no longer leads: its disk was stalled for 2.0 s":                       stalled,
		"info m3 leads in term 5, in place of m2: the disk of m2 was stalled for 2.0 s": moved,
	} {
		e := loggedOf(led(4, 2), now)
		require.Equal(t, want, e[0].Level+" "+e[0].Text)
	}
	stalls, writes := led(4, 2), led(4, 2)
	stalls.Log.SyncStart = time.Unix(99, 0)
	require.Equal(t, "m3 leads in term 5, in place of m2: the disk of m2 was stalled for 3.0 s",
		eventsOf(led(4, 2), stalls, writes, led(5, 3))[2], "it is reported after the disk writes again")
}

// Instances with the same change are one event. A change of their number is no change of leaders.
func TestEventsOfInstances(t *testing.T) {
	require.Equal(t, []string{
		"m2 lost its leader m1 of instances 1, 3: " + stoppedHeartbeats,
		"m2 follows m3 in instances 1, 3, term 4, after 1.0 s without a leader",
		"the log is made of 1 instances, in place of 3",
	}, eventsOf(led(4, 1, 2, 1), led(4, 0, 2, 0), led(4, 3, 2, 3), led(4, 3)))
}

func TestEventsOfMembers(t *testing.T) {
	with := func(members ...braid.Member) *observation {
		return &observation{Status: braid.Status{Members: members}}
	}
	one := braid.Member{ID: 1, Name: "m1", PeerURLs: []string{"http://a"}}
	learner := braid.Member{ID: 3, Name: "m3", Learner: true}
	voter := braid.Member{ID: 3, Name: "m3", Zone: "z"}
	moved := one
	moved.PeerURLs = []string{"http://b"}
	require.Equal(t, []string{
		"m3 was added as a learner",
		"m3 became a voter",
		`m3 is in zone "z"`,
		"m1 has the peer URLs http://b",
		"m3 was removed",
	}, eventsOf(with(one), with(one, learner), with(one, voter), with(moved, voter), with(moved)))
}

func TestEventsOfAlarms(t *testing.T) {
	raised := &observation{alarms: []page.Alarm{{Name: "NOSPACE", Member: 1}},
		remedy: func(a *page.Alarm) string { return fmt.Sprintf("Free space on %s.", a.Member) }}
	require.Equal(t, []string{
		"the alarm NOSPACE is raised for m1. Free space on 1.",
		"the alarm NOSPACE for m1 has ended",
	}, eventsOf(&observation{}, raised, raised, &observation{}))
	require.Equal(t, []string{"the alarm NOSPACE is raised for m1. Free space on 1."}, eventsOf(raised, raised),
		"also one that is raised when the member starts")
}

// Damage that is repaired is an event, with how much is left.
func TestEventsOfRepairs(t *testing.T) {
	disk := func(damaged, mended, bodies uint64) *observation {
		m := &observation{}
		m.Disk.Damaged, m.Disk.Mended, m.Bodies.Repaired = damaged, mended, bodies
		if damaged > mended {
			m.Disk.Failing = errors.New("a record is damaged")
		}
		return m
	}
	require.Equal(t, []string{
		"damage on the disk of m2 is repaired or no longer matters: places 1, left 2 (a record is damaged)",
		"damage on the disk of m2 is repaired or no longer matters: places 3",
	}, eventsOf(disk(0, 0, 0), disk(3, 0, 0), disk(3, 1, 0), disk(3, 1, 0), disk(3, 3, 1)))
}

// A disk that stalls is one event, and its end another. An observation older than the last one is ignored.
func TestEventsOfTheDisk(t *testing.T) {
	writing := func(at, since int) *observation {
		m := &observation{Status: braid.Status{At: time.Unix(int64(at), 0)}}
		if since > 0 {
			m.Log.SyncStart = time.Unix(int64(since), 0)
		}
		return m
	}
	require.Equal(t, []string{
		"the disk of m2 is stalled: a write to the log takes more than 3.0 s. " + diskRemedy,
		"the disk of m2 writes again, after 6.0 s",
	}, eventsOf(writing(100, 0), writing(103, 100), writing(104, 100), writing(101, 0), writing(106, 105)))
}

func TestEventsOfEpochs(t *testing.T) {
	epoch := func(number uint64, banned ...braid.MemberID) *observation {
		m := led(1, 2)
		until := []uint64{9}[:len(banned)]
		m.Instances[0].Epoch = &braid.EpochStatus{Number: number, Banned: banned, BannedUntil: until}
		return m
	}
	require.Equal(t, []string{
		"m1 leads no slots from epoch 5 on, until epoch 9: it was suspected",
		"m1 leads slots again from epoch 9 on",
	}, eventsOf(epoch(4), epoch(5, 1), epoch(6, 1), epoch(9)))
}
