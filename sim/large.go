package sim

// Large commands and bodies, which the log and the bodies' files take from where they are instead of
// gathering them.

// largeStream is for the settings of large commands what stream is for everything else.
const largeStream = stream + 22

// drawLarge chooses whether commands and bodies are large, and then there are few.
func (s *Settings) drawLarge(d chance) {
	if !d.yes(0.04) {
		return
	}
	s.Operations = min(s.Operations, 40)
	s.Padding = 40 << 10
	if b := &s.Bodies; b.Share > 0 {
		b.Min, b.Max = 30<<10, 40<<10
	}
	s.Raft.MaxUncommittedBytes += s.Clients * (s.Padding + s.Bodies.Max + 500)
}
