package sim

import (
	"slices"
	"time"

	"github.com/braidlog/braid/internal/sim/fault"
	"github.com/braidlog/braid/internal/sim/node"
)

// tidyTime is how long it may take at most until the files of bodies are given back that were released.
const tidyTime = time.Second

// awaitTidy lets members release what they soon release, and give back the files. Whether they do is
// judged at the end.
func awaitTidy(w *fault.World, alive []*node.Member) {
	w.RunUntil(w.Now()+w.Set.Bodies.Release+tidyTime, func() bool {
		return !slices.ContainsFunc(fault.Serving(w, alive), func(m *node.Member) bool { return m.JudgeBodyFiles() != nil })
	})
}
