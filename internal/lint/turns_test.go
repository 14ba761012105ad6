package lint

import (
	"go/ast"
	"slices"
	"testing"
)

// turnDrivers are the folders whose method carry carries out instance.Turn. all says that it comes to each field except
// one.
var turnDrivers = []struct {
	folder string
	all    bool
	except string
}{
	{"internal/replica", true, ""},
	{"internal/sim/node", true, "Merge"}, // it shows no member's status to operators
	{"internal/sim/scale", false, ""},
}

// TestDriversCarryOutTurnsInTheSameOrder shows that production and the simulator carry out what a turn wants in the
// order of its fields. What the simulator finds then holds for production.
func TestDriversCarryOutTurnsInTheSameOrder(t *testing.T) {
	r := source(t)
	fields := turnFields(t, r)
	for _, d := range turnDrivers {
		carried := carriedFields(r, d.folder, "carry", map[string]bool{})
		last := -1
		for _, name := range carried {
			at := slices.Index(fields, name)
			if at < 0 {
				t.Errorf("%s: carry uses %s, which is no field of a turn", d.folder, name)
			} else if at < last {
				t.Errorf("%s: carry comes to %s after %s", d.folder, name, fields[last])
			}
			last = max(last, at)
		}
		for _, name := range fields {
			if d.all && name != d.except && !slices.Contains(carried, name) {
				t.Errorf("%s: carry leaves out %s", d.folder, name)
			}
		}
	}
}

// turnFields lists the fields of instance.Turn.
func turnFields(t *testing.T, r *repository) (names []string) {
	for _, f := range r.files {
		if f.dir() != "internal/member/instance" {
			continue
		}
		ast.Inspect(f.syntax, func(n ast.Node) bool {
			if spec, ok := n.(*ast.TypeSpec); ok && spec.Name.Name == "Turn" {
				for _, field := range spec.Type.(*ast.StructType).Fields.List {
					for _, name := range field.Names {
						names = append(names, name.Name)
					}
				}
			}
			return true
		})
	}
	if len(names) == 0 {
		t.Fatal("instance.Turn has no fields")
	}
	return names
}

// carriedFields lists the fields of the parameter t of a method in a folder, where each is used first; methods that are
// called with t are looked into where they are called.
func carriedFields(r *repository, folder, method string, seen map[string]bool) (names []string) {
	body := methodOfTurn(r, folder, method)
	if body == nil {
		return nil
	}
	ast.Inspect(body, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.SelectorExpr:
			if x, ok := n.X.(*ast.Ident); ok && x.Name == "t" && !seen[n.Sel.Name] {
				seen[n.Sel.Name] = true
				names = append(names, n.Sel.Name)
			}
		case *ast.CallExpr:
			called, ok := n.Fun.(*ast.SelectorExpr)
			if !ok || len(n.Args) != 1 {
				return true
			}
			if arg, ok := n.Args[0].(*ast.Ident); ok && arg.Name == "t" {
				names = append(names, carriedFields(r, folder, called.Sel.Name, seen)...)
			}
		}
		return true
	})
	return names
}

// methodOfTurn returns the body of the method of that name that takes a turn.
func methodOfTurn(r *repository, folder, method string) *ast.BlockStmt {
	for _, f := range r.files {
		if f.dir() != folder || f.isTest() {
			continue
		}
		for _, d := range f.syntax.Decls {
			fn, ok := d.(*ast.FuncDecl)
			if !ok || fn.Recv == nil || fn.Name.Name != method || len(fn.Type.Params.List) != 1 {
				continue
			}
			if p, ok := fn.Type.Params.List[0].Type.(*ast.StarExpr); ok {
				if s, ok := p.X.(*ast.SelectorExpr); ok && s.Sel.Name == "Turn" {
					return fn.Body
				}
			}
		}
	}
	return nil
}
