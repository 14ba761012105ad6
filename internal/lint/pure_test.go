package lint

import (
	"go/ast"
	"go/token"
	"slices"
	"strings"
	"testing"
)

// pure are the packages whose behavior depends on their inputs alone.
var pure = []string{"protocol", "internal/protocol", "internal/order", "internal/member", "internal/fit",
	"internal/mutant"}

// quiet are the packages that the simulator runs unchanged: they read no clock and start nothing.
var quiet = append([]string{"internal/datadir"}, pure...)

func pureFiles(r *repository) []*file { return filesOf(r, pure) }

func filesOf(r *repository, folders []string) (out []*file) {
	for _, f := range r.files {
		if f.in(folders...) && !f.isTest() && !f.in("protocol/conformance") {
			out = append(out, f)
		}
	}
	return out
}

// harmless are the packages of the standard library that a pure package may use.
var harmless = []string{
	"bytes", "cmp", "container/heap", "container/list", "context", "encoding/binary", "encoding/hex", "encoding/json",
	"errors", "fmt", "hash/crc32", "io",
	"iter", "maps", "math", "math/bits", "slices", "sort", "strconv", "strings", "time", "unsafe",
}

func TestPurePackagesImportHarmlessPackages(t *testing.T) {
	r := source(t)
	for _, f := range pureFiles(r) {
		for _, spec := range f.syntax.Imports {
			imported := strings.Trim(spec.Path.Value, `"`)
			if imported == "reflect" && f.in("protocol/setting") {
				continue // it reads the fields of a struct when a member starts
			}
			if !strings.HasPrefix(imported, module) && !slices.Contains(harmless, imported) {
				t.Errorf("%s: a pure room may not import %q", r.at(f, spec), imported)
			}
		}
	}
}

// durations are the names of package time that a pure package may use: numbers, no clock.
var durations = []string{"Duration", "ParseDuration", "Nanosecond", "Microsecond", "Millisecond", "Second",
	"Minute", "Hour"}

func TestPurePackagesReadNoClock(t *testing.T) {
	r := source(t)
	for _, f := range filesOf(r, quiet) {
		uses(f, "time", func(name string, at ast.Node) {
			if !slices.Contains(durations, name) {
				t.Errorf("%s: time.%s in a room without a clock", r.at(f, at), name)
			}
		})
		uses(f, "fmt", func(name string, at ast.Node) {
			if strings.HasPrefix(name, "Print") || strings.HasPrefix(name, "Scan") {
				t.Errorf("%s: fmt.%s in a pure room", r.at(f, at), name)
			}
		})
	}
}

func TestPurePackagesStartNothing(t *testing.T) {
	r := source(t)
	for _, f := range filesOf(r, quiet) {
		ast.Inspect(f.syntax, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.GoStmt:
				t.Errorf("%s: a goroutine in a room that starts none", r.at(f, n))
			case *ast.ChanType, *ast.SelectStmt, *ast.SendStmt:
				t.Errorf("%s: a channel in a room that starts nothing", r.at(f, n))
			}
			return true
		})
	}
}

// TestPurePackagesKeepNoState allows variables of a package only as tables: composite literals and errors that the
// package never assigns to again.
func TestPurePackagesKeepNoState(t *testing.T) {
	r := source(t)
	for _, f := range pureFiles(r) {
		for _, declaration := range f.syntax.Decls {
			g, ok := declaration.(*ast.GenDecl)
			if !ok || g.Tok != token.VAR {
				continue
			}
			for _, spec := range g.Specs {
				v := spec.(*ast.ValueSpec)
				if len(v.Values) == 0 && v.Names[0].Name != "_" {
					t.Errorf("%s: variable %s of a package in a pure room has no fixed value", r.at(f, v), v.Names[0].Name)
				}
				for _, name := range v.Names {
					reportWrites(t, r, f, name.Name)
				}
			}
		}
	}
}

// reportWrites finds assignments to a package's variable in the files of its folder.
func reportWrites(t *testing.T, r *repository, declared *file, name string) {
	for _, f := range r.files {
		if f.dir() != declared.dir() || f.isTest() {
			continue
		}
		for _, declaration := range f.syntax.Decls {
			fn, ok := declaration.(*ast.FuncDecl)
			if !ok || fn.Body == nil || declares(fn, name) {
				continue
			}
			ast.Inspect(fn.Body, func(n ast.Node) bool {
				if a, ok := n.(*ast.AssignStmt); ok && a.Tok != token.DEFINE {
					for _, left := range a.Lhs {
						if root(left) == name {
							t.Errorf("%s: assignment to the package's variable %s in a pure room", r.at(f, a), name)
						}
					}
				}
				return true
			})
		}
	}
}

// declares reports whether a function has a parameter or variable of that name.
func declares(fn *ast.FuncDecl, name string) bool {
	found := false
	ast.Inspect(fn, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.Field:
			for _, id := range n.Names {
				found = found || id.Name == name
			}
		case *ast.AssignStmt:
			if n.Tok == token.DEFINE {
				for _, left := range n.Lhs {
					found = found || root(left) == name
				}
			}
		case *ast.ValueSpec:
			for _, id := range n.Names {
				found = found || id.Name == name
			}
		}
		return true
	})
	return found
}

// root is the variable at the root of x, x.y, x[i] and *x.
func root(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.Ident:
		return e.Name
	case *ast.SelectorExpr:
		return root(e.X)
	case *ast.IndexExpr:
		return root(e.X)
	case *ast.StarExpr:
		return root(e.X)
	case *ast.ParenExpr:
		return root(e.X)
	}
	return ""
}
