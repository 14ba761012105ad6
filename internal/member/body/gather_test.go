package body

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/braidlog/braid/internal/erasure"
	"github.com/braidlog/braid/internal/member"
	"github.com/braidlog/braid/internal/wal"
	"github.com/braidlog/braid/protocol"
)

// heldBodies is a store of bodies in memory.
type heldBodies struct {
	held     map[uint64]wal.Body
	damaged  map[uint64]bool
	unsynced map[uint64]bool
}

func newHeld() *heldBodies {
	return &heldBodies{held: map[uint64]wal.Body{}, damaged: map[uint64]bool{}, unsynced: map[uint64]bool{}}
}

func (h *heldBodies) Find(_ uint32, index uint64) (wal.Body, bool) {
	b, ok := h.held[index]
	b.Bytes = nil
	return b, ok
}

func (h *heldBodies) Durable(_ uint32, index uint64) bool { return !h.unsynced[index] }

func (h *heldBodies) Read(_ uint32, index uint64) (wal.Body, error) {
	b, ok := h.held[index]
	switch {
	case h.damaged[index]:
		return b, &wal.CorruptError{File: "1.bod", Detail: "a test did it"}
	case !ok:
		return b, errors.New("not held")
	}
	return b, nil
}

func (h *heldBodies) put(ref protocol.BodyRef, form protocol.Form, body []byte) {
	whole := Fragment{protocol.FormWhole, body}
	bytes, err := whole.Cut(ref.K, form)
	if err != nil {
		panic(err)
	}
	h.held[uint64(ref.Index)] = *member.BodyRecord(ref, form, bytes).Body
}

func someBody(size int) []byte {
	b := make([]byte, size)
	rng := rand.New(rand.NewPCG(uint64(size), 7))
	for i := range b {
		b[i] = byte(rng.Uint32())
	}
	return b
}

func refTo(index protocol.Index, k uint8, body []byte) protocol.BodyRef {
	return protocol.BodyRef{Instance: 1, Index: index, Term: 3, K: k, Size: uint32(len(body)),
		Digest: protocol.Digest(body)}
}

// table is a gatherer, member 1, among members that answer from their stores.
type table struct {
	t       *testing.T
	g       *Gatherer
	out     GatherOutbox
	stores  map[protocol.MemberID]*heldBodies
	silent  map[protocol.MemberID]bool // they get questions and do not answer
	down    map[protocol.MemberID]bool // they cannot be reached
	now     time.Duration
	asked   []protocol.MemberID
	bytes   int // of fragments that were sent
	answers []Answer
}

func membersWithSlots(n int) *protocol.Config {
	c := &protocol.Config{Slots: n}
	for i := range n {
		c.Members = append(c.Members, protocol.Member{ID: protocol.MemberID(i + 1), Slot: uint8(i)})
	}
	return c
}

func newTable(t *testing.T, members int) *table {
	w := &table{
		t: t, stores: map[protocol.MemberID]*heldBodies{}, silent: map[protocol.MemberID]bool{},
		down: map[protocol.MemberID]bool{},
		g:    NewGatherer(GatherConfig{Self: 1, Hedge: 50 * time.Millisecond, Retry: time.Second, MaxBytes: 1 << 20}),
	}
	w.g.SetMembers(membersWithSlots(members))
	for i := range members {
		w.stores[protocol.MemberID(i+1)] = newHeld()
	}
	return w
}

// hold gives members their own rows of a body.
func (w *table) hold(ref protocol.BodyRef, body []byte, members ...protocol.MemberID) {
	for _, id := range members {
		w.stores[id].put(ref, protocol.RowForm(uint8(id-1)), body)
	}
}

func overTheWire(t *testing.T, m *protocol.Message) *protocol.Message {
	frame := append(m.AppendHoldings(m.AppendHead(nil)), m.Blob...)
	got, err := protocol.DecodeMessage(frame, nil)
	require.NoError(t, err)
	return got
}

// settle lets all answer until no answer is left.
func (w *table) settle() {
	for len(w.out.Send) > 0 {
		sends := slices.Clone(w.out.Send)
		w.answers = append(w.answers, w.out.Answers...)
		w.out.Reset()
		for _, m := range sends {
			w.asked = append(w.asked, m.To)
			switch {
			case w.down[m.To]:
				w.g.Unreachable(w.now, m.To, &w.out)
			case !w.silent[m.To]:
				answer, _ := AnswerFetch(overTheWire(w.t, m), m.To, w.stores[m.To])
				w.bytes += len(answer.Blob)
				w.g.Receive(w.now, overTheWire(w.t, answer), &w.out)
			}
			require.NoError(w.t, w.g.Check())
		}
	}
	w.answers = append(w.answers, w.out.Answers...)
	w.out.Reset()
}

// run lets time pass until the gatherer is done.
func (w *table) run() {
	for w.settle(); w.g.Busy(); w.settle() {
		w.now += 10 * time.Millisecond
		w.g.Tick(w.now, &w.out)
		require.Less(w.t, w.now, time.Minute)
	}
}

func (w *table) ask(ref protocol.BodyRef, have *Fragment) {
	w.g.Ask(w.now, GatherRequest{Ref: ref, Have: have, Until: w.now + 10*time.Second}, &w.out)
}

func (w *table) wantBody(body []byte) Answer {
	w.t.Helper()
	require.Len(w.t, w.answers, 1)
	require.NoError(w.t, w.answers[0].Err)
	require.Equal(w.t, body, w.answers[0].Body)
	return w.answers[0]
}

func (w *table) wantFailure() *BodyError {
	w.t.Helper()
	require.Len(w.t, w.answers, 1)
	var e *BodyError
	require.ErrorAs(w.t, w.answers[0].Err, &e)
	require.Nil(w.t, w.answers[0].Body)
	return e
}

func TestGatheringTakesNoMoreThanIsNeeded(t *testing.T) {
	for _, size := range []int{1, 2, 3, 1000, 100_001} {
		for _, k := range []uint8{1, 2, 3} {
			t.Run(fmt.Sprintf("%d bytes, k=%d", size, k), func(t *testing.T) {
				w, body := newTable(t, 5), someBody(size)
				ref := refTo(9, k, body)
				for id := range w.stores {
					if k == 1 {
						w.stores[id].put(ref, protocol.FormWhole, body)
					} else {
						w.hold(ref, body, id)
					}
				}
				w.ask(ref, nil)
				w.run()
				w.wantBody(body)
				require.Len(t, w.asked, int(k))
				require.Equal(t, protocol.FragmentLen(ref.Size, k)*int(k), w.bytes)
			})
		}
	}
}

// Members of this member's zone are asked first, whatever the body, and others when these do not answer.
func TestBodiesComeFromTheZone(t *testing.T) {
	body := someBody(1000)
	for index := protocol.Index(1); index < 8; index++ {
		for _, c := range []struct {
			k    uint8
			down protocol.MemberID
			want []protocol.MemberID
		}{{1, 0, []protocol.MemberID{2, 5}}, {3, 0, []protocol.MemberID{2, 3, 4, 5}}, {1, 2, []protocol.MemberID{2, 5}}} {
			w, config := newTable(t, 5), membersWithSlots(5)
			config.Members[0].Zone, config.Members[1].Zone, config.Members[2].Zone = "a", "a", "b"
			config.Members[4].Zone = "a"
			w.g.SetMembers(config)
			ref := refTo(index, c.k, body)
			for id := range w.stores {
				w.hold(ref, body, id)
				if c.k == 1 {
					w.stores[id].put(ref, protocol.FormWhole, body)
				}
			}
			w.down[c.down] = true
			w.ask(ref, nil)
			w.run()
			w.wantBody(body)
			require.Subset(t, c.want, w.asked)
			if c.k > 1 {
				require.ElementsMatch(t, []protocol.MemberID{2, 5}, w.asked[:2])
			}
		}
	}
}

func TestAnOwnFragmentCounts(t *testing.T) {
	w, body := newTable(t, 5), someBody(1000)
	ref := refTo(9, 3, body)
	w.hold(ref, body, 1, 2, 3, 4, 5)
	own, err := ReadBody(ref, w.stores[1])
	require.NoError(t, err)
	w.ask(ref, &own)
	w.run()
	w.wantBody(body)
	require.Len(t, w.asked, 2)

	w.answers = nil
	w.ask(ref, &Fragment{protocol.FormWhole, body})
	w.run()
	w.wantBody(body)
	require.Len(t, w.asked, 2, "nobody needs to be asked")
}

func TestWholeHoldersSendOnlyARow(t *testing.T) {
	w, body := newTable(t, 5), someBody(3000)
	ref := refTo(9, 3, body)
	for id := range w.stores {
		w.stores[id].put(ref, protocol.FormWhole, body)
	}
	w.ask(ref, nil)
	w.run()
	w.wantBody(body)
	require.Equal(t, 3000, w.bytes)
}

func TestOthersAreAskedWhereAMemberIsSilentDownOrHoldsNothing(t *testing.T) {
	for name, trouble := range map[string]func(w *table, ref protocol.BodyRef, id protocol.MemberID){
		"silent": func(w *table, _ protocol.BodyRef, id protocol.MemberID) { w.silent[id] = true },
		"down":   func(w *table, _ protocol.BodyRef, id protocol.MemberID) { w.down[id] = true },
		"empty":  func(w *table, _ protocol.BodyRef, id protocol.MemberID) { w.stores[id] = newHeld() },
		"damaged": func(w *table, ref protocol.BodyRef, id protocol.MemberID) {
			w.stores[id].damaged[uint64(ref.Index)] = true
		},
		"another term": func(w *table, ref protocol.BodyRef, id protocol.MemberID) {
			b := w.stores[id].held[uint64(ref.Index)]
			b.Term++
			w.stores[id].held[uint64(ref.Index)] = b
		},
	} {
		t.Run(name, func(t *testing.T) {
			for first := protocol.MemberID(2); first <= 4; first++ {
				w, body := newTable(t, 5), someBody(1000)
				ref := refTo(9, 3, body)
				w.hold(ref, body, 1, 2, 3, 4, 5)
				own, err := ReadBody(ref, w.stores[1])
				require.NoError(t, err)
				trouble(w, ref, first)
				trouble(w, ref, first+1)
				w.ask(ref, &own)
				w.run()
				w.wantBody(body)
			}
		})
	}
}

func TestAWholeCopyHelpsWhereRowsDoNot(t *testing.T) {
	for name, trouble := range map[string]func(*heldBodies){
		"gone": func(h *heldBodies) { delete(h.held, 9) }, "damaged": func(h *heldBodies) { h.damaged[9] = true },
		"wrong": func(h *heldBodies) { flip(h, 9) },
	} {
		for whole := protocol.MemberID(2); whole <= 5; whole++ {
			w, body := newTable(t, 5), someBody(1000)
			ref := refTo(9, 2, body)
			w.hold(ref, body, 2, 3, 4, 5)
			for id := protocol.MemberID(2); id <= 5; id++ {
				trouble(w.stores[id])
			}
			w.stores[whole] = newHeld()
			w.stores[whole].put(ref, protocol.FormWhole, body)
			w.ask(ref, nil)
			w.run()
			require.NoError(t, w.answers[0].Err, name)
			require.Equal(t, body, w.answers[0].Body)
		}
	}
}

func TestTooFewFragmentsAreAClearError(t *testing.T) {
	w, body := newTable(t, 5), someBody(1000)
	ref := refTo(9, 3, body)
	w.hold(ref, body, 2, 3)
	w.ask(ref, nil)
	w.run()
	e := w.wantFailure()
	require.Equal(t, 2, e.Found)
	require.Equal(t, 3, e.Need)
	require.ErrorContains(t, e, "2 good fragments found, 3 needed")
	require.Less(t, w.now, 5*time.Second, "everybody said so: no need to wait for long")

	w = newTable(t, 5)
	w.hold(ref, body, 2, 3, 4)
	w.silent[4] = true
	w.ask(ref, nil)
	w.run()
	require.Equal(t, 2, w.wantFailure().Found)
	require.GreaterOrEqual(t, w.now, 10*time.Second, "it could have come")

	w = newTable(t, 1)
	w.ask(ref, nil)
	w.run()
	w.wantFailure()
}

func TestAskingAgainAndAgainDoesNotKeepAQuestionAlive(t *testing.T) {
	w, body := newTable(t, 3), someBody(1000)
	ref := refTo(9, 2, body)
	w.hold(ref, body, 2)
	w.silent[3] = true
	for w.settle(); len(w.answers) == 0; w.settle() {
		w.ask(ref, nil) // for ten seconds from now
		w.now += 10 * time.Millisecond
		w.g.Tick(w.now, &w.out)
		require.Less(t, w.now, 30*time.Second)
	}
	w.wantFailure()
}

func TestALateFragmentIsWaitedFor(t *testing.T) {
	w, body := newTable(t, 3), someBody(1000)
	ref := refTo(9, 2, body)
	w.hold(ref, body, 2)
	w.ask(ref, nil)
	for w.settle(); w.now < 200*time.Millisecond; w.settle() {
		w.now += 10 * time.Millisecond
		w.g.Tick(w.now, &w.out)
	}
	require.Empty(t, w.answers)
	w.hold(ref, body, 3)
	w.run()
	w.wantBody(body)
}

func TestWrongFragmentsAreNeverUsed(t *testing.T) {
	body := someBody(1000)
	ref := refTo(9, 3, body)
	t.Run("enough good ones", func(t *testing.T) {
		for bad := protocol.MemberID(2); bad <= 5; bad++ {
			w := newTable(t, 5)
			w.hold(ref, body, 2, 3, 4, 5)
			flip(w.stores[bad], 9)
			w.ask(ref, nil)
			w.run()
			if answer := w.wantBody(body); slices.Contains(w.asked[:3], bad) {
				require.Equal(t, []protocol.MemberID{bad}, answer.Bad)
			}
		}
	})
	t.Run("too few good ones", func(t *testing.T) {
		w := newTable(t, 5)
		w.hold(ref, body, 2, 3, 4)
		flip(w.stores[3], 9)
		w.ask(ref, nil)
		w.run()
		require.Positive(t, w.wantFailure().Bad)
	})
	t.Run("a wrong whole", func(t *testing.T) {
		w := newTable(t, 3)
		ref := refTo(9, 1, body)
		w.stores[2].put(ref, protocol.FormWhole, body)
		w.stores[3].put(ref, protocol.FormWhole, body)
		flip(w.stores[2], 9)
		flip(w.stores[3], 9)
		w.ask(ref, nil)
		w.run()
		require.Equal(t, 2, w.wantFailure().Bad)
	})
}

// flip changes a byte of what is held. No one notices it.
func flip(h *heldBodies, index uint64) {
	b := h.held[index]
	b.Bytes = slices.Clone(b.Bytes)
	b.Bytes[len(b.Bytes)/2] ^= 1
	h.held[index] = b
}

func TestGatheringIsBoundedAndUrgentQuestionsGoFirst(t *testing.T) {
	w, body := newTable(t, 3), someBody(700<<10) // of 1 MiB that may be gathered at once
	for i := protocol.Index(1); i <= 4; i++ {
		w.stores[2].put(refTo(i, 1, body), protocol.FormWhole, body)
		w.stores[3].put(refTo(i, 1, body), protocol.FormWhole, body)
		urgency := ToRestore
		if i == 4 {
			urgency = ToRead
		}
		w.g.Ask(0, GatherRequest{Ref: refTo(i, 1, body), Until: time.Minute, Urgency: urgency}, &w.out)
		require.NoError(t, w.g.Check())
	}
	require.Len(t, w.out.Send, 2, "the first of those to restore, and the one to read")
	w.ask(refTo(3, 1, body), nil) // is asked already
	w.run()
	var order []protocol.Index
	for _, a := range w.answers {
		require.NoError(t, a.Err)
		order = append(order, a.Ref.Index)
	}
	require.Equal(t, []protocol.Index{1, 4, 2, 3}, order)
}

func TestAnswersNobodyAskedForAreDropped(t *testing.T) {
	w, body := newTable(t, 3), someBody(100)
	ref := refTo(9, 1, body)
	w.ask(ref, nil)
	m := w.out.Send[0]
	good := protocol.Holding{Index: 9, Term: 3, Form: protocol.FormWhole, Digest: ref.Digest}
	for _, wrong := range []*protocol.Message{
		{Type: protocol.MsgFetchResp, From: m.To, Context: m.Context + 1, Holdings: []protocol.Holding{good}, Blob: body},
		{Type: protocol.MsgFetchResp, From: 7, Context: m.Context, Holdings: []protocol.Holding{good}, Blob: body},
		{Type: protocol.MsgFetchResp, From: m.To, Context: m.Context, Blob: body},
		{Type: protocol.MsgFetchResp, From: m.To, Context: m.Context,
			Holdings: []protocol.Holding{{Index: 8, Term: 3, Form: protocol.FormWhole, Digest: ref.Digest}}, Blob: body},
	} {
		w.g.Receive(0, wrong, &w.out)
		require.Empty(t, w.out.Answers)
	}
	w.g.Receive(0, &protocol.Message{Type: protocol.MsgFetchResp, From: m.To, Context: m.Context,
		Holdings: []protocol.Holding{good}, Blob: body}, &w.out)
	require.Len(t, w.out.Answers, 1)
	require.False(t, w.g.Busy())
}

func TestGatheringUnderRandomTrouble(t *testing.T) {
	for seed := range uint64(300) {
		rng := rand.New(rand.NewPCG(seed, 1))
		n := 3 + rng.IntN(5)
		k := uint8(1 + rng.IntN(n-1))
		w, body := newTable(t, n), someBody(1+rng.IntN(5000))
		ref := refTo(protocol.Index(seed+1), k, body)
		good := 0
		for id := protocol.MemberID(2); id <= protocol.MemberID(n); id++ {
			form := protocol.RowForm(uint8(id - 1))
			if k == 1 {
				form = protocol.FormWhole
			}
			w.stores[id].put(ref, form, body)
			switch rng.IntN(6) {
			case 0:
				w.silent[id] = true
			case 1:
				w.down[id] = true
			case 2:
				w.stores[id] = newHeld()
			case 3:
				flip(w.stores[id], uint64(ref.Index))
			default:
				good++
			}
		}
		w.ask(ref, nil)
		w.run()
		if good >= int(max(k, 1)) {
			w.wantBody(body)
		} else {
			w.wantFailure()
		}
	}
}

func BenchmarkGather16MiB(b *testing.B) {
	body := someBody(16 << 20)
	rows := make([]Fragment, 3)
	for r := range rows {
		bytes, err := erasure.Cut(body, 2, uint8(r))
		if err != nil {
			b.Fatal(err)
		}
		rows[r] = Fragment{protocol.RowForm(uint8(r)), bytes}
	}
	ref := refTo(1, 2, body)
	b.SetBytes(int64(len(body)))
	b.ReportAllocs()
	for b.Loop() {
		g := NewGatherer(GatherConfig{Self: 1, Hedge: time.Second, Retry: time.Second, MaxBytes: 1 << 30})
		g.SetMembers(membersWithSlots(3))
		var out GatherOutbox
		g.Ask(0, GatherRequest{Ref: ref, Have: &rows[0], Until: time.Minute}, &out)
		m := out.Send[0]
		r := rows[m.To-1]
		g.Receive(0, &protocol.Message{
			Type: protocol.MsgFetchResp, From: m.To, Context: m.Context, Blob: r.Bytes,
			Holdings: []protocol.Holding{{Index: 1, Term: 3, Form: r.Form, Digest: protocol.Digest(r.Bytes)}},
		}, &out)
		if len(out.Answers) != 1 || out.Answers[0].Err != nil {
			b.Fatal("no body")
		}
	}
}
