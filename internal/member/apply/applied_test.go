package apply

import (
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/braidlog/braid/internal/member"
	"github.com/braidlog/braid/internal/member/intake"
	"github.com/braidlog/braid/internal/member/membertest"
	"github.com/braidlog/braid/internal/order"
	"github.com/braidlog/braid/protocol"
)

// TestChangesThatAreAppliedTogetherAreSeen: a follower that learns of two membership changes in one commit applies both
// at once. Whoever waits for the first one sees it, although the second one took its place.
func TestChangesThatAreAppliedTogetherAreSeen(t *testing.T) {
	a := newTestApplier(&membertest.History{}, member.Meta{}, 0, nil)
	p := NewApplied(a)
	at := func(url string) protocol.Member { return protocol.Member{ID: 1, PeerURLs: []string{url}} }
	update := func(url string) *ConfigWatch {
		return p.Watch([]protocol.Change{{Kind: protocol.UpdateMember, Member: at(url)}}, false)
	}
	entry := func(index protocol.Index, url string) protocol.Entry {
		config := protocol.Config{Members: []protocol.Member{at(url)}}
		e := protocol.Entry{Index: index, Term: 1, Kind: protocol.EntryConfig, Payload: protocol.EncodeConfig(config)}
		e.SealPayload()
		return e
	}
	first, second, third, late := update("a"), update("b"), update("c"), update("a")
	// The entry that it waits for comes later than the one with the same membership.
	late.After = order.Point{Instance: 1, Index: 2}
	require.NoError(t, a.Apply(intake.CommittedEntries{Instance: 1,
		Entries: []protocol.Entry{entry(1, "a"), entry(2, "b")}}))
	p.NoteConfigs(a)
	require.True(t, first.Seen())
	require.True(t, second.Seen())
	require.False(t, third.Seen())
	require.False(t, late.Seen())
	require.Equal(t, 2, p.Watched())
	require.NoError(t, a.Apply(intake.CommittedEntries{Instance: 1, Entries: []protocol.Entry{entry(3, "a")}}))
	p.NoteConfigs(a)
	require.True(t, late.Seen())
	require.False(t, third.Seen())
}

// TestAStateThatIsNotWhatWasOrderedServesNoRead: what is committed with a membership is ordered, and its commands are
// not applied, because the state is damaged. A read waits until another state has them.
func TestAStateThatIsNotWhatWasOrderedServesNoRead(t *testing.T) {
	sm := &repairable{damage: errors.New("damaged")}
	a := newTestApplier(sm, member.Meta{}, 0, nil)
	p := NewApplied(a)
	config := protocol.Entry{Index: 1, Term: 1, Kind: protocol.EntryConfig,
		Payload: protocol.EncodeConfig(protocol.Config{Members: []protocol.Member{{ID: 1}}})}
	config.SealPayload()
	require.NoError(t, a.Apply(intake.CommittedEntries{Instance: 1,
		Entries: []protocol.Entry{config, membertest.EntryOf(2, membertest.Sealed(2, "x"))}}))
	require.True(t, a.Stuck())
	p.NoteConfigs(a)
	g := new(intake.ReadGroup)
	require.True(t, p.Ask(g, 0, p.Shape(), 0))
	complete, ready, _ := p.AddReadIndex(g, 1, 2)
	require.True(t, complete)
	require.False(t, ready)

	meta := a.Meta()
	require.NoError(t, a.Install(meta, strings.NewReader("")))
	served, _, _, err := p.Note(a)
	require.NoError(t, err)
	require.Equal(t, []*intake.ReadGroup{g}, served)
}

// TestAReadThatIsVoidOnceItIsCompleteIsAskedForAgain: other instances become active while a member asks those before
// them, and nothing is applied after that. The reader must not wait for the next write.
func TestAReadThatIsVoidOnceItIsCompleteIsAskedForAgain(t *testing.T) {
	of := func(instances int) *Applier {
		return newTestApplier(&membertest.History{}, member.Meta{Cursor: order.Begin(instances, true),
			Others: make([]protocol.Config, instances-1)}, 0, nil)
	}
	p := NewApplied(of(1))
	g := new(intake.ReadGroup)
	require.True(t, p.Ask(g, 0, p.Shape(), 0))
	then := of(2)
	p.NoteConfigs(then)
	complete, ready, look := p.AddReadIndex(g, 1, 0)
	require.True(t, complete)
	require.False(t, ready)
	require.True(t, look)
	served, void, _, err := p.Note(then)
	require.NoError(t, err)
	require.Empty(t, served)
	require.Equal(t, []*intake.ReadGroup{g}, void)

	require.True(t, p.Ask(g, 0, p.Shape(), 0))
	for _, id := range p.Shape() {
		_, ready, look = p.AddReadIndex(g, id, 0)
		require.False(t, look)
	}
	require.True(t, ready)
}
