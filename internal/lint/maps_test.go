package lint

import (
	"go/ast"
	"go/importer"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestPurePackagesIterateNoMaps type-checks the pure packages and refuses every range over a map: the order of maps
// is random, and rules must be deterministic.
func TestPurePackagesIterateNoMaps(t *testing.T) {
	r := source(t)
	folders := map[string][]*file{}
	for _, f := range pureFiles(r) {
		folders[f.dir()] = append(folders[f.dir()], f)
	}
	require.NotEmpty(t, folders)
	check := &checker{r: r, folders: folders, standard: compiled(t), done: map[string]*types.Package{}}
	for folder := range folders {
		_, err := check.Import(module + "/" + folder)
		require.NoError(t, err)
	}
	for at, over := range check.types {
		statement, ok := at.(*ast.RangeStmt)
		if ok && !excused(r, statement) {
			t.Errorf("%s: range over %s in a pure room", r.set.Position(statement.Pos()), over)
		}
	}
}

// compiled imports the dependencies of pure packages from the compiler's export data. To type-check the source of the
// standard library takes twenty times as long.
func compiled(t *testing.T) types.Importer {
	args := []string{"list", "-export", "-deps", "-f", "{{.ImportPath}}={{.Export}}"}
	for _, folder := range pure {
		args = append(args, module+"/"+folder+"/...")
	}
	list, err := exec.Command("go", args...).Output()
	require.NoError(t, err)
	files := map[string]string{}
	for line := range strings.Lines(string(list)) {
		name, file, _ := strings.Cut(strings.TrimSpace(line), "=")
		files[name] = file
	}
	return importer.ForCompiler(token.NewFileSet(), "gc", func(name string) (io.ReadCloser, error) {
		return os.Open(files[name])
	})
}

// excused reports whether a comment on the line gives the reason why the order does not matter: "any order: …".
func excused(r *repository, statement *ast.RangeStmt) bool {
	at := r.set.Position(statement.Pos())
	for _, f := range r.files {
		if r.set.Position(f.syntax.Pos()).Filename != at.Filename {
			continue
		}
		for _, group := range f.syntax.Comments {
			if r.set.Position(group.Pos()).Line == at.Line && strings.HasPrefix(group.Text(), "any order: ") {
				return true
			}
		}
	}
	return false
}

// checker type-checks the pure packages from their syntax.
type checker struct {
	r        *repository
	folders  map[string][]*file
	standard types.Importer
	done     map[string]*types.Package
	types    map[ast.Node]types.Type // statements that range over a map
}

// Import implements types.Importer.
func (c *checker) Import(name string) (*types.Package, error) {
	if p := c.done[name]; p != nil {
		return p, nil
	}
	folder, ours := trimModule(name)
	if syntax := c.folders[folder]; !ours || len(syntax) == 0 {
		return c.standard.Import(name)
	}
	var syntax []*ast.File
	for _, f := range c.folders[folder] {
		syntax = append(syntax, f.syntax)
	}
	info := &types.Info{Types: map[ast.Expr]types.TypeAndValue{}}
	config := types.Config{Importer: c}
	p, err := config.Check(name, c.r.set, syntax, info)
	if err != nil {
		return nil, err
	}
	c.done[name] = p
	for _, f := range syntax {
		ast.Inspect(f, func(n ast.Node) bool {
			if statement, ok := n.(*ast.RangeStmt); ok {
				c.note(statement, info.TypeOf(statement.X))
			}
			return true
		})
	}
	return p, nil
}

func (c *checker) note(statement *ast.RangeStmt, over types.Type) {
	if _, isMap := over.Underlying().(*types.Map); !isMap {
		return
	}
	if c.types == nil {
		c.types = map[ast.Node]types.Type{}
	}
	c.types[statement] = over
}
