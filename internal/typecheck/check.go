package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"path/filepath"
	"slices"
	"strings"
)

// checker checks packages, each after what it imports.
type checker struct {
	files  *token.FileSet
	sizes  types.Sizes
	known  map[string]*types.Package // by import path, as go list says it
	errors []string                  // each once: a package is checked again for its tests
}

func newChecker(goarch string) *checker {
	return &checker{files: token.NewFileSet(), sizes: types.SizesFor("gc", goarch),
		known: map[string]*types.Package{"unsafe": types.Unsafe}}
}

// check checks a package: all of it if it is one of the module, else its declarations.
func (c *checker) check(p *pkg) {
	if p.ImportPath == "unsafe" {
		return
	}
	path, _, _ := strings.Cut(p.ImportPath, " ")
	config := &types.Config{
		GoVersion:        p.goVersion(),
		IgnoreFuncBodies: !p.own(),
		Sizes:            c.sizes,
		Importer:         importer(func(path string) (*types.Package, error) { return c.imported(p, path) }),
		Error:            func(err error) { c.add(err) },
	}
	c.known[p.ImportPath], _ = config.Check(path, c.files, c.parse(p), nil) // each error was added
}

// add notes an error.
func (c *checker) add(err error) {
	if text := err.Error(); !slices.Contains(c.errors, text) {
		c.errors = append(c.errors, text)
	}
}

// parse reads the files of a package.
func (c *checker) parse(p *pkg) (files []*ast.File) {
	for _, name := range p.GoFiles {
		if !filepath.IsAbs(name) {
			name = filepath.Join(p.Dir, name)
		}
		file, err := parser.ParseFile(c.files, name, nil, parser.SkipObjectResolution)
		if err != nil {
			c.add(err)
			continue
		}
		files = append(files, file)
	}
	return files
}

// imported is the package that another one imports by a path.
func (c *checker) imported(by *pkg, path string) (*types.Package, error) {
	if other, ok := by.ImportMap[path]; ok {
		path = other
	}
	if found := c.known[path]; found != nil {
		return found, nil
	}
	return nil, fmt.Errorf("%s imports %s, which is not listed before it", by.ImportPath, path)
}

// importer is a function as a [types.Importer].
type importer func(path string) (*types.Package, error)

func (f importer) Import(path string) (*types.Package, error) { return f(path) }
