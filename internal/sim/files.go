package sim

import (
	"slices"
	"time"

	"github.com/braidlog/braid/internal/sim/fault"
	"github.com/braidlog/braid/internal/sim/node"
)

// tidyTime is the maximal time until the files of released bodies are deleted.
const tidyTime = time.Second

// awaitTidy waits while members release bodies and delete the files. The result is judged at the end.
func awaitTidy(w *fault.World, alive []*node.Member) {
	w.RunUntil(w.Now()+w.Set.Bodies.Release+tidyTime, func() bool {
		return !slices.ContainsFunc(fault.Serving(w, alive), func(m *node.Member) bool { return m.JudgeBodyFiles() != nil })
	})
}
