package slots

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/braidlog/braid/protocol"
	"github.com/braidlog/braid/protocol/quorum"
)

// TestCodedBodiesNeedMoreHolders: a body that a seal has left in rows needs as many holders in every quorum as it takes
// to make it; what the owner has not checked yet may need any number.
func TestCodedBodiesNeedMoreHolders(t *testing.T) {
	kept := func(b Bodies, voters, holders int) bool {
		var ids []protocol.MemberID
		for i := range voters {
			ids = append(ids, protocol.MemberID(i+1))
		}
		return b.Kept(quorum.Set{Incoming: ids}, func(id protocol.MemberID) bool {
			return slices.Index(ids, id) < holders
		}) == protocol.ReasonNone
	}
	whole, rows, none := BodiesOf(protocol.Bodies{MaxK: 1}), BodiesOf(protocol.Bodies{MaxK: 3}), BodiesAfter(0)
	for _, c := range []struct {
		b               Bodies
		voters, holders int
		kept            bool
	}{
		{none, 3, 0, true}, {whole, 3, 1, false}, {whole, 3, 2, true}, {whole, 1, 1, true},
		{rows, 5, 5, true}, {rows, 5, 4, false}, {rows, 4, 4, true}, {rows, 3, 3, false}, {rows, 1, 1, false},
		{BodiesAfter(1), 5, 5, false},
	} {
		require.Equal(t, c.kept, kept(c.b, c.voters, c.holders), "%+v", c)
	}
}
