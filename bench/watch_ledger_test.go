package bench

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestWatchLogCheck(t *testing.T) {
	var l writeLedger
	for revision, key := range []string{2: "a1", 3: "b1", 4: "a2", 5: "a1", 6: "b1", 7: "a1"} {
		if key != "" {
			l.wrote([]byte(key), int64(revision))
		}
	}
	l.wrote([]byte("a2"), 0) // may have taken effect
	writes := l.byPrefix([]string{"a", "b", "a"})
	require.Len(t, writes["b"], 2)
	two, four, five, seven := keyWrite{2, "a1"}, keyWrite{4, "a2"}, keyWrite{5, "a1"}, keyWrite{7, "a1"}
	maybe := keyWrite{8, "a2"}
	for _, c := range []struct {
		name string
		log  *watchLog
		want []string
	}{
		{"complete", &watchLog{events: []keyWrite{two, four, five, seven}}, nil},
		{"from a revision", &watchLog{from: 4, events: []keyWrite{four, five, seven}}, nil},
		{"unknown outcome", &watchLog{events: []keyWrite{two, four, five, seven, maybe}}, nil},
		{"one event too many", &watchLog{events: []keyWrite{two, four, five, seven, maybe, {9, "a2"}}},
			[]string{"there is no write of key a2 at revision 9"}},
		{"lost", &watchLog{events: []keyWrite{two, five, seven}}, []string{"the event of revision 4 is lost"}},
		{"lost at the end", &watchLog{events: []keyWrite{two, four}}, []string{"2 events are lost from revision 5 on"}},
		{"doubled", &watchLog{events: []keyWrite{two, four, four, five, seven}},
			[]string{"the event of revision 4 is doubled"}},
		{"reordered", &watchLog{events: []keyWrite{two, five, four, seven}},
			[]string{"the event of revision 4 is lost", "revision 4 comes after 5"}},
		{"before its start", &watchLog{from: 4, events: []keyWrite{two, four, five, seven}},
			[]string{"there is no write of key a1 at revision 2"}},
		{"wrong key", &watchLog{events: []keyWrite{two, {4, "a3"}, five, seven}},
			[]string{"there is no write of key a3 at revision 4", "the event of revision 4 is lost"}},
		{"ended", &watchLog{events: []keyWrite{two}, ended: true, reason: "why"}, []string{"it ended: why"}},
		{"cancelled", &watchLog{cancel: alwaysCancelled, compacted: 5, events: []keyWrite{two}, ended: true, compact: 5},
			nil},
		{"not cancelled", &watchLog{cancel: alwaysCancelled, compacted: 5, events: []keyWrite{two, four, five, seven}},
			[]string{"not cancelled, but revision 5 is compacted"}},
		{"wrong compact revision", &watchLog{cancel: maybeCancelled, compacted: 5, ended: true, compact: 4},
			[]string{"compact revision 4: the compaction was at 5"}},
		{"cancelled for another reason", &watchLog{cancel: maybeCancelled, ended: true, reason: "why"},
			[]string{"it ended: why"}},
		{"cancelled after a loss", &watchLog{cancel: maybeCancelled, events: []keyWrite{two, five}, ended: true, compact: 6},
			[]string{"the event of revision 4 is lost"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.log.prefix = "a"
			got := c.log.check(writes["a"], l.unknown)
			require.Len(t, got, len(c.want), "%v", got)
			for i := range got {
				require.Contains(t, got[i], c.want[i])
			}
		})
	}
}
