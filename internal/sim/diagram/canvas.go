package diagram

import (
	"strings"
	"unicode/utf8"
)

// canvas is one line of the diagram.
type canvas []rune

// blank returns an empty line.
func blank(width int) canvas { return canvas(strings.Repeat(" ", width)) }

// put writes a text from column x on. What does not fit is cut.
func (c canvas) put(x int, text string) {
	for _, r := range cut(text, len(c)-x) {
		c[x] = r
		x++
	}
}

// fill writes the same character from column x up to, but not including, another one.
func (c canvas) fill(x, end int, r rune) {
	for ; x < end; x++ {
		c[x] = r
	}
}

// String returns the line without spaces at its end.
func (c canvas) String() string { return strings.TrimRight(string(c), " ") }

// cut shortens a text to a length, and marks it.
func cut(text string, length int) string {
	if utf8.RuneCountInString(text) <= length {
		return text
	}
	if length < 1 {
		return ""
	}
	return string([]rune(text)[:length-1]) + "…"
}
