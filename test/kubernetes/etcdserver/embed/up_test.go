package embed

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// program makes a script the program that is started, and returns a configuration for it.
func program(t *testing.T, script string) *Config {
	t.Helper()
	config := NewConfig()
	config.Dir = t.TempDir()
	path := filepath.Join(config.Dir, "program")
	if err := os.WriteFile(path, []byte("#!/bin/sh\n"+script), 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv(ProgramVariable, path)
	return config
}

const ready = `echo '{"event":"ready","endpoints":["127.0.0.1:1","127.0.0.1:2"]}'
`

func TestAClusterRunsUntilItIsClosed(t *testing.T) {
	e, err := StartEtcd(program(t, ready+`cat <&3; echo '{"event":"stopping"}'`))
	if err != nil {
		t.Fatal(err)
	}
	<-e.Server.ReadyNotify()
	urls := e.Server.Cluster().ClientURLs()
	if want := []string{"http://127.0.0.1:1", "http://127.0.0.1:2"}; !slices.Equal(urls, want) {
		t.Errorf("%q, not %q", urls, want)
	}
	e.Close()
	e.Close()
	if err := <-e.Err(); err != nil {
		t.Error(err)
	}
}

func TestFaultsOfAClusterAreTold(t *testing.T) {
	for script, want := range map[string]string{
		`exit 3`: "exit status 3",
		`echo '{"event":"died","member":"m1","how":"was killed","log":["why"]}'`: "member m1 was killed: why",
	} {
		e, err := StartEtcd(program(t, ready+script))
		if err != nil {
			t.Fatal(err)
		}
		if err := <-e.Err(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, not %q", err, want)
		}
		e.Close()
	}
}

func TestAClusterThatDoesNotStart(t *testing.T) {
	_, err := StartEtcd(program(t, `echo no such flag >&2; exit 2`))
	if err == nil || !strings.Contains(err.Error(), "no such flag") {
		t.Error(err)
	}
	t.Setenv(ProgramVariable, "/does/not/exist")
	_, err = StartEtcd(&Config{Dir: t.TempDir()})
	if err == nil || !strings.Contains(err.Error(), ProgramVariable) {
		t.Error(err)
	}
}
