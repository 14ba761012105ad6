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
	flag.Parse()
	if *dir == "" || flag.NArg() > 0 {
		flag.Usage()
		os.Exit(2)
	}
	if err := run(*program, *dir, *only); err != nil {
		fmt.Fprintln(os.Stderr, "browser:", err)
		os.Exit(1)
	}
}

func run(program, dir, only string) error {
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
	return takePictures(ctx, program, work, dir, only)
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
