package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"debug/buildinfo"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/braidlog/braid/internal/testsize"
)

// read reads the files of an archive.
func read(t *testing.T, file string) map[string][]byte {
	t.Helper()
	data, err := os.ReadFile(file)
	require.NoError(t, err)
	packed, err := gzip.NewReader(bytes.NewReader(data))
	require.NoError(t, err)
	out := map[string][]byte{}
	for archive := tar.NewReader(packed); ; {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return out
		}
		require.NoError(t, err)
		out[header.Name], err = io.ReadAll(archive)
		require.NoError(t, err)
	}
}

func TestArchivesDependOnTheirContentsAlone(t *testing.T) {
	a, b := entry{"a", []byte("first"), 0o644}, entry{"b", []byte("second"), 0o755}
	empty := entry{"data/", nil, 0o755}
	dir, at := t.TempDir(), time.Unix(1e9, 0)
	one, two, later := filepath.Join(dir, "one"), filepath.Join(dir, "two"), filepath.Join(dir, "later")
	require.NoError(t, writeArchive(one, "f", at, []entry{a, b, empty}))
	require.NoError(t, writeArchive(two, "f", at, []entry{empty, b, a}))
	require.NoError(t, writeArchive(later, "f", at.Add(time.Second), []entry{a, b, empty}))
	require.Equal(t, map[string][]byte{"f/a": a.data, "f/b": b.data, "f/data/": {}}, read(t, one))
	require.NoError(t, writeSums(dir, []string{"later", "one", "two"}))
	sums, err := os.ReadFile(filepath.Join(dir, sumsName))
	require.NoError(t, err)
	lines := strings.Split(string(sums), "\n")
	require.Equal(t, strings.Fields(lines[1])[0], strings.Fields(lines[2])[0])
	require.NotEqual(t, strings.Fields(lines[0])[0], strings.Fields(lines[1])[0])
}

func TestModulesAreListed(t *testing.T) {
	info := &debug.BuildInfo{GoVersion: "go1.26.8", Main: debug.Module{Path: "example.com/p"}, Deps: []*debug.Module{
		{Path: "example.com/a", Version: "v1.0.0+incompatible", Sum: "h1:a="},
		{Path: "example.com/b", Version: "v1.0.0", Replace: &debug.Module{Path: "example.com/c", Version: "v2.0.0"}},
	}}
	b := newBOM(info, sha256.Sum256([]byte("binary")), "v0.1.0", time.Unix(1e9, 0).UTC())
	var names []string
	for _, c := range b.Components {
		names = append(names, c.PURL)
	}
	require.Equal(t, []string{"pkg:golang/std@1.26.8", "pkg:golang/example.com/a@v1.0.0%2Bincompatible",
		"pkg:golang/example.com/c@v2.0.0"}, names)
	require.Equal(t, names, b.Dependencies[0].DependsOn)
	require.Equal(t, "2001-09-09T01:46:40Z", b.Metadata.Timestamp)
	require.Regexp(t, `^urn:uuid:[0-9a-f]{8}-[0-9a-f]{4}-8[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$`, b.Serial)
}

func TestVersionIsTheSources(t *testing.T) {
	s := source{version: "v0.1.0"}
	require.NoError(t, s.requireVersion(""))
	require.NoError(t, s.requireVersion("v0.1.0"))
	require.ErrorContains(t, s.requireVersion("v0.2.0"), "the source has version v0.1.0, not v0.2.0")
}

// clone is a checkout of HEAD in a directory of this name.
func clone(t *testing.T, name string) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), name)
	out, err := exec.Command("git", "clone", "-q", "../..", dir).CombinedOutput()
	require.NoError(t, err, string(out))
	return dir
}

// TestReleaseTwice: two checkouts of a commit, in directories of different names, make equal files. The archive has a
// binary that runs and names its commit, and a list of its modules.
func TestReleaseTwice(t *testing.T) {
	testsize.Only(t, testsize.Deploy)
	platform := runtime.GOOS + "/" + runtime.GOARCH
	var outs []string
	for _, dir := range []string{clone(t, "a"), clone(t, "another")} {
		t.Chdir(dir)
		outs = append(outs, filepath.Join(t.TempDir(), "out"))
		require.NoError(t, run(io.Discard, options{out: outs[len(outs)-1], platforms: []string{platform}}))
	}
	check := exec.Command("sha256sum", "-c", sumsName)
	check.Dir = outs[0]
	text, err := check.CombinedOutput()
	require.NoError(t, err, string(text))
	files, err := os.ReadDir(outs[0])
	require.NoError(t, err)
	require.Len(t, files, 3)
	for _, f := range files {
		one, err := os.ReadFile(filepath.Join(outs[0], f.Name()))
		require.NoError(t, err)
		two, err := os.ReadFile(filepath.Join(outs[1], f.Name()))
		require.NoError(t, err)
		require.True(t, bytes.Equal(one, two), f.Name())
		if folder, ok := strings.CutSuffix(f.Name(), archiveSuffix); ok {
			requireRuns(t, folder, read(t, filepath.Join(outs[0], f.Name())))
		}
	}
}

// requireRuns requires that an archive has its files, and that its binary runs.
func requireRuns(t *testing.T, folder string, files map[string][]byte) {
	t.Helper()
	for _, name := range []string{"LICENSE", "README.md", "completions/braid.bash", "man/man1/braid-serve.1",
		"deploy/docker/Dockerfile", "deploy/systemd/braid.service"} {
		require.NotEmpty(t, files[folder+"/"+name], name)
	}
	require.Contains(t, files, folder+"/"+dataDir)
	binary := filepath.Join(t.TempDir(), "braid")
	require.NoError(t, os.WriteFile(binary, files[folder+"/braid"], 0o755))
	head, err := output("", "git", "rev-parse", "HEAD")
	require.NoError(t, err)
	version, err := output("", binary, "version")
	require.NoError(t, err)
	require.Contains(t, version, head)
	info, err := buildinfo.ReadFile(binary)
	require.NoError(t, err)
	var listed bom
	require.NoError(t, json.Unmarshal(files[folder+"/bom.cdx.json"], &listed))
	require.Len(t, listed.Components, len(info.Deps)+1)
}
