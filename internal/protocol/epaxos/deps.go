package epaxos

import (
	"fmt"
	"strings"
)

// Column has the commands of one member: its slot in the configuration, from 1 on, which no other member ever has.
type Column = uint8

// ID names a command: its column, and its number there, from 1 on.
type ID struct {
	Column Column
	Number uint64
}

func (id ID) String() string { return fmt.Sprintf("%d:%d", id.Column, id.Number) }

// compare is the order of commands that depend on each other: by their numbers, then by their columns.
func (id ID) compare(other ID) int {
	switch {
	case id.Number < other.Number || id.Number == other.Number && id.Column < other.Column:
		return -1
	case id == other:
		return 0
	}
	return 1
}

// Vector has a number for each column, and stands for all commands up to there. Column c is at c-1; missing columns
// are 0. Vectors are values: a vector that others may hold is not modified.
type Vector []uint64

// At is a column's number.
func (v Vector) At(c Column) uint64 {
	if int(c) > len(v) || c == 0 {
		return 0
	}
	return v[c-1]
}

// Covers reports whether a command is among those that the vector stands for.
func (v Vector) Covers(id ID) bool { return id.Number <= v.At(id.Column) }

// Equal reports whether two vectors stand for the same commands.
func (v Vector) Equal(w Vector) bool { return v.Dominates(w) && w.Dominates(v) }

// Dominates reports whether v stands for everything that w stands for.
func (v Vector) Dominates(w Vector) bool {
	for i, n := range w {
		if n > v.At(Column(i+1)) {
			return false
		}
	}
	return true
}

// misses reports whether v is missing commands that are in after and not in before.
func (v Vector) misses(before, after Vector) bool {
	for i, n := range after {
		if c := Column(i + 1); n > before.At(c) && n > v.At(c) {
			return true
		}
	}
	return false
}

// Sum is the number of commands that the vector stands for.
func (v Vector) Sum() (sum uint64) {
	for _, n := range v {
		sum += n
	}
	return sum
}

// Clone is a copy that may be modified.
func (v Vector) Clone() Vector { return append(Vector(nil), v...) }

// raise makes the vector stand for id too. It modifies v, or a longer copy.
func (v Vector) raise(id ID) Vector {
	if v.Covers(id) {
		return v
	}
	return v.with(id)
}

// with sets the number of one column. It modifies v, or a longer copy.
func (v Vector) with(id ID) Vector {
	for len(v) < int(id.Column) {
		v = append(v, 0)
	}
	v[id.Column-1] = id.Number
	return v
}

// unite makes v stand for the commands of w too. It modifies v, or a longer copy.
func (v Vector) unite(w Vector) Vector {
	for i, n := range w {
		v = v.raise(ID{Column(i + 1), n})
	}
	return v
}

// own sets the column of id to the number before it, because a command depends on exactly the earlier ones of its
// column (rule 2). It modifies v, or a longer copy.
func (v Vector) own(id ID) Vector { return v.with(ID{id.Column, id.Number - 1}) }

func (v Vector) String() string {
	var words []string
	for i, n := range v {
		if n > 0 {
			words = append(words, ID{Column(i + 1), n}.String())
		}
	}
	return strings.Join(words, " ")
}
