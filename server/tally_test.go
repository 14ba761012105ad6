package server

import (
	"bytes"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Refusals are one line a minute with their number.
func TestTallies(t *testing.T) {
	var out bytes.Buffer
	logger := slog.New(slog.NewTextHandler(&out, nil))
	r, now := newRefusals(), time.Unix(1000, 0)
	for second := range 100 {
		for range 7 {
			r.logins.add("10.0.0.1:1", errors.New("wrong"))
		}
		r.log(logger, now.Add(time.Duration(second)*time.Second))
	}
	require.Equal(t, 2, strings.Count(out.String(), "event=login-failed"), out.String())
	require.Contains(t, out.String(), "count=7 ")
	require.Contains(t, out.String(), "count=420 ")
}
