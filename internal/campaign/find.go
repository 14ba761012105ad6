package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"github.com/braidlog/braid/internal/testsize"
)

// tests are the tests of one package that belong to a campaign.
type tests struct {
	folder string // from the module's root
	tests  []string
}

// pattern is the argument of -run.
func (p *tests) pattern() string { return "^(" + strings.Join(p.tests, "|") + ")$" }

// find returns the tests of each campaign of the module in a directory.
func find(root string) (map[testsize.Campaign][]tests, error) {
	all := map[testsize.Campaign][]tests{}
	err := filepath.WalkDir(root, func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() && name != root && (strings.HasPrefix(entry.Name(), ".") || entry.Name() == "testdata") {
			return fs.SkipDir
		}
		if entry.IsDir() || !strings.HasSuffix(name, "_test.go") {
			return nil
		}
		relative, err := filepath.Rel(root, name)
		if err != nil {
			return err
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		found, err := inFile(file)
		if err != nil {
			return fmt.Errorf("%s: %w", relative, err)
		}
		for c, names := range found {
			all[c] = add(all[c], filepath.ToSlash(filepath.Dir(relative)), names)
		}
		return nil
	})
	return all, err
}

// add adds tests of a folder.
func add(list []tests, folder string, names []string) []tests {
	for i := range list {
		if list[i].folder == folder {
			list[i].tests = append(list[i].tests, names...)
			return list
		}
	}
	return append(list, tests{folder, names})
}

// inFile returns the tests of a file by their campaigns. A campaign that is named anywhere but in a test is an
// error: the tests that use it would be left out.
func inFile(file *ast.File) (map[testsize.Campaign][]string, error) {
	found := map[testsize.Campaign][]string{}
	for _, d := range file.Decls {
		f, ok := d.(*ast.FuncDecl)
		isTest := ok && f.Recv == nil && strings.HasPrefix(f.Name.Name, "Test")
		isMain := isTest && f.Name.Name == "TestMain" // it belongs to all tests of its package
		var err error
		ast.Inspect(d, func(n ast.Node) bool {
			c := named(n)
			switch {
			case c == "" || isMain:
			case !isTest:
				err = fmt.Errorf("campaign %q is named outside a test", c)
			case !slices.Contains(found[c], f.Name.Name):
				found[c] = append(found[c], f.Name.Name)
			}
			return true
		})
		if err != nil {
			return nil, err
		}
	}
	return found, nil
}

// named is the campaign that an expression names; "": none.
func named(n ast.Node) testsize.Campaign {
	s, ok := n.(*ast.SelectorExpr)
	if !ok {
		return ""
	}
	if x, ok := s.X.(*ast.Ident); !ok || x.Name != "testsize" {
		return ""
	}
	if c := testsize.Campaign(strings.ToLower(s.Sel.Name)); slices.Contains(testsize.Campaigns, c) {
		return c
	}
	return ""
}
