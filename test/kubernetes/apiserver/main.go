package main

import (
	"context"
	"crypto/rand"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"go.etcd.io/etcd/server/v3/embed"
)

// kubeAPIServer is what is built.
const kubeAPIServer = "k8s.io/kubernetes/cmd/kube-apiserver"

// stopTimeout bounds how long kube-apiserver takes to stop.
const stopTimeout = 30 * time.Second

var (
	protocol = flag.String("protocol", "raft", "protocol of braid")
	nodes    = flag.Int("nodes", 3, "members of braid")
	port     = flag.Int("port", 6443, "where kube-apiserver serves, on loopback")
	output   = flag.String("log", "kube-apiserver.log", "file for the log of kube-apiserver")
)

func main() {
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// run runs kube-apiserver until ctx ends.
func run(ctx context.Context) error {
	dir, err := os.MkdirTemp("", "apiserver")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	braid, server := filepath.Join(dir, "braid"), filepath.Join(dir, "kube-apiserver")
	err = errors.Join(build(ctx, "../../..", braid, "./cmd/braid"), build(ctx, ".", server, kubeAPIServer))
	if err != nil {
		return err
	}
	settings := map[string]string{
		embed.ProgramVariable: braid,
		embed.FlagsVariable:   fmt.Sprintf("--restart --protocol=%s --nodes=%d", *protocol, *nodes),
	}
	for name, value := range settings {
		if err := os.Setenv(name, value); err != nil {
			return err
		}
	}
	data, err := os.MkdirTemp(dir, "data")
	if err != nil {
		return err
	}
	cluster, err := embed.StartEtcd(&embed.Config{Dir: data})
	if err != nil {
		return err
	}
	defer cluster.Close()
	return serve(ctx, server, dir, cluster.Server.Cluster().ClientURLs())
}

// build builds a program from a folder.
func build(ctx context.Context, dir, program, what string) error {
	c := exec.CommandContext(ctx, "go", "build", "-o", program, what)
	c.Dir, c.Stderr = dir, os.Stderr
	if err := c.Run(); err != nil {
		return fmt.Errorf("%s in %s: %w", c, dir, err)
	}
	return nil
}

// serve runs kube-apiserver on a cluster until ctx ends.
func serve(ctx context.Context, program, dir string, urls []string) error {
	token := rand.Text()
	keys, err := writeKeys(dir, token)
	if err != nil {
		return err
	}
	log, err := os.Create(*output)
	if err != nil {
		return err
	}
	defer func() { _ = log.Close() }()
	c := exec.CommandContext(ctx, program, append(keys, "--etcd-servers="+strings.Join(urls, ","),
		"--cert-dir="+filepath.Join(dir, "certificates"), "--bind-address=127.0.0.1", fmt.Sprintf("--secure-port=%d", *port),
		"--service-cluster-ip-range=10.0.0.0/24", "--authorization-mode=RBAC", "--external-hostname=127.0.0.1",
		"--advertise-address=192.0.2.1")...) // must not be on loopback; no one connects to it
	c.Stdout, c.Stderr = log, log
	c.Cancel = func() error { return c.Process.Signal(os.Interrupt) }
	c.WaitDelay = stopTimeout
	if err := c.Start(); err != nil {
		return err
	}
	fmt.Printf("braid serves on %s\nkube-apiserver serves on https://127.0.0.1:%d, and logs to %s\n",
		strings.Join(urls, ","), *port, log.Name())
	fmt.Printf("curl -k -H 'Authorization: Bearer %s' https://127.0.0.1:%d/api/v1/namespaces\n", token, *port)
	if err := c.Wait(); ctx.Err() == nil {
		return fmt.Errorf("%s ended, see %s: %w", program, log.Name(), err)
	}
	return nil
}
