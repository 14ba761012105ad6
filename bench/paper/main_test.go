package paper

import (
	"fmt"
	"os"
	"testing"
)

// memberEnv makes the test's own executable a member of a cluster.
const memberEnv = "BRAID_PAPER_TEST_MEMBER"

func TestMain(m *testing.M) {
	if os.Getenv(memberEnv) == "" {
		os.Exit(m.Run())
	}
	if err := ServeMember(os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// memberCommand is the command with which tests start members in separate processes.
var memberCommand = []string{"env", memberEnv + "=1", os.Args[0]}
