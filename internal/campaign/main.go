// Command campaign runs the tests that are too long for go test ./...: those that name a campaign with package
// internal/testsize. It finds them in the source and runs them completely, one package after the other:
//
//	go run ./internal/campaign                    # the campaigns, their packages and tests
//	go run ./internal/campaign mutants            # one of them
//	go run ./internal/campaign seeds processes -- -v   # two, with more arguments for go test
//	go run ./internal/campaign -without . processes    # one, without the tests of a folder
package main

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"time"

	"github.com/braidlog/braid/internal/testsize"
)

func main() {
	without := flag.String("without", "", "folders whose tests are left out, separated by commas")
	flag.Parse()
	if err := run(flag.Args(), strings.Split(*without, ",")); err != nil {
		fmt.Fprintln(os.Stderr, "campaign:", err)
		os.Exit(1)
	}
}

// run executes the campaigns with these names, without the tests of some folders. Arguments after "--" are for go
// test.
func run(args, without []string) error {
	var more []string
	if i := slices.Index(args, "--"); i >= 0 {
		args, more = args[:i], args[i+1:]
	}
	root, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}").Output()
	if err != nil {
		return fmt.Errorf("the module's directory: %w", err)
	}
	dir := strings.TrimSpace(string(root))
	all, err := find(dir)
	if err != nil {
		return err
	}
	if len(args) == 0 {
		for _, c := range testsize.Campaigns {
			for _, p := range all[c] {
				fmt.Printf("%-10s %-32s %s\n", c, p.folder, strings.Join(p.tests, " "))
			}
		}
		return nil
	}
	var failed []string
	for _, name := range args {
		packages := all[testsize.Campaign(name)]
		if len(packages) == 0 {
			return fmt.Errorf("there is no campaign %q; there is: %v", name, testsize.Campaigns)
		}
		for _, p := range packages {
			if slices.Contains(without, p.folder) {
				continue
			}
			if err := test(dir, name, p, more); err != nil {
				failed = append(failed, name+" in "+p.folder)
			}
		}
	}
	if len(failed) > 0 {
		return fmt.Errorf("failed: %s", strings.Join(failed, ", "))
	}
	return nil
}

// limit is the timeout for the tests of one package.
const limit = 30 * time.Minute

// test runs a campaign's tests of one package.
func test(dir, campaign string, p tests, more []string) error {
	args := []string{"test", "-count", "1", "-timeout", limit.String(), "-run", p.pattern()}
	args = append(args, more...)
	args = append(args, "./"+p.folder, "-campaign", campaign)
	cmd := exec.Command("go", args...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = dir, os.Stdout, os.Stderr
	return cmd.Run()
}
