// Command braid runs and inspects replicated clusters: see `braid help`.
//
// This folder holds flags and wiring only. main.go and root.go set up the command line, progress.go shows how far a
// command is; each other file is one command. The work of a command is in the package that it calls: internal/launch
// for `up`, server for `serve`, etcd's own packages for `ctl` and `utl`.
package main

import "os"

func main() {
	os.Exit(run(os.Args[1:], os.Stdout, os.Stderr))
}
