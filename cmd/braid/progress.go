package main

import (
	"fmt"
	"io"
	"math"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/braidlog/braid/bench"
	"github.com/braidlog/braid/bench/paper"
)

// lineEvery is the time between two lines of progress of the same part.
const lineEvery = 10 * time.Second

// progress shows the progress of a command on standard error: on a terminal as a bar that is drawn again, elsewhere as
// lines, one when the command begins another part and one every ten seconds. It is safe for concurrent use.
type progress struct {
	out        io.Writer
	bar, lines bool

	now  func() time.Time
	mu   sync.Mutex
	part string    // of the last line
	last time.Time // when it was written
}

// newProgress returns the progress of a command. With output for programs there are no lines: they may read standard
// error too.
func newProgress(json bool) *progress {
	bar := isTerminal(os.Stderr)
	return &progress{out: os.Stderr, bar: bar, lines: !bar && !json, now: time.Now, last: time.Now()}
}

// put shows the part in which the command is, the share of it that is done (0 to 1; less than 0: unknown), and a text.
func (p *progress) put(part string, done float64, text string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch now := p.now(); {
	case p.bar:
		fmt.Fprintf(p.out, "\r\x1b[K%s%s %s", part, drawBar(done), text)
	case p.lines && (p.part != part || now.Sub(p.last) >= lineEvery):
		p.part, p.last = part, now
		fmt.Fprintln(p.out, strings.TrimSpace(part+"  "+text))
	}
}

func drawBar(done float64) string {
	const width = 24
	if done < 0 {
		return ""
	}
	full := int(width * min(1, done))
	return " " + strings.Repeat("█", full) + strings.Repeat("░", width-full)
}

// clear removes the bar.
func (p *progress) clear() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.bar {
		fmt.Fprint(p.out, "\r\x1b[K")
	}
}

// show shows the progress of a benchmark.
func (p *progress) show(s bench.Progress) {
	done, whole := -1.0, ""
	if s.Whole > 0 && s.Whole < math.MaxInt64/2 {
		done = s.Elapsed.Seconds() / s.Whole.Seconds()
		whole = fmt.Sprintf(" of %.0f s", s.Whole.Seconds())
	}
	text := fmt.Sprintf("%.0f s%s", s.Elapsed.Seconds(), whole)
	if s.PerSecond > 0 {
		text += fmt.Sprintf(", %.0f/s", s.PerSecond)
	}
	p.put(fmt.Sprintf("%-16s %s", s.Protocol, s.Phase), done, text)
}

// experiment shows the progress of an experiment of a paper.
func (p *progress) experiment(s paper.Progress) {
	p.put(fmt.Sprintf("%-20s", s.Experiment), float64(s.Done)/float64(max(1, s.Whole)),
		fmt.Sprintf("%d of %d runs, %s", s.Done, s.Whole, s.Doing))
}

// isTerminal reports whether a file is a terminal.
func isTerminal(f *os.File) bool {
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}
