package slots

import (
	"testing"

	"github.com/braidlog/braid/protocol"
)

// A log in pieces equals a slice, through any sequence of appends and compactions.
func TestALogInPiecesIsThatOfASlice(t *testing.T) {
	const base = 7
	for step := 1; step < 3*pieceLen; step += 13 {
		l := logAfter(base)
		var want []protocol.Entry
		for round := range 9 {
			for range step {
				e := protocol.Entry{Index: l.Last() + 1, Term: 1, Size: uint32(len(want) % 5)}
				e.Seal(e.Index, e.Term, make([]byte, protocol.HeadSize))
				l.Append(e)
				want = append(want, e)
			}
			gone := min(len(want), round*step/2+round%2)
			l.Compact(l.Base + protocol.Index(gone))
			want = want[gone:]
			if err := l.Check(); err != nil {
				t.Fatal(err)
			}
			compareLog(t, &l, want)
		}
		l.Compact(l.Last())
		if err := l.Check(); err != nil || len(l.pieces) > 0 {
			t.Fatalf("%d pieces of an empty log, %v", len(l.pieces), err)
		}
	}
}

func compareLog(t *testing.T, l *Log, want []protocol.Entry) {
	t.Helper()
	for i := range want {
		if got := l.At(l.Base + 1 + protocol.Index(i)); got.Index != want[i].Index || got.Size != want[i].Size {
			t.Fatalf("entry %d is %+v, want %+v", i, got, want[i])
		}
		for _, most := range []int{0, 1, 3} {
			limited := want[i:]
			if most > 0 {
				limited = limited[:min(most, len(limited))]
			}
			for _, bytes := range []int{0, 200, 1 << 20} {
				if n := protocol.Fitting(limited, bytes); len(l.Run(want[i].Index-1, bytes, most)) != n {
					t.Fatalf("after %d: %d entries of %d bytes, want %d", want[i].Index-1, len(l.Run(want[i].Index-1, bytes, most)),
						bytes, n)
				}
			}
		}
	}
}
