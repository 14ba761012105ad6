package server

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/braidlog/braid"
	"github.com/braidlog/braid/protocol"
	"github.com/braidlog/braid/server/internal/history"
	"github.com/braidlog/braid/server/internal/page"
)

// chronicled runs a chronicle through moments, a second apart unless they have a time, and returns its events in words.
func chronicled(t *testing.T, moments ...*moment) []string {
	h := history.New("b")
	names := map[uint64]string{1: "m1", 2: "m2", 3: "m3"}
	c := chronicle{logger: slog.New(history.NewHandler(slog.DiscardHandler, h, 2,
		func(id uint64) string { return names[id] }))}
	for i, m := range moments {
		m.Self = 2
		if m.At.IsZero() {
			m.At = time.Unix(int64(100+i), 0)
		}
		c.note(m)
	}
	var out []string
	for _, e := range h.Since(history.Position{}).Events {
		out = append(out, e.Text)
	}
	return out
}

// led is a moment with the leaders of instances, all in a term.
func led(term braid.Term, leaders ...braid.MemberID) *moment {
	m := &moment{}
	for i, leader := range leaders {
		m.Instances = append(m.Instances, braid.InstanceStatus{Instance: braid.InstanceID(i + 1), Leader: leader, Term: term})
	}
	return m
}

func TestChronicleOfLeaders(t *testing.T) {
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
	}, chronicled(t, led(3, 0), led(4, 1), lost, stands, led(5, 2), led(6, 3)))

	lost = led(4, 0)
	lost.Links.Peers = []braid.PeerStats{{ID: 1, LastError: "refused"}}
	require.Equal(t, []string{"m2 lost its leader m1: the link to it is down: refused"},
		chronicled(t, led(4, 1), lost))
}

// Instances that change together are one event, and those of another number have nothing in common.
func TestChronicleOfInstances(t *testing.T) {
	require.Equal(t, []string{
		"m2 lost its leader m1 of instances 1, 3",
		"m2 follows m3 in instances 1, 3, term 4, after 1.0 s without a leader",
		"the log is made of 1 instances, in place of 3",
	}, chronicled(t, led(4, 1, 2, 1), led(4, 0, 2, 0), led(4, 3, 2, 3), led(4, 3)))
}

func TestChronicleOfMembers(t *testing.T) {
	with := func(members ...braid.Member) *moment { return &moment{Status: braid.Status{Members: members}} }
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
	}, chronicled(t, with(one), with(one, learner), with(one, voter), with(moved, voter), with(moved)))
}

func TestChronicleOfAlarms(t *testing.T) {
	raised := &moment{alarms: []page.Alarm{{Name: "NOSPACE", Member: 1}},
		remedy: func(a *page.Alarm) string { return fmt.Sprintf("Free space on %s.", a.Member) }}
	require.Equal(t, []string{
		"the alarm NOSPACE is raised for m1. Free space on 1.",
		"the alarm NOSPACE for m1 has ended",
	}, chronicled(t, &moment{}, raised, raised, &moment{}))
}

// A disk that stands still is told once, and when it writes again. A moment that is older than the one before is left
// out.
func TestChronicleOfTheDisk(t *testing.T) {
	writing := func(at, since int) *moment {
		m := &moment{Status: braid.Status{At: time.Unix(int64(at), 0)}}
		if since > 0 {
			m.Log.SyncStart = time.Unix(int64(since), 0)
		}
		return m
	}
	require.Equal(t, []string{
		"the disk of m2 stands still: a write to the log takes more than 3.0 s",
		"the disk of m2 writes again, after 6.0 s",
	}, chronicled(t, writing(100, 0), writing(103, 100), writing(104, 100), writing(101, 0), writing(106, 105)))
}

func TestChronicleOfEpochs(t *testing.T) {
	epoch := func(number uint64, banned ...braid.MemberID) *moment {
		m := led(1, 2)
		m.Instances[0].Epoch = &braid.EpochStatus{Number: number, Banned: banned, BannedUntil: []uint64{9}[:len(banned)]}
		return m
	}
	require.Equal(t, []string{
		"m1 leads no slots from epoch 5 on, until epoch 9: it was suspected",
		"m1 leads slots again from epoch 9 on",
	}, chronicled(t, epoch(4), epoch(5, 1), epoch(6, 1), epoch(9)))
}

// However often strangers are refused, that is one line a minute, with their number.
func TestTallies(t *testing.T) {
	var out bytes.Buffer
	logger := slog.New(slog.NewTextHandler(&out, nil))
	r, now := newRefusals(), time.Unix(1000, 0)
	for second := range 100 {
		for range 7 {
			r.logins.add("10.0.0.1:1", errors.New("wrong"))
		}
		r.log(logger, now.Add(time.Duration(second)*time.Second))
	}
	require.Equal(t, 2, strings.Count(out.String(), "event=login-failed"), out.String())
	require.Contains(t, out.String(), "count=7 ")
	require.Contains(t, out.String(), "count=420 ")
}
