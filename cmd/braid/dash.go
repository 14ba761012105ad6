package main

import (
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// twoDashes gives the flags of serve that are written with one dash, as -name m1, two of them: etcd takes both.
func twoDashes(root *cobra.Command, args []string) []string {
	serve, rest, err := root.Find(args)
	if err != nil || serve.Name() != "serve" {
		return args
	}
	out := append([]string(nil), args[:len(args)-len(rest)]...)
	for i := 0; i < len(rest); i++ {
		arg := rest[i]
		if arg == "--" {
			return append(out, rest[i:]...)
		}
		name, _, hasValue := strings.Cut(strings.TrimLeft(arg, "-"), "=")
		flag := serve.Flags().Lookup(name)
		if oneDash(arg) && (flag != nil || name == "help") {
			arg = "-" + arg
		}
		out = append(out, arg)
		if takesNext(flag, hasValue) && i+1 < len(rest) {
			i++
			out = append(out, rest[i]) // a value, whatever it looks like
		}
	}
	return out
}

// oneDash reports whether an argument is a name behind one dash.
func oneDash(arg string) bool { return len(arg) > 2 && arg[0] == '-' && arg[1] != '-' }

// takesNext reports whether the argument behind a flag is its value.
func takesNext(flag *pflag.Flag, hasValue bool) bool {
	return flag != nil && !hasValue && flag.NoOptDefVal == ""
}
