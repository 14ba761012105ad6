package main

import (
	"bufio"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

const module = "github.com/braidlog/braid/"

// block is a run of statements of which either all run or none.
type block struct {
	file        string // path from the module's root
	first, last int    // lines
	statements  int
	ran         bool
}

// readProfile reads a profile in Go's text form.
func readProfile(r io.Reader) (blocks []block, err error) {
	at := map[string]int{}
	for lines := bufio.NewScanner(r); lines.Scan(); {
		line := lines.Text()
		if strings.HasPrefix(line, "mode:") {
			continue
		}
		place, counts, _ := strings.Cut(line, " ")
		name, where, found := strings.Cut(place, ":")
		var b block
		var count, column int
		if !found {
			return nil, fmt.Errorf("profile: %q", line)
		}
		if _, err := fmt.Sscanf(where+" "+counts, "%d.%d,%d.%d %d %d", &b.first, &column, &b.last, &column, &b.statements,
			&count); err != nil {
			return nil, fmt.Errorf("profile: %q: %w", line, err)
		}
		b.file, b.ran = strings.TrimPrefix(name, module), count > 0
		if i, ok := at[place]; ok {
			blocks[i].ran = blocks[i].ran || b.ran
			continue
		}
		at[place] = len(blocks)
		blocks = append(blocks, b)
	}
	return blocks, nil
}

// share is how many statements there are, and how many of them ran.
type share struct{ ran, all int }

func (s *share) add(b *block) {
	s.all += b.statements
	if b.ran {
		s.ran += b.statements
	}
}

func (s *share) percent() float64 { return 100 * float64(s.ran) / float64(max(1, s.all)) }

// result is the coverage of each package and each file.
type result struct {
	packages, files map[string]*share
	missing         map[string][]block
}

// tally adds up the blocks, without those that do not count.
func tally(root string, blocks []block) (*result, error) {
	t := &result{packages: map[string]*share{}, files: map[string]*share{}, missing: map[string][]block{}}
	quiet := map[string][]span{}
	for i := range blocks {
		b := &blocks[i]
		folder := countedFolder(b.file)
		if apart[b.file] != "" || !slices.ContainsFunc(measured, func(r countedPackage) bool { return r.path == folder }) {
			continue
		}
		if _, ok := quiet[b.file]; !ok {
			spans, err := silentIn(filepath.Join(root, b.file))
			if err != nil {
				return nil, err
			}
			quiet[b.file] = spans
		}
		if slices.ContainsFunc(quiet[b.file], func(s span) bool { return s.first <= b.first && b.last <= s.last }) {
			continue
		}
		for _, list := range []struct {
			of   map[string]*share
			name string
		}{{t.packages, folder}, {t.files, b.file}} {
			if list.of[list.name] == nil {
				list.of[list.name] = &share{}
			}
			list.of[list.name].add(b)
		}
		if !b.ran {
			t.missing[b.file] = append(t.missing[b.file], *b)
		}
	}
	return t, nil
}

// countedFolder is the folder of the package in which a file counts.
func countedFolder(file string) string {
	folder := path.Dir(file)
	if slices.Contains(parts, folder) {
		return path.Dir(folder)
	}
	return folder
}

// span is a range of lines of a file.
type span struct{ first, last int }

// silentIn finds the functions of a file that do not count.
func silentIn(file string) (spans []span, err error) {
	files := token.NewFileSet()
	tree, err := parser.ParseFile(files, file, nil, parser.ParseComments)
	if err != nil {
		return nil, err
	}
	for _, d := range tree.Decls {
		f, ok := d.(*ast.FuncDecl)
		if ok && (f.Recv != nil && silent[f.Name.Name] || strings.Contains(f.Doc.Text(), forMutant)) {
			spans = append(spans, span{files.Position(f.Pos()).Line, files.Position(f.End()).Line})
		}
	}
	return spans, nil
}

// print writes the share of each package and of its files and, with missing, the lines that did not run.
func (t *result) print(out io.Writer, missing bool) {
	for _, r := range measured {
		s := t.packages[r.path]
		if s == nil {
			continue
		}
		fmt.Fprintf(out, "%-34s %5d of %5d statements  %5.1f %%  (at least %.0f)\n", r.path, s.ran, s.all, s.percent(),
			r.least)
		for _, file := range sortedKeys(t.files) {
			if countedFolder(file) != r.path {
				continue
			}
			f := t.files[file]
			fmt.Fprintf(out, "  %-32s %5d of %5d             %5.1f %%\n", strings.TrimPrefix(file, r.path+"/"), f.ran,
				f.all, f.percent())
			if missing {
				t.printMissing(out, file)
			}
		}
	}
	fmt.Fprintln(out, "\nnot counted:")
	for _, file := range sortedKeys(apart) {
		fmt.Fprintf(out, "  %-32s %s\n", file, apart[file])
	}
	fmt.Fprintf(out, "  methods %s; functions that say %q\n", strings.Join(sortedKeys(silent), ", "), forMutant)
}

func (t *result) printMissing(out io.Writer, file string) {
	list := t.missing[file]
	slices.SortFunc(list, func(a, b block) int { return a.first - b.first })
	for _, b := range list {
		fmt.Fprintf(out, "      %s:%d-%d\n", file, b.first, b.last)
	}
}

// verdict returns an error if the share of a package that ran is too small.
func (t *result) verdict() error {
	for _, r := range measured {
		if s := t.packages[r.path]; s == nil || s.percent() < r.least {
			return fmt.Errorf("of %s less than %.0f %% runs in the simulator", r.path, r.least)
		}
	}
	return nil
}

func sortedKeys[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for k := range m { // any order: sorted below
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}
