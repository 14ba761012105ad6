package lint

import (
	"go/ast"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"unicode"

	"github.com/stretchr/testify/require"
)

// text is a file of the repository that people read: source, scripts of tests, pages.
type text struct {
	path  string // from the repository's root, with slashes
	bytes string
}

// texts returns all of them.
func texts(t *testing.T) (out []text) {
	t.Helper()
	root, err := filepath.Abs("../..")
	require.NoError(t, err)
	err = filepath.WalkDir(root, func(name string, entry fs.DirEntry, err error) error {
		if err != nil || name == root {
			return err
		}
		if entry.IsDir() {
			if entry.Name() == ".git" || entry.Name() == "node_modules" {
				return fs.SkipDir
			}
			return nil
		}
		switch path.Ext(name) {
		case ".go", ".md", ".txt", ".sh", "":
		default:
			return nil
		}
		relative, err := filepath.Rel(root, name)
		if err != nil || !entry.Type().IsRegular() {
			return err
		}
		bytes, err := os.ReadFile(name)
		if !strings.Contains(string(bytes), "\x00") { // otherwise it is a compiled program
			out = append(out, text{filepath.ToSlash(relative), string(bytes)})
		}
		return err
	})
	require.NoError(t, err)
	require.NotEmpty(t, out)
	return out
}

// elsewhere matches names of files that are not in this repository.
var elsewhere = regexp.MustCompile(`\b(SPE` + `CS|DES` + `IGN\.md|PRACT` + `ICES|PERFOR` + `MANCE\.md|FEAT` +
	`URES\.md|ETCD-` + `STATE|pap` + `ers/[a-z-]+\.txt)`)

func TestNothingIsCitedThatIsElsewhere(t *testing.T) {
	for _, f := range texts(t) {
		for _, at := range elsewhere.FindAllStringIndex(f.bytes, -1) {
			t.Errorf("%s:%d: %s is not in this repository", f.path, lineOf(f.bytes, at[0]), f.bytes[at[0]:at[1]])
		}
	}
}

func lineOf(s string, at int) int { return 1 + strings.Count(s[:at], "\n") }

// page has the parts of a Markdown page that can be cited.
type page struct {
	headings []string
	anchors  map[string]bool
	bold     []string // the bold text that begins a paragraph or an item
	items    map[string]bool
}

var (
	heading = regexp.MustCompile(`(?m)^#+ (.*)$`)
	bold    = regexp.MustCompile(`(?m)^(?:- )?\*\*([^*]+)\*\*`)
	item    = regexp.MustCompile(`(?m)^(\d+)\. `)
)

func pages(all []text) map[string]*page {
	out := map[string]*page{}
	for _, f := range all {
		if path.Ext(f.path) != ".md" {
			continue
		}
		p := &page{anchors: map[string]bool{}, items: map[string]bool{}}
		for _, m := range heading.FindAllStringSubmatch(f.bytes, -1) {
			p.headings = append(p.headings, m[1])
			p.anchors[anchor(m[1])] = true
		}
		for _, m := range bold.FindAllStringSubmatch(f.bytes, -1) {
			p.bold = append(p.bold, strings.TrimRight(m[1], ".:"))
		}
		for _, m := range item.FindAllStringSubmatch(f.bytes, -1) {
			p.items[m[1]] = true
		}
		out[f.path] = p
	}
	return out
}

// anchor is the anchor of a heading in links.
func anchor(heading string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == ' ':
			return '-'
		case r == '-', r == '_', unicode.IsLetter(r), unicode.IsDigit(r):
			return unicode.ToLower(r)
		}
		return -1
	}, heading)
}

// has reports whether a page has a section, or bold text, that begins with a prefix.
func (p *page) has(what string) bool {
	for _, h := range append(p.headings, p.bold...) {
		if h == what || strings.HasPrefix(h, what+" ") {
			return true
		}
	}
	return false
}

// link is a link of a page to a file, or to a section.
var link = regexp.MustCompile(`\]\(([^)#:\s]*)(?:#([^)]*))?\)`)

func TestPagesLinkToWhatExists(t *testing.T) {
	all := texts(t)
	known := pages(all)
	for _, f := range all {
		if path.Ext(f.path) != ".md" {
			continue
		}
		for _, m := range link.FindAllStringSubmatch(f.bytes, -1) {
			target := f.path
			if m[1] != "" {
				target = path.Join(path.Dir(f.path), m[1])
			}
			if _, err := os.Stat(filepath.Join("../..", filepath.FromSlash(target))); err != nil {
				t.Errorf("%s links to %s, which does not exist", f.path, m[1])
			} else if p := known[target]; m[2] != "" && (p == nil || !p.anchors[m[2]]) {
				t.Errorf("%s links to %s#%s, which does not exist", f.path, m[1], m[2])
			}
		}
	}
}

// named matches a file in backquotes, with its folder.
var named = regexp.MustCompile("`([a-z.][A-Za-z0-9_.-]*(?:/[A-Za-z0-9_.-]+)+\\.(?:go|md|txt|sh|json))`")

func TestPagesNameFilesThatExist(t *testing.T) {
	for _, f := range texts(t) {
		if path.Ext(f.path) != ".md" {
			continue
		}
		for _, m := range named.FindAllStringSubmatch(f.bytes, -1) {
			if _, err := os.Stat(filepath.Join("../..", filepath.FromSlash(m[1]))); err != nil {
				t.Errorf("%s names %s, which does not exist", f.path, m[1])
			}
		}
	}
}

// A comment cites a page by its path, and in it a section by number, a rule by letter or number, or a section by its
// name in quotes.
var (
	cited    = regexp.MustCompile(`docs/[a-z/-]+\.md((?:(?:,| and) (?:rule )?(?:\d+\.\d+|[A-Z]\d+|\d+|"[^"]+"))*)`)
	part     = regexp.MustCompile(`\d+\.\d+|[A-Z]\d+|\d+|"[^"]+"`)
	nextLine = regexp.MustCompile(`\n\s*(//|#) ?`)
)

func TestCommentsCiteWhatExists(t *testing.T) {
	all := texts(t)
	known := pages(all)
	for _, f := range all {
		if path.Ext(f.path) != ".go" && path.Ext(f.path) != ".txt" {
			continue
		}
		for _, m := range cited.FindAllStringSubmatch(nextLine.ReplaceAllString(f.bytes, " "), -1) {
			name, _, _ := strings.Cut(m[0], ",")
			name, _, _ = strings.Cut(name, " ")
			p := known[name]
			if p == nil {
				t.Errorf("%s cites %s, which does not exist", f.path, name)
				continue
			}
			for _, what := range part.FindAllString(m[1], -1) {
				if what = strings.Trim(what, `"`); !p.has(what) && !p.items[what] {
					t.Errorf("%s cites %q of %s, which does not say it", f.path, what, name)
				}
			}
		}
	}
}

// declared are the names of a package: types, functions, constants, variables, and what types
// have as "Type.Name".
func declared(r *repository) map[string]map[string]bool {
	out := map[string]map[string]bool{}
	for _, f := range r.files {
		if f.isTest() {
			continue
		}
		names := out[f.syntax.Name.Name]
		if names == nil {
			names = map[string]bool{}
			out[f.syntax.Name.Name] = names
		}
		for _, d := range f.syntax.Decls {
			switch d := d.(type) {
			case *ast.FuncDecl:
				name := d.Name.Name
				if d.Recv != nil {
					receiver := d.Recv.List[0].Type
					if index, ok := receiver.(*ast.IndexExpr); ok {
						receiver = index.X
					}
					name = root(receiver) + "." + name
				}
				names[name] = true
			case *ast.GenDecl:
				for _, s := range d.Specs {
					declare(names, s)
				}
			}
		}
	}
	return out
}

func declare(names map[string]bool, spec ast.Spec) {
	switch s := spec.(type) {
	case *ast.ValueSpec:
		for _, name := range s.Names {
			names[name.Name] = true
		}
	case *ast.TypeSpec:
		names[s.Name.Name] = true
		var fields *ast.FieldList
		switch t := s.Type.(type) {
		case *ast.StructType:
			fields = t.Fields
		case *ast.InterfaceType:
			fields = t.Methods
		default:
			return
		}
		for _, field := range fields.List {
			for _, name := range field.Names {
				names[s.Name.Name+"."+name.Name] = true
			}
		}
	}
}

// identifier matches a package's name in backquotes.
var identifier = regexp.MustCompile("`([a-z]+)\\.([A-Z]\\w*(?:\\.\\w+)?)`")

func TestGlossaryNamesWhatExists(t *testing.T) {
	names := declared(source(t))
	for _, f := range texts(t) {
		if f.path != "docs/internals/glossary.md" {
			continue
		}
		found := identifier.FindAllStringSubmatch(f.bytes, -1)
		require.NotEmpty(t, found)
		for _, m := range found {
			if !names[m[1]][m[2]] {
				t.Errorf("%s names %s.%s, which is not declared", f.path, m[1], m[2])
			}
		}
	}
}
