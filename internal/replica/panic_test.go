package replica

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/braidlog/braid/internal/vfs"
	"github.com/braidlog/braid/protocol"
)

// panicking is a core that finds a violated invariant when it gets a command.
type panicking struct {
	protocol.Core
	command string
}

func (p panicking) Step(now time.Duration, in protocol.Input, e *protocol.Effects) {
	if in, ok := in.(protocol.Propose); ok && bytes.Contains(in.Entries[0].Payload, []byte(p.command)) {
		panic("an invariant does not hold")
	}
	p.Core.Step(now, in, e)
}

// panicEnv names, in the process of a member that panics, the part that panics there, and panicDir its data
// directory.
const panicEnv, panicDir = "BRAID_TEST_PANIC", "BRAID_TEST_DIR"

// TestAPanicEndsTheProcess makes a core and a state machine panic. The process ends, so that nothing continues with a
// state that may be wrong. Nothing is acknowledged after that, and acknowledged commands are there after a restart.
func TestAPanicEndsTheProcess(t *testing.T) {
	if what := os.Getenv(panicEnv); what != "" {
		panicInProcess(t, what, os.Getenv(panicDir))
		return
	}
	for _, what := range []string{"core", "machine"} {
		t.Run(what, func(t *testing.T) {
			dir := t.TempDir()
			child := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestAPanicEndsTheProcess$", "-test.timeout=1m")
			child.Env = append(os.Environ(), panicEnv+"="+what, panicDir+"="+dir)
			var stderr bytes.Buffer
			child.Stderr = &stderr
			out, err := child.Output()
			var failed *exec.ExitError
			require.ErrorAs(t, err, &failed)
			require.Contains(t, stderr.String(), "panic: an invariant does not hold")
			require.NotContains(t, string(out), "acknowledged fatal")
			acked := strings.Count(string(out), "acknowledged command")
			require.Equal(t, 10, acked)

			c, o := alone(t, dir)
			sm := &machine{}
			r, err := Open(o, sm)
			require.NoError(t, err)
			_, err = r.Propose(t.Context(), []byte("again"), nil)
			require.NoError(t, err)
			for i := range acked {
				require.True(t, sm.has(fmt.Sprint("command ", i)))
			}
			require.NoError(t, r.Close())
			require.Empty(t, c.running)
		})
	}
}

// alone is a cluster of one member in a directory.
func alone(t *testing.T, dir string) (*testCluster, Options) {
	id := protocol.MemberID(1)
	c := &testCluster{t: t, net: newNetwork(),
		members: []protocol.Member{{ID: id, PeerURLs: []string{"http://member1:1"}}}}
	o := c.options(id)
	o.FS, o.Dir = vfs.OS, dir
	return c, o
}

func panicInProcess(t *testing.T, what, dir string) {
	_, o := alone(t, dir)
	sm := &machine{}
	switch what {
	case "core":
		program, err := o.Program(&protocol.Profile{})
		require.NoError(t, err)
		core := program.Core
		program.Core = func(
			id protocol.InstanceID, session protocol.Session, rec protocol.Recovered,
		) (protocol.Core, error) {
			c, err := core(id, session, rec)
			return panicking{c, "fatal"}, err
		}
		o.Program = func(*protocol.Profile) (*Program, error) { return program, nil }
	case "machine":
		sm.apply = func(command string) error {
			if command == "fatal" {
				panic("an invariant does not hold")
			}
			return nil
		}
	}
	r, err := Open(o, sm)
	require.NoError(t, err)
	for i := range 10 {
		command := fmt.Sprint("command ", i)
		_, err := r.Propose(t.Context(), []byte(command), nil)
		require.NoError(t, err)
		fmt.Println("acknowledged " + command)
	}
	_, err = r.Propose(t.Context(), []byte("fatal"), nil)
	fmt.Println("acknowledged fatal", err)
}
