package braid_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// declared are the exported fields and methods of the types of a package, by the type's name.
func declared(t *testing.T, dir string) map[string][]string {
	t.Helper()
	out := map[string][]string{}
	add := func(to, name string) {
		if ast.IsExported(name) {
			out[to] = append(out[to], name)
		}
	}
	for _, file := range sources(t, dir) {
		for _, d := range file.Decls {
			if f, ok := d.(*ast.FuncDecl); ok && f.Recv != nil {
				add(receiver(f.Recv.List[0].Type), f.Name.Name)
			}
		}
		ast.Inspect(file, func(n ast.Node) bool {
			s, ok := n.(*ast.TypeSpec)
			if !ok {
				return true
			}
			var fields *ast.FieldList
			switch x := s.Type.(type) {
			case *ast.StructType:
				fields = x.Fields
			case *ast.InterfaceType:
				fields = x.Methods
			default:
				return true
			}
			for _, f := range fields.List {
				for _, id := range f.Names {
					add(s.Name.Name, id.Name)
				}
			}
			return true
		})
	}
	return out
}

func receiver(e ast.Expr) string {
	switch x := e.(type) {
	case *ast.StarExpr:
		return receiver(x.X)
	case *ast.Ident:
		return x.Name
	}
	return ""
}

// sources are the files of a package, tests apart.
func sources(t *testing.T, dir string) (out []*ast.File) {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(dir, "*.go"))
	require.NoError(t, err)
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		text, err := os.ReadFile(name)
		require.NoError(t, err)
		file, err := parser.ParseFile(token.NewFileSet(), name, text, parser.ParseComments)
		require.NoError(t, err)
		out = append(out, file)
	}
	require.NotEmpty(t, out, "sources in %s", dir)
	return out
}

// folder is where a package is that a file imports.
func folder(t *testing.T, file *ast.File, name string) string {
	t.Helper()
	for _, i := range file.Imports {
		path := strings.Trim(i.Path.Value, `"`)
		if dir, ours := strings.CutPrefix(path, "github.com/braidlog/braid/"); ours && filepath.Base(dir) == name {
			return filepath.FromSlash(dir)
		}
	}
	require.Fail(t, "no import", "package %s", name)
	return ""
}

// elsewhere are types whose fields the documentation of another package has, which is public.
var elsewhere = map[string]bool{"InstanceStatus": true, "LanesStatus": true, "EpochStatus": true}

// obvious are methods that say nothing new: of errors, and of values that are printed or encoded.
var obvious = map[string]bool{
	"Error": true, "String": true, "MarshalJSON": true, "UnmarshalJSON": true, "MarshalBinary": true, "UnmarshalBinary": true,
}

// TestAliasesAreDocumented: a type that is declared in another package says here what fields and methods it has,
// because go doc of this package does not show them.
func TestAliasesAreDocumented(t *testing.T) {
	packages := map[string]map[string][]string{}
	aliases := 0
	for _, file := range sources(t, ".") {
		for _, d := range file.Decls {
			g, ok := d.(*ast.GenDecl)
			if !ok || g.Tok != token.TYPE {
				continue
			}
			for _, spec := range g.Specs {
				s := spec.(*ast.TypeSpec)
				of, ok := s.Type.(*ast.SelectorExpr)
				if !s.Assign.IsValid() || !ok {
					continue
				}
				aliases++
				dir := folder(t, file, of.X.(*ast.Ident).Name)
				if packages[dir] == nil {
					packages[dir] = declared(t, dir)
				}
				text := g.Doc.Text()
				require.True(t, strings.HasPrefix(text, s.Name.Name+" "), "%s: its comment is about something else", s.Name.Name)
				for _, member := range packages[dir][of.Sel.Name] {
					if !obvious[member] && !elsewhere[s.Name.Name] {
						assert.Regexp(t, `\b`+regexp.QuoteMeta(member)+`\b`, text, "%s has a %s", s.Name.Name, member)
					}
				}
			}
		}
	}
	require.Positive(t, aliases)
}
