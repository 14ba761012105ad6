package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

func main() {
	missing := flag.Bool("missing", false, "print the lines that did not run")
	rest := flag.Bool("all", false, "then run the seeds that are not counted, too")
	each := flag.Duration("for", 0, "run new seeds of each kind of cluster for so long, and count nothing")
	flag.Parse()
	if err := run(os.Stdout, *missing, *rest, *each); err != nil {
		fmt.Fprintln(os.Stderr, "simcover:", err)
		os.Exit(1)
	}
}

// run executes the command. It fails if a seed fails, a package covers too little, or a required event never happens.
func run(out io.Writer, missing, rest bool, each time.Duration) error {
	root, err := output("go", "list", "-m", "-f", "{{.Dir}}")
	if err != nil {
		return err
	}
	if err := os.Chdir(root); err != nil {
		return err
	}
	if each > 0 {
		_, err := simulate(out, func(c campaign) (string, []string) {
			return "1-1000000", []string{"--duration", each.String()}
		})
		return err
	}
	happened, err := measure(out, root, missing)
	if !rest {
		return err
	}
	more, failed := simulate(out, func(c campaign) (string, []string) {
		if c.counted == c.seeds {
			return "", nil
		}
		return fmt.Sprintf("%d-%d", c.counted+1, c.seeds), nil
	})
	for cluster, events := range more {
		happened.add(cluster, events)
	}
	return errors.Join(err, failed, happened.verdict())
}

// simulate runs seeds of each campaign, and more flags, with a program that counts no statements.
func simulate(out io.Writer, seeds func(campaign) (string, []string)) (happened, error) {
	dir, err := os.MkdirTemp("", "simcover")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	bin := filepath.Join(dir, "braid")
	if _, err := output("go", "build", "-o", bin, "./cmd/braid"); err != nil {
		return nil, err
	}
	all := happened{}
	for _, c := range campaigns {
		if s, more := seeds(c); s != "" {
			err = errors.Join(err, c.run(out, bin, "", s, all, more...))
		}
	}
	return all, err
}

// run runs seeds with a program and adds what happened in them to all. If counters is a directory, the program counts
// statements there.
func (c *campaign) run(out io.Writer, bin, counters, seeds string, all happened, more ...string) error {
	args := slices.Concat([]string{"sim", "--json", "--seeds", seeds, "--failures", "20"}, strings.Fields(c.cluster), more)
	cmd := exec.Command(bin, args...)
	cmd.Env = append(os.Environ(), "GOCOVERDIR="+counters)
	var text bytes.Buffer
	cmd.Stdout, cmd.Stderr = &text, out
	failed := cmd.Run()
	var s summary
	if err := json.Unmarshal(text.Bytes(), &s); err != nil {
		return fmt.Errorf("braid %s: %w, %w: %.200s", strings.Join(args, " "), failed, err, text.String())
	}
	s.print(out, c.cluster)
	all.add(c.cluster, s.Events)
	if failed != nil {
		return fmt.Errorf("braid %s: %w", strings.Join(args, " "), failed)
	}
	return nil
}

// measure runs the campaigns' counted seeds and prints what they covered. It fails if a seed fails or a package covers
// too little.
func measure(out io.Writer, root string, missing bool) (happened, error) {
	dir, err := os.MkdirTemp("", "simcover")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	began := time.Now()
	all := happened{}
	blocks, failed, err := profile(out, dir, all)
	if err != nil {
		return all, err
	}
	t, err := tally(root, blocks)
	if err != nil {
		return all, err
	}
	t.print(out, missing)
	fmt.Fprintf(out, "\nmeasured in %s\n", time.Since(began).Round(time.Second))
	return all, errors.Join(failed, t.verdict())
}

// profile builds braid with counters, runs the campaigns with it and returns what was counted, and which seeds failed.
// It adds what happened to all.
func profile(out io.Writer, dir string, all happened) (blocks []block, failed, err error) {
	// The command's own package must be in the list: otherwise the program writes no counts at its end.
	packages := "./cmd/braid"
	for _, r := range measured {
		packages += ",./" + r.path
	}
	for _, p := range parts {
		packages += ",./" + p
	}
	bin, data, text := filepath.Join(dir, "braid"), filepath.Join(dir, "data"), filepath.Join(dir, "text")
	if err := os.Mkdir(data, 0o700); err != nil {
		return nil, nil, err
	}
	if _, err := output("go", "build", "-cover", "-coverpkg="+packages, "-o", bin, "./cmd/braid"); err != nil {
		return nil, nil, err
	}
	for _, c := range campaigns {
		if c.counted > 0 {
			failed = errors.Join(failed, c.run(out, bin, data, fmt.Sprintf("1-%d", c.counted), all))
		}
	}
	if _, err := output("go", "tool", "covdata", "textfmt", "-i="+data, "-o="+text); err != nil {
		return nil, nil, err
	}
	f, err := os.Open(text)
	if err != nil {
		return nil, nil, err
	}
	defer f.Close()
	blocks, err = readProfile(f)
	return blocks, failed, err
}

// output runs a command and returns its output.
func output(name string, args ...string) (string, error) {
	cmd := exec.Command(name, args...)
	var text, said strings.Builder
	cmd.Stdout, cmd.Stderr = &text, &said
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("%s %s: %w\n%s", name, strings.Join(args, " "), err, said.String())
	}
	return strings.TrimSpace(text.String()), nil
}
