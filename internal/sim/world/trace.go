package world

import (
	"bufio"
	"fmt"
	"io"
	"time"
)

// Trace prints the events of a run.
type Trace struct {
	out   *bufio.Writer
	Ticks bool // also the ticks of members
}

// NewTrace returns a trace that prints to out.
func NewTrace(out io.Writer) *Trace { return &Trace{out: bufio.NewWriter(out)} }

// printf prints a line with its time.
func (t *Trace) printf(at time.Duration, format string, args ...any) {
	fmt.Fprintf(t.out, "%12.6f  ", at.Seconds())
	t.Line(format, args...)
}

// Line prints a line without a time.
func (t *Trace) Line(format string, args ...any) {
	fmt.Fprintf(t.out, format, args...)
	t.out.WriteByte('\n')
}

// Flush prints the buffered lines. It returns the first error of the writer.
func (t *Trace) Flush() error { return t.out.Flush() }
