package main

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestFlagsWithOneDash: etcd takes its flags with one dash too, as Debian's unit and older manifests have them.
func TestFlagsWithOneDash(t *testing.T) {
	for args, want := range map[string]string{
		"serve -name m1 -data-dir=d":             "serve --name m1 --data-dir=d",
		"serve --name -name -pre-vote -auto-tls": "serve --name -name --pre-vote --auto-tls",
		"serve -pre-vote=false -- -name":         "serve --pre-vote=false -- -name",
		"serve -h -help -nam":                    "serve -h --help -nam",
		"up -name m1":                            "up -name m1",
		"ctl get -name":                          "ctl get -name",
		"":                                       "",
	} {
		require.Equal(t, strings.Fields(want), twoDashes(newRoot(), strings.Fields(args)), args)
	}
}
