package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"go.etcd.io/etcd/server/v3/embed"
)

// packages are what is run.
const packages = "k8s.io/apiserver/pkg/storage/etcd3/..."

var (
	protocols = flag.String("protocol", "raft", "protocols, separated by commas")
	nodes     = flag.String("nodes", "1,3", "numbers of members, separated by commas")
	timeout   = flag.Duration("timeout", 10*time.Minute, "for the tests on one kind of cluster")
)

func main() {
	flag.Parse()
	if err := run(flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// run runs the tests on all kinds of clusters that are wanted.
func run(testFlags []string) error {
	dir, err := os.MkdirTemp("", "kubernetes")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	program := filepath.Join(dir, "braid")
	build := exec.Command("go", "build", "-o", program, "./cmd/braid")
	build.Dir, build.Stderr = "../..", os.Stderr
	if err := build.Run(); err != nil {
		return fmt.Errorf("%s, in the folder above test/kubernetes: %w", build, err)
	}
	failed := false
	for protocol := range strings.SplitSeq(*protocols, ",") {
		for members := range strings.SplitSeq(*nodes, ",") {
			began := time.Now()
			r, err := runTests(program, "--protocol="+protocol+" --nodes="+members, testFlags)
			fmt.Printf("%s, %s members: %s, %s\n", protocol, members, r, time.Since(began).Round(time.Second))
			if err != nil {
				fmt.Printf("%s%v\n", r.output(), err)
				failed = true
			}
		}
	}
	if failed {
		return errors.New("tests failed")
	}
	return nil
}

// runTests runs the tests on clusters that `braid up` starts with some flags.
func runTests(program, upFlags string, testFlags []string) (*result, error) {
	args := append([]string{"test", "-json", "-count=1", "-timeout=" + timeout.String()}, testFlags...)
	cmd := exec.Command("go", append(args, packages)...)
	cmd.Env = append(os.Environ(), embed.ProgramVariable+"="+program, embed.FlagsVariable+"="+upFlags)
	cmd.Stderr = os.Stderr
	r := newResult()
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		return r, err
	}
	unread := r.read(out)
	if err := cmd.Wait(); err != nil {
		return r, fmt.Errorf("%s: %w", cmd, err)
	}
	if unread == nil && r.passed == 0 {
		return r, fmt.Errorf("%s ran no test", cmd)
	}
	return r, unread
}
