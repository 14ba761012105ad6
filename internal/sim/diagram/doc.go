// Package diagram draws the trace of a simulated run as a sequence diagram in text: one column for each member, time
// at the left, and an arrow for each message.
//
// The rows follow from the lines of the trace (package world prints them) alone, so a trace that was saved can be
// drawn, too, and equal traces have equal diagrams.
//
//   - diagram.go: Diagram, which collects the lines and draws at the end.
//   - read.go: a line becomes an event.
//   - rows.go: events become rows: the sending of a message and its arrival are one.
//   - fold.go: rows that repeat become one.
//   - words.go: the texts in rows.
//   - draw.go: rows become text. canvas.go: one line of it.
package diagram
