package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

func main() {
	missing := flag.Bool("missing", false, "print the lines that did not run")
	flag.Parse()
	if err := measure(os.Stdout, *missing); err != nil {
		fmt.Fprintln(os.Stderr, "simcover:", err)
		os.Exit(1)
	}
}

// measure runs the campaigns and prints what they covered. It fails if a package covers too little.
func measure(out io.Writer, missing bool) error {
	root, err := output("go", "list", "-m", "-f", "{{.Dir}}")
	if err != nil {
		return err
	}
	if err := os.Chdir(root); err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "simcover")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	began := time.Now()
	blocks, err := profile(dir)
	if err != nil {
		return err
	}
	t, err := tally(root, blocks)
	if err != nil {
		return err
	}
	t.print(out, missing)
	fmt.Fprintf(out, "\nmeasured in %s\n", time.Since(began).Round(time.Second))
	return t.verdict()
}

// profile builds braid with counters, runs the campaigns with it and returns what was counted.
func profile(dir string) ([]block, error) {
	// The command's own package must be in the list: otherwise the program writes no counts at its end.
	packages := "./cmd/braid"
	for _, r := range rooms {
		packages += ",./" + r.path
	}
	bin, data, text := filepath.Join(dir, "braid"), filepath.Join(dir, "data"), filepath.Join(dir, "text")
	if err := os.Mkdir(data, 0o700); err != nil {
		return nil, err
	}
	if _, err := output("go", "build", "-cover", "-coverpkg="+packages, "-o", bin, "./cmd/braid"); err != nil {
		return nil, err
	}
	for _, c := range campaigns {
		cmd := exec.Command(bin, append([]string{"sim", "--json", "--failures", "1000000", "--seeds", c.seeds}, c.cluster...)...)
		cmd.Env = append(os.Environ(), "GOCOVERDIR="+data)
		// A seed that fails is for others to find: here only what ran matters.
		if err := cmd.Run(); err != nil && !errors.As(err, new(*exec.ExitError)) {
			return nil, err
		}
	}
	if _, err := output("go", "tool", "covdata", "textfmt", "-i="+data, "-o="+text); err != nil {
		return nil, err
	}
	f, err := os.Open(text)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return readProfile(f)
}

// output runs a command and returns what it wrote.
func output(name string, args ...string) (string, error) {
	cmd := exec.Command(name, args...)
	var text, said strings.Builder
	cmd.Stdout, cmd.Stderr = &text, &said
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("%s %s: %w\n%s", name, strings.Join(args, " "), err, said.String())
	}
	return strings.TrimSpace(text.String()), nil
}
