package main

import (
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/braidlog/braid/internal/durable"
	"github.com/braidlog/braid/internal/vfs"
)

// platforms are those of a release.
var platforms = []string{"linux/amd64", "linux/arm64", "darwin/amd64", "darwin/arm64"}

func main() {
	var o options
	flag.StringVar(&o.out, "out", "", "directory for the files; it is made if it does not exist")
	flag.StringVar(&o.version, "version", "", "version that the source must have, as v0.1.0")
	chosen := flag.String("platforms", strings.Join(platforms, ","), "platforms, as GOOS/GOARCH,…")
	flag.Parse()
	o.platforms = strings.Split(*chosen, ",")
	if err := run(os.Stdout, o); err != nil {
		fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(1)
	}
}

type options struct {
	out       string
	version   string // "": any
	platforms []string
}

// run writes all files, and prints their names. A repeated run replaces them.
func run(out io.Writer, o options) error {
	if o.out == "" {
		return fmt.Errorf("--out is missing: name a directory for the files")
	}
	dir, err := filepath.Abs(o.out)
	if err != nil {
		return err
	}
	if err := durable.MakeDir(vfs.OS, dir, 0o755); err != nil {
		return err
	}
	scratch, err := os.MkdirTemp("", "braid-release-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(scratch)
	src, err := readSource(scratch)
	if err != nil {
		return err
	}
	if err := src.requireVersion(o.version); err != nil {
		return err
	}
	var made []string
	for _, p := range o.platforms {
		names, err := makePlatform(src, p, dir)
		if err != nil {
			return fmt.Errorf("%s: %w", p, err)
		}
		made = append(made, names...)
	}
	slices.Sort(made)
	if err := writeSums(dir, made); err != nil {
		return err
	}
	for _, name := range append(made, sumsName) {
		fmt.Fprintln(out, filepath.Join(o.out, name))
	}
	return nil
}

// makePlatform writes the archive of a platform and its list of modules to a directory, and returns their names.
func makePlatform(src *source, platform, dir string) ([]string, error) {
	goos, goarch, ok := strings.Cut(platform, "/")
	if !ok {
		return nil, fmt.Errorf("a platform is written as linux/amd64")
	}
	binary, err := src.binary(goos, goarch)
	if err != nil {
		return nil, err
	}
	name := "braid-" + src.version + "-" + goos + "-" + goarch
	bom, err := modulesOf(binary, src)
	if err != nil {
		return nil, err
	}
	if err := os.WriteFile(filepath.Join(dir, name+bomSuffix), bom, 0o644); err != nil {
		return nil, err
	}
	entries, err := src.entries(binary, bom)
	if err != nil {
		return nil, err
	}
	if err := writeArchive(filepath.Join(dir, name+archiveSuffix), name, src.time, entries); err != nil {
		return nil, err
	}
	return []string{name + archiveSuffix, name + bomSuffix}, nil
}
