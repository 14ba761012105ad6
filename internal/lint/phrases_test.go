package lint

import (
	"os"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
)

// phrases are not used in comments, because readers of Raft or etcd would look twice. The words for them:
// incarnation, active, recently, expensive, read index, alongside, merged, a given number of, no one, again, is
// missing, tolerates, forever, any member, all members, steps down, continues.
var phrases = regexp.MustCompile(`\b(?:in fo` + `rce|this li` + `fe|one li` + `fe|of la` + `te|de` + `ar|read poi` +
	`nts?|besi` + `de|wov` + `en (?:into|from|of)|so many by` + `tes|nob` + `ody|someb` + `ody|\w+ ane` + `w|\w+ lac` +
	`ks|` +
	`hears? o` + `f|for go` + `od|for ev` + `er|but f` + `or|it is sa` + `id|any` + `body|every` + `body|` +
	`gives? wa` + `y|go(?:es)? o` + `n)\b`)

func TestCommentsHaveTheFieldsWords(t *testing.T) {
	r := source(t)
	for _, f := range r.files {
		for _, group := range f.syntax.Comments {
			for _, comment := range group.List {
				if found := phrases.FindString(comment.Text); found != "" {
					t.Errorf("%s: a comment has %q: %s", r.at(f, comment), found, comment.Text)
				}
			}
		}
	}
}

// maxComment is the maximal length of a line that has only a comment, in characters; a tab counts as one.
const maxComment = 120

func TestCommentsFitTheLine(t *testing.T) {
	r := source(t)
	for _, f := range r.files {
		for _, group := range f.syntax.Comments {
			for _, comment := range group.List {
				p := r.set.Position(comment.Pos())
				if n := p.Column - 1 + utf8.RuneCountInString(comment.Text); n > maxComment {
					t.Errorf("%s: a comment ends at column %d, behind %d", r.at(f, comment), n, maxComment)
				}
			}
		}
	}
}

// wide are folders with lines of code that do not fit into maxComment yet. A folder that is broken up to fit leaves the
// list.
var wide = []string{".", "internal/sim"}

// narrow are folders below those whose lines fit.
var narrow = []string{
	"internal/sim/count", "internal/sim/device", "internal/sim/diagram", "internal/sim/draw", "internal/sim/judge",
	"internal/sim/machine", "internal/sim/world",
}

func TestLinesFit(t *testing.T) {
	r := source(t)
	for _, f := range r.files {
		if f.in(wide...) && !f.in(narrow...) {
			continue
		}
		bytes, err := os.ReadFile(r.set.Position(f.syntax.Pos()).Filename)
		require.NoError(t, err)
		for i, line := range strings.Split(string(bytes), "\n") {
			if n := utf8.RuneCountInString(line); n > maxComment {
				t.Errorf("%s:%d: %d characters, more than %d", f.path, i+1, n, maxComment)
			}
		}
	}
}
