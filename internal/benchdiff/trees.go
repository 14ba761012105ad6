package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
)

var errNoCommitBefore = errors.New("nothing to compare with: the commit before is not here, as in a shallow clone")

// before returns the commit to compare with: the given one, else where the branch left its upstream branch, else the
// one before HEAD.
func before(ctx context.Context, root, given string) (string, error) {
	if given != "" {
		return output(ctx, root, "git", "rev-parse", "--verify", given+"^{commit}")
	}
	head, err := output(ctx, root, "git", "rev-parse", "--verify", "HEAD^{commit}")
	if err != nil {
		return "", err
	}
	if base, err := output(ctx, root, "git", "merge-base", "HEAD", "@{upstream}"); err == nil && base != head {
		return base, nil
	}
	base, err := output(ctx, root, "git", "rev-parse", "--verify", "HEAD^")
	if err != nil {
		return "", errNoCommitBefore
	}
	return base, nil
}

// side is one of the two trees.
type side int

const (
	sideBefore side = iota
	sideAfter
)

// trees are what is compared, with the test programs of both.
type trees struct {
	work string // a temporary directory
	root [2]string
	runs []suite
	// missing are the folders that have no program of before.
	missing []string
}

// open checks out a commit in a temporary directory, and builds the test programs of suites. Those of what is checked
// out must build.
func open(ctx context.Context, root, base string, suites []suite) (*trees, error) {
	work, err := os.MkdirTemp("", "benchdiff-")
	if err != nil {
		return nil, err
	}
	t := &trees{work: work, root: [2]string{sideBefore: filepath.Join(work, "tree"), sideAfter: root}, runs: suites}
	_, err = output(ctx, root, "git", "worktree", "add", "--quiet", "--detach", t.root[sideBefore], base)
	if err != nil {
		t.close()
		return nil, err
	}
	for i, s := range suites {
		if err := t.build(ctx, sideAfter, i); err != nil {
			t.close()
			return nil, err
		}
		if err := t.build(ctx, sideBefore, i); err != nil {
			t.missing = append(t.missing, s.folder)
		}
	}
	return t, ctx.Err()
}

// program is the test program of a suite.
func (t *trees) program(of side, suite int) string {
	return filepath.Join(t.work, fmt.Sprintf("%d-%d.test", suite, of))
}

// withoutPaths are flags of go: without the paths of the directories, what did not change is compiled once for both.
var withoutPaths = []string{"-trimpath"}

// build makes it.
func (t *trees) build(ctx context.Context, of side, suite int) error {
	args := slices.Concat([]string{"test", "-c"}, withoutPaths, []string{"-o", t.program(of, suite),
		"./" + t.runs[suite].folder})
	_, err := output(ctx, t.root[of], "go", args...)
	return err
}

// close removes everything, also after an interrupt.
func (t *trees) close() {
	ctx := context.Background()
	_, _ = output(ctx, t.root[sideAfter], "git", "worktree", "remove", "--force", t.root[sideBefore])
	_ = os.RemoveAll(t.work)
	_, _ = output(ctx, t.root[sideAfter], "git", "worktree", "prune")
}
