package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
)

func main() {
	program := flag.String("braid", "", "the program `braid`; default: it is built from this checkout")
	dir := flag.String("screenshots", "", "existing `folder` for the pictures of the documentation, as PNG")
	only := flag.String("only", "", "the `name` of the only picture to take")
	cost := flag.Bool("cost", false, "measure how much CPU open pages cost a member, instead of taking pictures")
	flag.Parse()
	if (*dir == "") != *cost || flag.NArg() > 0 {
		flag.Usage()
		os.Exit(2)
	}
	do := func(ctx context.Context, program, work string) error {
		if *cost {
			return measureCost(ctx, os.Stdout, program, work)
		}
		return takePictures(ctx, program, work, *dir, *only)
	}
	if err := run(*program, do); err != nil {
		fmt.Fprintln(os.Stderr, "browser:", err)
		os.Exit(1)
	}
}

// run calls do with the program braid and a directory that it removes.
func run(program string, do func(ctx context.Context, program, work string) error) error {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	work, err := os.MkdirTemp("", "braid-browser-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(work)
	if program == "" {
		if program, err = build(work); err != nil {
			return err
		}
	}
	return do(ctx, program, work)
}

// build builds braid from the checkout that this module is in.
func build(work string) (program string, err error) {
	program = filepath.Join(work, "braid")
	build := exec.Command("go", "build", "-o", program, "./cmd/braid")
	build.Dir = filepath.Join("..", "..")
	if out, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("braid cannot be built: %w: %s", err, out)
	}
	return program, nil
}
