package lint

import (
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// TestOnlyGoItselfBringsC: with CGO_ENABLED=0 the program is static because nothing needs C. Only these packages of
// the standard library, of all that it imports, use C, and each has a variant in Go.
func TestOnlyGoItselfBringsC(t *testing.T) {
	replaceable := []string{"net", "os/user", "runtime/cgo"}
	list := exec.Command("go", "list", "-deps", "-f", "{{if .CgoFiles}}{{.ImportPath}}{{end}}", "../../cmd/braid")
	list.Env = append(os.Environ(), "CGO_ENABLED=1")
	list.Stderr = os.Stderr
	out, err := list.Output()
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range strings.Fields(string(out)) {
		if !slices.Contains(replaceable, path) {
			t.Errorf("%s needs C", path)
		}
	}
}
