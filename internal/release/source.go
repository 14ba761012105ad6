package main

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"
)

// source is the checkout that a release is made of.
type source struct {
	root        string    // its directory
	scratch     string    // a directory for binaries
	version     string    // as v0.1.0
	time        time.Time // when it was committed
	completions []entry   // scripts with which shells complete braid's commands
	pages       []entry   // manual pages
}

// readSource reads the checkout of the working directory. The version and the completions are those that braid prints,
// so it is built for this machine.
func readSource(scratch string) (*source, error) {
	root, err := output("", "go", "list", "-m", "-f", "{{.Dir}}")
	if err != nil {
		return nil, err
	}
	s := &source{root: root, scratch: scratch}
	if s.time, err = committed(root); err != nil {
		return nil, err
	}
	braid, err := s.binary(runtime.GOOS, runtime.GOARCH)
	if err != nil {
		return nil, err
	}
	if s.version, err = versionOf(braid); err != nil {
		return nil, err
	}
	for _, shell := range []string{"bash", "zsh", "fish"} {
		script, err := output(root, braid, "completion", shell)
		if err != nil {
			return nil, err
		}
		s.completions = append(s.completions, entry{"completions/braid." + shell, []byte(script + "\n"), 0o644})
	}
	s.pages, err = s.manual(braid)
	return s, err
}

// manual is the manual pages that braid writes.
func (s *source) manual(braid string) (pages []entry, err error) {
	dir, err := os.MkdirTemp(s.scratch, "man")
	if err != nil {
		return nil, err
	}
	if _, err := output(s.root, braid, "man", dir); err != nil {
		return nil, err
	}
	files, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	for _, f := range files {
		text, err := os.ReadFile(filepath.Join(dir, f.Name()))
		if err != nil {
			return nil, err
		}
		pages = append(pages, entry{"man/man1/" + f.Name(), text, 0o644})
	}
	return pages, nil
}

// requireVersion fails if the source has another version; "" is any.
func (s *source) requireVersion(version string) error {
	if version != "" && version != s.version {
		return fmt.Errorf("the source has version %s, not %s: see cmd/braid/version.go", s.version, version)
	}
	return nil
}

// binary is braid for a platform. It is built once.
func (s *source) binary(goos, goarch string) (string, error) {
	name := filepath.Join(s.scratch, "braid-"+goos+"-"+goarch)
	if _, err := os.Stat(name); err == nil {
		return name, nil
	}
	return name, compile(s.root, name, goos, goarch)
}

// committed returns the time of all files of the release.
func committed(root string) (time.Time, error) {
	seconds := os.Getenv("SOURCE_DATE_EPOCH")
	if seconds == "" {
		var err error
		if seconds, err = output(root, "git", "log", "-1", "--format=%ct"); err != nil {
			return time.Time{}, fmt.Errorf("the commit's time, unless SOURCE_DATE_EPOCH is set: %w", err)
		}
	}
	n, err := strconv.ParseInt(seconds, 10, 64)
	if err != nil {
		return time.Time{}, fmt.Errorf("SOURCE_DATE_EPOCH is not a number of seconds: %q", seconds)
	}
	return time.Unix(n, 0).UTC(), nil
}

func versionOf(braid string) (string, error) {
	text, err := output("", braid, "version", "--json")
	if err != nil {
		return "", err
	}
	var v struct {
		Braid string `json:"braid"`
	}
	if err := json.Unmarshal([]byte(text), &v); err != nil {
		return "", fmt.Errorf("braid version --json: %w", err)
	}
	return "v" + v.Braid, nil
}

// tracked are the files and folders of the repository that an archive has, except for Go's sources.
var tracked = []string{"LICENSE", "README.md", "CHANGELOG.md", "deploy", "docs/compatibility.md", "docs/using"}

// dataDir is an empty folder of an archive, which becomes the data directory of an image.
const dataDir = "deploy/docker/data/"

// entries are the contents of an archive with a binary and its list of modules.
func (s *source) entries(binary string, bom []byte) ([]entry, error) {
	program, err := os.ReadFile(binary)
	if err != nil {
		return nil, err
	}
	all := append([]entry{{"braid", program, 0o755}, {"bom.cdx.json", bom, 0o644}, {dataDir, nil, 0o755}},
		slices.Concat(s.completions, s.pages)...)
	names, err := output(s.root, "git", append([]string{"ls-files", "--"}, tracked...)...)
	if err != nil {
		return nil, err
	}
	for _, name := range strings.Fields(names) {
		if filepath.Ext(name) == ".go" {
			continue
		}
		data, err := os.ReadFile(filepath.Join(s.root, filepath.FromSlash(name)))
		if err != nil {
			return nil, err
		}
		all = append(all, entry{name, data, 0o644})
	}
	return all, nil
}

// output returns the output of a command, without spaces around it. An empty directory is the working directory.
func output(dir, name string, args ...string) (string, error) {
	cmd := exec.Command(name, args...)
	var stderr strings.Builder
	cmd.Dir, cmd.Stderr = dir, &stderr
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("%s: %w: %s", cmd, err, stderr.String())
	}
	return strings.TrimSpace(string(out)), nil
}
