package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const source = `package order

func A() int {
	return 1
}

func B() int {
	return 2
}

func (t T) Check() error {
	return nil
}
`

const counted = `mode: set
github.com/braidlog/braid/internal/order/a.go:3.14,5.2 3 0
github.com/braidlog/braid/internal/order/a.go:3.14,5.2 3 7
github.com/braidlog/braid/internal/order/a.go:7.14,9.2 1 0
github.com/braidlog/braid/internal/order/a.go:11.26,13.2 1 0
github.com/braidlog/braid/internal/order/mutant.go:1.1,2.2 5 0
github.com/braidlog/braid/server/server.go:1.1,2.2 50 0
`

func TestTally(t *testing.T) {
	root := t.TempDir()
	require.NoError(t, os.MkdirAll(filepath.Join(root, "internal", "order"), 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(root, "internal", "order", "a.go"), []byte(source), 0o600))
	blocks, err := readProfile(strings.NewReader(counted))
	require.NoError(t, err)
	require.Len(t, blocks, 5, "a block that two runs counted is one")
	r, err := tally(root, blocks)
	require.NoError(t, err)
	require.Equal(t, &share{ran: 3, all: 4}, r.packages["internal/order"], "neither Check, nor names, nor other packages")
	var out bytes.Buffer
	r.print(&out, true)
	require.Contains(t, out.String(), "internal/order/a.go:7-9")
	require.ErrorContains(t, r.verdict(), "member", "a package of which nothing ran is no pass")
}
