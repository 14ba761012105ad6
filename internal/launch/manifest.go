package launch

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/braidlog/braid/internal/ports"
	"github.com/braidlog/braid/internal/vfs"
	"github.com/braidlog/braid/internal/wal"
)

// host is where the members of a local cluster listen.
const host = "127.0.0.1"

// portStep is the distance between the ports of neighbouring members.
const portStep = 10

// Spec is the wanted cluster. In an existing data directory the zero value of a field means the recorded value,
// except for CodeK and Net.
type Spec struct {
	Nodes     int
	BasePort  int // first client port; the peer ports are the next ones. AnyPort: free ones
	Cards     int // peer ports of a member, one for each network card; 1 to MaxCards
	Protocol  string
	Placement string
	CodeK     int
	Instances int    // of a new cluster
	Quorums   string // the voters that elect and those that decide
	Epochs    string // flags of the protocol's epochs; "": it has none
	// Zones are those of the members of a new cluster, in turns.
	Zones []string
	Net   string // how links are emulated, from now on
}

// MaxCards bounds Spec.Cards: a member's ports end before the next one's begin.
const MaxCards = portStep - 1

// AnyPort as Spec.BasePort lets launch choose free ports.
const AnyPort = -1

// Manifest has the settings that never change in a data directory, and Net.
type Manifest struct {
	Format    int    `json:"format"` // manifestFormat
	Token     string `json:"token"`  // drawn at random: clusters never mix
	Protocol  string `json:"protocol"`
	Placement string `json:"placement"`
	CodeK     int    `json:"code_k,omitempty"`
	Instances int    `json:"instances"`
	// Quorums are the voters that elect and those that decide. A directory of an earlier program has none: all are
	// majorities.
	Quorums string `json:"quorums,omitempty"`
	// Epochs are flags. A directory of an earlier program has none: members use those of their own directories.
	Epochs  string   `json:"epochs,omitempty"`
	Net     string   `json:"net,omitempty"`
	Members []Member `json:"members"`
}

const manifestFormat = 1

// Member is one process of the cluster. Names and ports are unique in a manifest.
type Member struct {
	Name       string `json:"name"`
	ClientPort int    `json:"client_port"`
	PeerPort   int    `json:"peer_port"`
	// Zone is where the first member was when the cluster was made.
	Zone string `json:"zone,omitempty"`
	// MorePeerPorts are those of further network cards.
	MorePeerPorts []int `json:"more_peer_ports,omitempty"`
	// Joined: the member that is there now was added to the running cluster, in place of the first one.
	Joined bool `json:"joined,omitempty"`
}

// ClientAddr is the host:port for clients.
func (m Member) ClientAddr() string { return net.JoinHostPort(host, strconv.Itoa(m.ClientPort)) }

// ClientURL is the URL for clients.
func (m Member) ClientURL() string { return "http://" + m.ClientAddr() }

// PeerAddrs are the host:port for other members, one for each network card.
func (m Member) PeerAddrs() []string {
	out := []string{net.JoinHostPort(host, strconv.Itoa(m.PeerPort))}
	for _, p := range m.MorePeerPorts {
		out = append(out, net.JoinHostPort(host, strconv.Itoa(p)))
	}
	return out
}

// PeerURLs are the URLs for other members, one for each network card.
func (m Member) PeerURLs() []string {
	out := m.PeerAddrs()
	for i := range out {
		out[i] = "http://" + out[i]
	}
	return out
}

// InitialCluster is the list of members in the form of etcd's flag.
func (m *Manifest) InitialCluster() string {
	var parts []string
	for _, member := range m.Members {
		for _, url := range member.PeerURLs() {
			parts = append(parts, member.Name+"="+url)
		}
	}
	return strings.Join(parts, ",")
}

// InitialZones is the list of their zones in the form of a flag; "": they have none.
func (m *Manifest) InitialZones() string {
	var parts []string
	for _, member := range m.Members {
		if member.Zone != "" {
			parts = append(parts, member.Name+"="+member.Zone)
		}
	}
	return strings.Join(parts, ",")
}

// Zones are those of the members; nil: they have none.
func (m *Manifest) Zones() (zones []string) {
	for _, member := range m.Members {
		if member.Zone != "" {
			zones = append(zones, member.Zone)
		}
	}
	return zones
}

// ZoneOf is the zone of the i-th member, from 0, if members are in these zones in turns.
func ZoneOf(zones []string, i int) string {
	if len(zones) == 0 {
		return ""
	}
	return zones[i%len(zones)]
}

// without is the manifest without some members.
func (m *Manifest) without(names []string) *Manifest {
	out := *m
	out.Members = slices.DeleteFunc(slices.Clone(m.Members), func(o Member) bool { return slices.Contains(names, o.Name) })
	return &out
}

// Endpoints are the client addresses of all members.
func (m *Manifest) Endpoints() []string {
	var out []string
	for _, member := range m.Members {
		out = append(out, member.ClientAddr())
	}
	return out
}

// ConflictError indicates that a setting contradicts the data directory. Nothing was done.
type ConflictError struct{ Dir, What, Has, Wanted string }

func (e *ConflictError) Error() string {
	if e.What == "instances" {
		return fmt.Sprintf("%s holds a cluster that began with instances %s, not %s: leave the flag out to resume it with "+
			"those that it has now",
			e.Dir, e.Has, e.Wanted)
	}
	return fmt.Sprintf("%s holds a cluster with %s %s, not %s: leave the flag out to resume it, or choose another --data",
		e.Dir, e.What, e.Has, e.Wanted)
}

// manifestFile is the path of the manifest in a data directory.
func manifestFile(dir string) string { return filepath.Join(dir, "braid.json") }

// Exists reports whether dir holds a cluster.
func Exists(dir string) bool {
	_, err := os.Stat(manifestFile(dir))
	return err == nil
}

// ReadManifest returns the manifest of a data directory.
func ReadManifest(dir string) (*Manifest, error) {
	data, err := os.ReadFile(manifestFile(dir))
	if err != nil {
		return nil, err
	}
	m := &Manifest{}
	if err := json.Unmarshal(data, m); err != nil {
		return nil, fmt.Errorf("%s: not a manifest of braid: %w", manifestFile(dir), err)
	}
	if m.Format != manifestFormat || len(m.Members) == 0 {
		return nil, fmt.Errorf("%s: format %d with %d members, this braid knows format %d", manifestFile(dir), m.Format,
			len(m.Members), manifestFormat)
	}
	return m, nil
}

// loadOrCreate returns the manifest of dir, a new one if there is none.
func loadOrCreate(dir string, spec Spec) (m *Manifest, resumed bool, err error) {
	m, err = ReadManifest(dir)
	if errors.Is(err, fs.ErrNotExist) {
		m, err = create(dir, spec)
		return m, false, err
	}
	if err != nil {
		return nil, false, err
	}
	if err := m.conflict(dir, spec); err != nil || m.Net == spec.Net {
		return m, true, err
	}
	m.Net = spec.Net
	return m, true, m.write(dir)
}

// conflict compares the wanted settings with the recorded ones.
func (m *Manifest) conflict(dir string, spec Spec) error {
	number := func(what string, has, wanted int) error {
		if wanted == 0 || wanted == has {
			return nil
		}
		return &ConflictError{dir, what, strconv.Itoa(has), strconv.Itoa(wanted)}
	}
	text := func(what, has, wanted string) error {
		if wanted == "" || wanted == has {
			return nil
		}
		return &ConflictError{dir, what, has, wanted}
	}
	base := spec.BasePort
	if base == AnyPort {
		base = 0
	}
	var code error
	if m.CodeK != spec.CodeK {
		code = &ConflictError{dir, "code-k", strconv.Itoa(m.CodeK), strconv.Itoa(spec.CodeK)}
	}
	epochs := spec.Epochs
	if m.Epochs == "" {
		epochs = ""
	}
	return errors.Join(
		number("nodes", len(m.Members), spec.Nodes),
		number("cards", len(m.Members[0].PeerAddrs()), spec.Cards),
		number("base-port", m.Members[0].ClientPort, base),
		number("instances", m.Instances, spec.Instances),
		text("protocol", m.Protocol, spec.Protocol),
		text("placement", m.Placement, spec.Placement),
		code,
		text("quorums", cmp.Or(m.Quorums, "majority"), spec.Quorums),
		text("epochs", m.Epochs, epochs),
	)
}

func create(dir string, spec Spec) (*Manifest, error) {
	if err := empty(dir); err != nil {
		return nil, err
	}
	m := &Manifest{Format: manifestFormat, Token: "braid-" + rand.Text()[:12],
		Protocol: spec.Protocol, Placement: spec.Placement, CodeK: spec.CodeK, Instances: spec.Instances,
		Quorums: spec.Quorums, Epochs: spec.Epochs, Net: spec.Net}
	all, err := choosePorts(spec)
	if err != nil {
		return nil, err
	}
	for i := range spec.Nodes {
		own := all[i*spec.ports() : (i+1)*spec.ports()]
		m.Members = append(m.Members, Member{Name: "m" + strconv.Itoa(i+1), ClientPort: own[0], PeerPort: own[1],
			Zone: ZoneOf(spec.Zones, i), MorePeerPorts: append([]int(nil), own[2:]...)})
	}
	// Ports first: a start that fails because of a taken port must leave no data directory with
	// that port.
	if err := m.checkPorts(); err != nil {
		return nil, err
	}
	return m, m.write(dir)
}

// write replaces the directory's manifest durably: without it the owners of the members' data are unknown.
func (m *Manifest) write(dir string) error {
	data, err := json.MarshalIndent(m, "", "  ")
	if err != nil {
		return err
	}
	return wal.WriteFile(vfs.OS, manifestFile(dir), append(data, '\n'))
}

// remove removes a cluster that was never started.
func (m *Manifest) remove(dir string) error {
	errs := []error{os.Remove(manifestFile(dir))}
	for _, member := range m.Members {
		errs = append(errs, os.RemoveAll(filepath.Join(dir, member.Name)))
	}
	return errors.Join(errs...)
}

// empty refuses a directory with other contents.
func empty(dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		unfinished := strings.TrimPrefix(e.Name(), filepath.Base(manifestFile(".")))
		if e.Name() != lockName && e.Name() != ownerName && unfinished != ".tmp" && unfinished != ".new" {
			// the latter is an earlier version's
			return fmt.Errorf("%s is not empty and holds no cluster of braid (it has %q): choose another --data", dir, e.Name())
		}
	}
	return nil
}

// ports is the number of ports of a member.
func (s *Spec) ports() int { return 1 + max(1, s.Cards) }

func choosePorts(spec Spec) ([]int, error) {
	if spec.BasePort == AnyPort {
		return ports.Free(host, spec.ports()*spec.Nodes)
	}
	var out []int
	for i := range spec.Nodes {
		for j := range spec.ports() {
			port := spec.BasePort + portStep*i + j
			if port < 1 || port > 1<<16-1 {
				return nil, fmt.Errorf("port %d of member %d does not exist: choose a lower --base-port", port, i+1)
			}
			out = append(out, port)
		}
	}
	return out, nil
}

// waitPorts is checkPorts, but waits for the end of members that were just killed.
func (m *Manifest) waitPorts(ctx context.Context) error {
	const pause, longest = 50 * time.Millisecond, 5 * time.Second
	for began := time.Now(); ; {
		err := m.checkPorts()
		if err == nil || !mayBeDying(err) || time.Since(began) > longest {
			return err
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(pause):
		}
	}
}

// mayBeDying reports whether a port's owner is unknown or runs this same program. The owner is
// unknown while its files are being closed.
func mayBeDying(err error) bool {
	self := filepath.Base(os.Args[0])
	if program, err := os.Executable(); err == nil {
		self = filepath.Base(program)
	}
	joined, ok := err.(interface{ Unwrap() []error })
	if !ok {
		return false
	}
	return slices.ContainsFunc(joined.Unwrap(), func(err error) bool {
		var busy *ports.BusyError
		return errors.As(err, &busy) && busy.Owner.PID != os.Getpid() &&
			(busy.Owner.PID == 0 || strings.HasPrefix(self, busy.Owner.Name))
	})
}

// checkPorts returns an error with every port that is taken, and its owner.
func (m *Manifest) checkPorts() error {
	var errs []error
	for _, member := range m.Members {
		for _, addr := range append(member.PeerAddrs(), member.ClientAddr()) {
			if err := ports.Check(addr); err != nil {
				errs = append(errs, fmt.Errorf("%s: %w", member.Name, err))
			}
		}
	}
	return errors.Join(errs...)
}
