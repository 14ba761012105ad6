package lint

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

const module = "github.com/braidlog/braid"

// file is a Go file of the repository.
type file struct {
	path   string // from the repository's root, with slashes
	syntax *ast.File
	lines  int
}

func (f *file) dir() string  { return path.Dir(f.path) }
func (f *file) isTest() bool { return strings.HasSuffix(f.path, "_test.go") }

// in reports whether the file is in a folder or below it.
func (f *file) in(folders ...string) bool {
	for _, folder := range folders {
		if f.dir() == folder || strings.HasPrefix(f.dir(), folder+"/") {
			return true
		}
	}
	return false
}

// repository has all Go files of the repository, read once.
type repository struct {
	set   *token.FileSet
	files []*file
}

var read = sync.OnceValues(func() (*repository, error) {
	root, err := filepath.Abs("../..")
	if err != nil {
		return nil, err
	}
	r := &repository{set: token.NewFileSet()}
	err = filepath.WalkDir(root, func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() && name != root && (strings.HasPrefix(entry.Name(), ".") || entry.Name() == "testdata") {
			return fs.SkipDir
		}
		if entry.IsDir() || !strings.HasSuffix(name, ".go") {
			return nil
		}
		syntax, err := parser.ParseFile(r.set, name, nil, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		relative, err := filepath.Rel(root, name)
		if err != nil {
			return err
		}
		r.files = append(r.files, &file{filepath.ToSlash(relative), syntax, r.set.Position(syntax.End()).Line})
		return nil
	})
	return r, err
})

func source(t *testing.T) *repository {
	t.Helper()
	r, err := read()
	require.NoError(t, err)
	require.NotEmpty(t, r.files)
	return r
}

// at is the position of a node, for messages.
func (r *repository) at(f *file, n ast.Node) string {
	p := r.set.Position(n.Pos())
	return f.path + ":" + itoa(p.Line)
}

// importName is the name by which a file refers to a package; "" if it does not import it.
func importName(f *ast.File, importPath string) string {
	for _, spec := range f.Imports {
		if strings.Trim(spec.Path.Value, `"`) != importPath {
			continue
		}
		if spec.Name != nil {
			return spec.Name.Name
		}
		return path.Base(importPath)
	}
	return ""
}

// uses calls found for every pkg.Name in a file.
func uses(f *file, importPath string, found func(name string, at ast.Node)) {
	local := importName(f.syntax, importPath)
	if local == "" {
		return
	}
	ast.Inspect(f.syntax, func(n ast.Node) bool {
		if selector, ok := n.(*ast.SelectorExpr); ok {
			if x, ok := selector.X.(*ast.Ident); ok && x.Name == local {
				found(selector.Sel.Name, selector)
			}
		}
		return true
	})
}
