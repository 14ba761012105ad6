package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
)

// pkg is what go list says of a package.
type pkg struct {
	ImportPath string // of a package that is compiled again for a test: with " [" and the test's name
	Dir        string
	Standard   bool
	GoFiles    []string
	CgoFiles   []string
	ImportMap  map[string]string // imports that stand for another package
	Module     *struct {
		Main      bool
		GoVersion string
	}
}

// own reports whether the package is one of the module that is checked.
func (p *pkg) own() bool { return p.Module != nil && p.Module.Main }

// goVersion is the language's version, for go/types.
func (p *pkg) goVersion() string {
	if p.Module == nil || p.Module.GoVersion == "" {
		return ""
	}
	return "go" + p.Module.GoVersion
}

// load lists packages, their tests and all that they need, each after what it imports.
func load(goos, goarch string, patterns []string) ([]*pkg, error) {
	args := append([]string{"list", "-deps", "-test", "-json=ImportPath,Dir,Standard,GoFiles,CgoFiles,ImportMap,Module",
		"--"}, patterns...)
	cmd := exec.Command("go", args...)
	cmd.Env = append(os.Environ(), "GOOS="+goos, "GOARCH="+goarch, "CGO_ENABLED=0")
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	packages, err := decode(out)
	return packages, errors.Join(err, cmd.Wait())
}

// decode reads what go list prints, but not the main packages of tests, which Go writes itself.
func decode(in io.Reader) (packages []*pkg, err error) {
	for d := json.NewDecoder(in); ; {
		p := new(pkg)
		if err := d.Decode(p); errors.Is(err, io.EOF) {
			return packages, nil
		} else if err != nil {
			return packages, err
		}
		if len(p.CgoFiles) > 0 {
			return packages, fmt.Errorf("%s needs C", p.ImportPath)
		}
		if !strings.HasSuffix(p.ImportPath, ".test") {
			packages = append(packages, p)
		}
	}
}
