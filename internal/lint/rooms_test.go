package lint

import (
	"go/ast"
	"slices"
	"strings"
	"testing"
)

// room is a folder's share of the design: which of braid's packages it may import.
type room struct {
	folder string
	may    []string // folders; "" is the root package
	all    bool
}

// rooms are tried in their order: the first folder that contains a file rules it.
var rooms = []room{
	{folder: "cmd", all: true},
	{folder: "protocol/conformance", may: []string{"protocol"}},
	{folder: "protocol/raft/reshapemodel"},
	{folder: "protocol/raft/codedmodel"},
	{folder: "protocol/raft/leasemodel"},
	{folder: "protocol/raft", may: []string{"protocol", "erasure"}},
	{folder: "protocol/paxos/issmodel"},
	{folder: "protocol/epaxos/epaxosmodel"},
	{folder: "protocol/quorum", may: []string{"protocol"}},
	{folder: "protocol/slots", may: []string{"protocol"}},
	{folder: "protocol"},
	{folder: "order", may: []string{"protocol"}},
	{folder: "wal", may: []string{"internal/durable", "internal/sys"}},
	{folder: "erasure"},
	{folder: "transport", may: []string{"internal/sys"}},
	{folder: "store", may: []string{"internal/durable", "internal/sys"}},
	{folder: "check"},
	{folder: "member", may: []string{"protocol", "order", "wal", "transport", "erasure"}},
	{folder: "datadir", may: []string{"member", "protocol", "order", "wal", "internal/durable", "internal/sys"}},
	{folder: "replica", may: []string{"member", "datadir", "protocol", "order", "wal", "transport", "erasure", "internal/sys"}},
	{folder: "server", may: []string{"", "store", "internal/sys"}},
	{folder: "registry", may: []string{"protocol", "order"}},
	{folder: "sim", may: []string{"member", "datadir", "registry", "protocol", "order", "wal", "check", "erasure", "transport/netspec"}},
	{folder: "bench", may: []string{"", "check", "registry", "protocol", "order", "sim/scale", "transport/netspec", "internal/ports"}},
	{folder: "internal/launch", may: []string{"internal/durable", "internal/ports", "wal"}},
	{folder: "internal/settings", may: []string{"registry", "protocol", "order", "transport/netspec"}},
	{folder: "internal"},
	{folder: "examples", may: []string{""}},
	{folder: ".", may: []string{"member", "replica", "registry", "order", "protocol"}},
}

func roomOf(f *file) *room {
	for i := range rooms {
		if rooms[i].folder == "." && f.dir() == "." || f.in(rooms[i].folder) {
			return &rooms[i]
		}
	}
	return nil
}

// allows reports whether a room may import a folder. Its own subfolders it always may.
func (r *room) allows(f *file, folder string) bool {
	if r.all || folder == r.folder || strings.HasPrefix(folder, r.folder+"/") || folder == f.dir() {
		return true
	}
	if f.isTest() && (strings.HasPrefix(folder, "internal/") || folder == "protocol" || folder == "" && r.folder == ".") {
		return true // helpers of tests, and the words of the contract
	}
	return slices.ContainsFunc(r.may, func(m string) bool { return folder == m || m != "" && strings.HasPrefix(folder, m+"/") })
}

func TestRoomsImportWhatTheyMay(t *testing.T) {
	r := source(t)
	for _, f := range r.files {
		room := roomOf(f)
		if room == nil {
			t.Errorf("%s is in no room: add it to rooms", f.path)
			continue
		}
		for _, spec := range f.syntax.Imports {
			imported := strings.Trim(spec.Path.Value, `"`)
			if imported != module && !strings.HasPrefix(imported, module+"/") {
				continue
			}
			folder := strings.TrimPrefix(strings.TrimPrefix(imported, module), "/")
			if !room.allows(f, folder) {
				t.Errorf("%s: %s may not import %q", r.at(f, spec), room.folder, imported)
			}
		}
	}
}

// serverOnly are packages outside braid that belong to certain rooms.
var serverOnly = []struct {
	prefix  string
	folders []string
}{
	{"go.etcd.io/etcd/server/v3/embed", []string{"store", "server", "bench", "internal/settings"}}, // a test compares the flags
	{"go.etcd.io/etcd/server/", []string{"store", "server", "bench"}},
	{"google.golang.org/grpc", []string{"store", "server", "bench", "cmd"}},
	{"github.com/spf13/cobra", []string{"cmd"}},
	{"github.com/cockroachdb/pebble/", []string{"wal", "member", "datadir", "replica", "sim", "bench", "store", "cmd", "internal", ".", "server"}},
}

func TestPackagesStayInTheirRooms(t *testing.T) {
	r := source(t)
	for _, f := range r.files {
		for _, spec := range f.syntax.Imports {
			imported := strings.Trim(spec.Path.Value, `"`)
			for _, rule := range serverOnly {
				if blank := spec.Name != nil && spec.Name.Name == "_"; blank {
					continue
				}
				if !strings.HasPrefix(imported, rule.prefix) {
					continue
				}
				if !f.in(rule.folders...) && !slices.Contains(rule.folders, f.dir()) {
					t.Errorf("%s imports %s, which belongs to %v", r.at(f, spec), imported, rule.folders)
				}
				break // the first rule that fits
			}
		}
	}
}

// A directory for data is made in one place, which also makes its entry durable. Reports of measurements are no data.
func TestDirectoriesAreMadeInOnePlace(t *testing.T) {
	r := source(t)
	for _, f := range r.files {
		if f.isTest() || f.in("internal/durable", "internal/simcover", "sim", "bench") || strings.HasPrefix(f.path, "cmd/braid/bench") {
			continue
		}
		ast.Inspect(f.syntax, func(n ast.Node) bool {
			if s, ok := n.(*ast.SelectorExpr); ok && (s.Sel.Name == "Mkdir" || s.Sel.Name == "MkdirAll") {
				t.Errorf("%s: make the directory with durable.MakeDir", r.at(f, n))
			}
			return true
		})
	}
}
