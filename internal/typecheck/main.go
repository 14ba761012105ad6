package main

import (
	"flag"
	"fmt"
	"io"
	"os"
	"strings"
)

func main() {
	platform := flag.String("platform", "darwin/arm64", "the platform, as GOOS/GOARCH")
	flag.Parse()
	if err := run(os.Stdout, *platform, flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, "typecheck:", err)
		os.Exit(1)
	}
}

// run checks the packages that match patterns in the current directory, "./..." if there is none, with their tests. It
// prints each error.
func run(out io.Writer, platform string, patterns []string) error {
	goos, goarch, ok := strings.Cut(platform, "/")
	if !ok {
		return fmt.Errorf("platform %q is not GOOS/GOARCH", platform)
	}
	if len(patterns) == 0 {
		patterns = []string{"./..."}
	}
	packages, err := load(goos, goarch, patterns)
	if err != nil {
		return err
	}
	c := newChecker(goarch)
	own := 0
	for _, p := range packages {
		if p.own() {
			own++
		}
		c.check(p)
	}
	for _, err := range c.errors {
		fmt.Fprintln(out, err)
	}
	if len(c.errors) > 0 {
		return fmt.Errorf("%d errors for %s", len(c.errors), platform)
	}
	fmt.Fprintf(out, "%d packages for %s, and %d that they need\n", own, platform, len(packages)-own)
	return nil
}
