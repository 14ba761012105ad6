package lint

import (
	"go/ast"
	"go/token"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

func itoa(n int) string { return strconv.Itoa(n) }

func trimModule(name string) (folder string, ours bool) {
	return strings.CutPrefix(name, module+"/")
}

// maxLines is the maximal length of a function outside tests.
const maxLines = 90

func TestFunctionsFitAScreen(t *testing.T) {
	r := source(t)
	for _, f := range r.files {
		if f.isTest() {
			continue
		}
		for _, declaration := range f.syntax.Decls {
			fn, ok := declaration.(*ast.FuncDecl)
			if !ok {
				continue
			}
			if n := r.set.Position(fn.End()).Line - r.set.Position(fn.Pos()).Line + 1; n > maxLines {
				t.Errorf("%s: %s has %d lines, more than %d", r.at(f, fn), fn.Name.Name, n, maxLines)
			}
		}
	}
}

func TestTestsDoNotSleep(t *testing.T) {
	r := source(t)
	for _, f := range r.files {
		if !f.isTest() {
			continue
		}
		uses(f, "time", func(name string, at ast.Node) {
			if name == "Sleep" {
				t.Errorf("%s: a test sleeps", r.at(f, at))
			}
		})
	}
}

func TestNoTestIsSkipped(t *testing.T) {
	r := source(t)
	for _, f := range r.files {
		if !f.isTest() {
			continue
		}
		ast.Inspect(f.syntax, func(n ast.Node) bool {
			selector, ok := n.(*ast.SelectorExpr)
			if !ok {
				return true
			}
			switch selector.Sel.Name {
			case "Skip", "Skipf", "SkipNow":
				if x, ok := selector.X.(*ast.Ident); ok && (x.Name == "t" || x.Name == "b") {
					t.Errorf("%s: a test is skipped", r.at(f, selector))
				}
			}
			return true
		})
	}
}

// unfinished matches marks of unfinished work.
var unfinished = regexp.MustCompile(`\b(TO` + `DO|FIX` + `ME|X` + `XX|HA` + `CK)\b`)

func TestNothingIsLeftForLater(t *testing.T) {
	r := source(t)
	for _, f := range r.files {
		for _, group := range f.syntax.Comments {
			for _, comment := range group.List {
				if unfinished.MatchString(comment.Text) {
					t.Errorf("%s: %s", r.at(f, comment), comment.Text)
				}
			}
		}
		ast.Inspect(f.syntax, func(n ast.Node) bool {
			if literal, ok := n.(*ast.BasicLit); ok && literal.Kind == token.STRING &&
				strings.Contains(literal.Value, "not "+"implemented") {
				t.Errorf("%s: %s", r.at(f, literal), literal.Value)
			}
			return true
		})
	}
}

func TestEveryPackageSaysWhatItIs(t *testing.T) {
	r := source(t)
	said := map[string]bool{}
	for _, f := range r.files {
		if declares := len(f.syntax.Decls) > 1 || f.syntax.Doc != nil; declares && !f.isTest() {
			said[f.dir()] = said[f.dir()] || f.syntax.Doc != nil
		}
	}
	for folder, ok := range said {
		if !ok {
			t.Errorf("package %s has no comment", folder)
		}
	}
}
