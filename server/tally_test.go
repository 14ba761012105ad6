package server

import (
	"bytes"
	"errors"
	"log/slog"
	"net/http"
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

// A request of HTTP without a user is not counted as a login, and one with a wrong password is, as over gRPC.
func TestRefusedLoginsOverHTTP(t *testing.T) {
	f := start(t)
	f.enableAuth(t, testContext(t))
	logins := func(password string) int {
		r, err := http.NewRequest(http.MethodGet, "http://"+f.addr+"/braid/status", nil)
		require.NoError(t, err)
		if password != "" {
			r.SetBasicAuth("root", password)
		}
		response, err := http.DefaultClient.Do(r)
		require.NoError(t, err)
		require.NoError(t, response.Body.Close())
		require.Equal(t, http.StatusUnauthorized, response.StatusCode)
		f.refusals.logins.mu.Lock()
		defer f.refusals.logins.mu.Unlock()
		return f.refusals.logins.count
	}
	before := logins("")
	require.Equal(t, before, logins(""))
	require.Equal(t, before+1, logins("wrong"))
}
