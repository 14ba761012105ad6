package lint

import (
	"go/ast"
	"slices"
	"strings"
	"testing"
)

// layer is a rule of the architecture: which of braid's packages a folder may import.
type layer struct {
	folder string
	may    []string // folders with their subfolders, or without them if they end in "/."; "" is the root package
	all    bool
}

// layers are tried in order: the first folder that contains a file applies.
var layers = []layer{
	{folder: "cmd", all: true},
	{folder: "protocol/conformance", may: []string{"protocol"}},
	{folder: "internal/protocol/raft/reshapemodel"},
	{folder: "internal/protocol/raft/codedmodel"},
	{folder: "internal/protocol/raft/leasemodel"},
	{folder: "internal/protocol/raft/tunemodel"},
	{folder: "internal/member/switchmodel"},
	{folder: "internal/member/formatmodel"},
	{folder: "internal/protocol/raft/message", may: []string{"protocol"}},
	{folder: "internal/protocol/raft/raftlog", may: []string{"protocol"}},
	{folder: "internal/protocol/raft/tracker", may: []string{"protocol", "internal/protocol/raft/message"}},
	{folder: "internal/protocol/raft/members", may: []string{"protocol", "internal/protocol/raft/raftlog"}},
	{folder: "internal/protocol/raft/code", may: []string{"protocol", "internal/protocol/raft/raftlog",
		"internal/protocol/raft/message", "internal/protocol/raft/tracker", "internal/protocol/raft/members"}},
	{folder: "internal/protocol/raft/effects", may: []string{"protocol", "internal/protocol/raft/raftlog",
		"internal/protocol/raft/message"}},
	{folder: "internal/protocol/raft/lane", may: []string{"protocol", "internal/erasure",
		"internal/protocol/raft/raftlog", "internal/protocol/raft/message", "internal/protocol/raft/tracker",
		"internal/protocol/raft/members", "internal/protocol/raft/effects", "internal/protocol/raft/code"}},
	{folder: "internal/protocol/raft", may: []string{"protocol", "internal/erasure"}},
	{folder: "internal/protocol/paxos/relay", may: []string{"protocol", "internal/protocol/slots",
		"internal/protocol/paxos"}},
	{folder: "internal/protocol/paxos", may: []string{"protocol", "internal/protocol/slots"}},
	{folder: "internal/protocol/multipaxos", may: []string{"protocol", "internal/protocol/slots",
		"internal/protocol/paxos"}},
	{folder: "internal/protocol/wpaxos", may: []string{"protocol", "internal/protocol/multipaxos",
		"internal/protocol/paxos"}},
	{folder: "internal/protocol/iss/issmodel"},
	{folder: "internal/protocol/iss/epochs", may: []string{"protocol"}},
	{folder: "internal/protocol/iss", may: []string{"protocol", "internal/protocol/slots", "internal/protocol/paxos"}},
	{folder: "internal/protocol/epaxos/epaxosmodel"},
	{folder: "protocol/quorum", may: []string{"protocol"}},
	{folder: "internal/protocol/slots", may: []string{"protocol"}},
	{folder: "protocol/common", may: []string{"protocol"}},
	{folder: "protocol/setting"},
	{folder: "protocol"},
	{folder: "internal/protocol", may: []string{"protocol", "internal/protocol/slots"}},
	{folder: "internal/order", may: []string{"protocol"}},
	{folder: "internal/format"},
	{folder: "internal/wal", may: []string{"internal/format", "internal/durable", "internal/sys", "internal/vfs"}},
	{folder: "internal/fit", may: []string{"protocol"}},
	{folder: "internal/erasure"},
	{folder: "internal/mutant", may: []string{"protocol/setting"}},
	{folder: "internal/transport", may: []string{"internal/format", "internal/sys"}},
	{folder: "internal/store", may: []string{"internal/durable", "internal/sys", "internal/vfs"}},
	{folder: "internal/check"},
	{folder: "internal/member/intake", may: []string{"internal/member/.", "internal/fit", "protocol",
		"internal/order"}},
	{folder: "internal/member/body", may: []string{"internal/member/.", "protocol", "internal/order", "internal/wal",
		"internal/erasure"}},
	{folder: "internal/member/instance", may: []string{"internal/member/.", "internal/member/intake",
		"internal/member/body", "protocol", "internal/order", "internal/wal", "internal/transport"}},
	{folder: "internal/member/apply", may: []string{"internal/member/.", "internal/member/intake", "protocol",
		"internal/order", "internal/wal"}},
	{folder: "internal/member/snapshot", may: []string{"internal/member/.", "internal/member/intake",
		"internal/member/apply", "protocol", "internal/order"}},
	{folder: "internal/member/damage", may: []string{"internal/member/.", "internal/member/body", "protocol",
		"internal/order", "internal/wal"}},
	{folder: "internal/member/lifecycle", may: []string{"internal/member/.", "internal/member/apply",
		"internal/member/body", "protocol", "internal/order", "internal/wal"}},
	{folder: "internal/member/cluster", may: []string{"internal/format",
		"internal/member/.", "internal/member/apply", "internal/fit",
		"protocol", "protocol/quorum", "internal/order", "internal/wal", "internal/transport"}},
	{folder: "internal/member/membertest", may: []string{"internal/member/.", "internal/member/intake", "protocol",
		"internal/order"}},
	{folder: "internal/member", may: []string{"protocol", "internal/order", "internal/wal", "internal/transport"}},
	{folder: "internal/datadir", may: []string{"internal/format",
		"internal/member", "protocol", "internal/order", "internal/wal",
		"internal/durable", "internal/sys", "internal/vfs"}},
	{folder: "internal/replica", may: []string{"internal/member", "internal/datadir", "internal/fit", "protocol",
		"internal/order", "internal/wal", "internal/transport", "internal/erasure", "internal/sys", "internal/vfs"}},
	{folder: "server", may: []string{"", "internal/store", "internal/sys"}},
	{folder: "internal/registry", may: []string{"protocol", "internal/protocol", "internal/order"}},
	{folder: "internal/sim/world", may: []string{"protocol", "internal/sim/count", "internal/sim/event"}},
	{folder: "internal/sim/event"},
	{folder: "internal/sim/diagram"},
	{folder: "internal/sim/machine", may: []string{"internal/check", "internal/member/.", "internal/member/apply",
		"internal/order", "protocol"}},
	{folder: "internal/sim/judge", may: []string{"internal/check", "internal/erasure", "internal/member/.",
		"internal/member/cluster", "internal/order", "internal/registry", "internal/sim/world", "protocol"}},
	{folder: "internal/sim/history", may: []string{"internal/check", "internal/member/intake", "internal/sim/count",
		"internal/sim/machine", "internal/sim/world", "protocol"}},
	{folder: "internal/sim/fault", may: []string{"internal/format",
		"internal/check", "internal/datadir", "internal/erasure",
		"internal/fit", "internal/member", "internal/order", "internal/protocol", "internal/registry",
		"internal/sim/client", "internal/sim/count", "internal/sim/device", "internal/sim/draw",
		"internal/sim/history", "internal/sim/judge", "internal/sim/machine", "internal/sim/node",
		"internal/sim/world", "internal/transport/netspec", "internal/vfs", "internal/wal", "protocol"}},
	{folder: "internal/sim/client", may: []string{"internal/check", "internal/member/.", "internal/member/intake",
		"internal/sim/count", "internal/sim/draw", "internal/sim/history", "internal/sim/machine", "internal/sim/node",
		"protocol"}},
	{folder: "internal/sim/node", may: []string{"internal/format", "internal/check", "internal/datadir", "internal/fit",
		"internal/member", "internal/order", "internal/protocol", "internal/registry", "internal/sim/count",
		"internal/sim/device", "internal/sim/draw", "internal/sim/history", "internal/sim/judge",
		"internal/sim/machine", "internal/sim/world", "internal/wal", "internal/vfs", "internal/erasure",
		"protocol"}},
	{folder: "internal/sim/device", may: []string{"protocol", "internal/vfs", "internal/transport/netspec"}},
	{folder: "internal/sim", may: []string{"internal/member", "internal/datadir", "internal/fit", "internal/registry",
		"protocol", "internal/protocol", "internal/order", "internal/wal", "internal/check", "internal/erasure",
		"internal/transport/netspec", "internal/vfs"}},
	{folder: "bench/rivals", may: []string{"bench"}},
	{folder: "test/browser"},
	{folder: "test/kubernetes/apiserver", may: []string{"bench"}},
	{folder: "test/kubernetes"},
	{folder: "deploy"},
	{folder: "bench/limit", may: []string{"internal/vfs"}},
	{folder: "bench", may: []string{"", "internal/check", "internal/registry", "protocol", "internal/order",
		"internal/sim/scale", "internal/transport/netspec", "internal/ports", "internal/member/damage"}},
	{folder: "internal/vfs"},
	{folder: "internal/launch", may: []string{"internal/durable", "internal/ports", "internal/wal", "internal/vfs"}},
	{folder: "internal/settings", may: []string{"internal/registry", "protocol", "internal/order",
		"internal/transport/netspec"}},
	{folder: "internal/status", may: []string{"protocol/setting"}},
	{folder: "internal"},
	{folder: ".", may: []string{"internal/fit", "internal/format", "internal/member", "internal/replica",
		"internal/registry", "internal/order", "protocol", "internal/sys", "internal/vfs"}},
}

func layerOf(f *file) *layer {
	for i := range layers {
		if f.in(layers[i].folder) {
			return &layers[i]
		}
	}
	return nil
}

// allows reports whether a layer may import a folder. It may always import its own subfolders.
func (l *layer) allows(f *file, folder string) bool {
	if l.all || folder == l.folder || strings.HasPrefix(folder, l.folder+"/") || folder == f.dir() {
		return true
	}
	if folder == "internal/mutant" && (l.folder == "protocol" || strings.HasPrefix(l.folder, "internal/")) {
		return true // the names of broken rules, which all packages with rules list
	}
	if f.isTest() && (strings.HasPrefix(folder, "internal/") || folder == "protocol" || folder == "" && l.folder == ".") {
		return true // helpers of tests, and the types of the contract
	}
	return slices.ContainsFunc(l.may, func(m string) bool {
		return folder == strings.TrimSuffix(m, "/.") || m != "" && strings.HasPrefix(folder, m+"/")
	})
}

func TestFoldersImportWhatTheyMay(t *testing.T) {
	r := source(t)
	for _, f := range r.files {
		l := layerOf(f)
		if l == nil {
			t.Errorf("%s is in no layer: add it to layers", f.path)
			continue
		}
		for _, spec := range f.syntax.Imports {
			imported := strings.Trim(spec.Path.Value, `"`)
			if imported != module && !strings.HasPrefix(imported, module+"/") {
				continue
			}
			folder := strings.TrimPrefix(strings.TrimPrefix(imported, module), "/")
			if !l.allows(f, folder) {
				t.Errorf("%s: %s may not import %q", r.at(f, spec), l.folder, imported)
			}
		}
	}
}

// serverOnly are packages outside braid that only certain folders may import.
var serverOnly = []struct {
	prefix  string
	folders []string
}{
	{"go.etcd.io/etcd/server/v3/embed", []string{"bench/rivals", "test/kubernetes"}}, // separate modules
	{"go.etcd.io/etcd/server/v3/features", []string{"internal/settings", "bench/rivals"}},
	{"go.etcd.io/etcd/server/v3/etcdserver/api/v3discovery", []string{"cmd/braid", "bench/rivals"}}, // a client
	{"go.etcd.io/etcd/server/", []string{"internal/store", "server", "bench/rivals"}},
	{"go.etcd.io/raft/", []string{"bench/rivals"}},
	{"github.com/hashicorp/", []string{"bench/rivals"}},
	{"google.golang.org/grpc", []string{"internal/store", "server", "bench", "cmd"}},
	{"github.com/spf13/cobra", []string{"cmd"}},
}

func TestPackagesStayInTheirFolders(t *testing.T) {
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
				break // the first rule that matches
			}
		}
	}
}

// Data directories are created in one place, which also syncs the parent directory. Reports of measurements and
// pictures are no data.
func TestDirectoriesAreMadeInOnePlace(t *testing.T) {
	r := source(t)
	for _, f := range r.files {
		if f.isTest() ||
			f.in("internal/durable", "internal/vfs", "internal/simcover", "internal/sim", "bench", "test") ||
			strings.HasPrefix(f.path, "cmd/braid/bench") {
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
