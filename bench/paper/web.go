package paper

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/url"

	"github.com/braidlog/braid"
	"github.com/braidlog/braid/bench/mapkv"
)

// webNode is a node that serves the map service of package mapkv, by HTTP.
type webNode struct {
	node
	log    *braid.Node
	server http.Server
	base   string // URL without a path
	ended  chan error
}

// openWeb starts a node with this machine and a map, and its service.
func (m *machine) openWeb(o braid.Options, s Setup) (*webNode, error) {
	sm, state, err := m.withMaps(&s)
	if err != nil {
		return nil, err
	}
	n, err := braid.Open(o, sm)
	if err != nil {
		return nil, err
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, errors.Join(err, n.Close())
	}
	w := &webNode{node: n, log: n, base: "http://" + l.Addr().String(), ended: make(chan error, 1)}
	if s.keyed() {
		w.node = keyed{n}
	}
	w.server.Handler, w.server.ReadHeaderTimeout = mapkv.Handler(n, state, 0, -1), mapkv.DefaultTimeout
	go func() { w.ended <- w.server.Serve(l) }()
	return w, nil
}

// withMaps returns this machine and a map, or a part of it and a map for each group.
func (m *machine) withMaps(s *Setup) (braid.StateMachine, mapkv.State, error) {
	if s.byKey() {
		m.m.ByKey(webKeyIn)
	}
	if s.groups() == 0 {
		state := mapkv.NewMap()
		return &mapped{m, state}, state, nil
	}
	parts, states := m.m.Split(s.groups()), make(mapkv.Groups, s.groups())
	sm, err := braid.NewGroups(s.groups(), func(group int) braid.StateMachine {
		states[group] = mapkv.NewMap()
		return &mapped{&part{m, parts[group]}, states[group]}
	})
	return sm, states, err
}

// webKeyIn is the key of a command: one of the map's, or else a unique one.
func webKeyIn(command []byte) uint64 {
	if len(command) > numberBytes {
		return mapkv.KeyIn(command)
	}
	return keyIn(command)
}

// Close implements [node].
func (n *webNode) Close() error {
	err := n.server.Close()
	if serr := <-n.ended; !errors.Is(serr, http.ErrServerClosed) {
		err = errors.Join(err, serr)
	}
	return errors.Join(err, n.node.Close())
}

// mapped is a machine that has a map too. It counts all commands. Those that are only a number are not the map's: the
// cluster proposes them itself, to verify that its members have everything.
type mapped struct {
	counted braid.StateMachine
	state   *mapkv.Map
}

// numberBytes is the length of a number.
const numberBytes = 8

// Apply implements [braid.StateMachine].
func (m *mapped) Apply(commands []braid.Command) error {
	err := m.counted.Apply(commands)
	for i := range commands {
		if len(commands[i].Data) > numberBytes {
			err = errors.Join(err, m.state.Apply(commands[i:i+1]))
		}
	}
	return err
}

// Snapshot implements [braid.StateMachine].
func (m *mapped) Snapshot() (braid.Snapshot, error) {
	counted, err := m.counted.Snapshot()
	if err != nil {
		return nil, err
	}
	state, err := m.state.Snapshot()
	if err != nil {
		return nil, errors.Join(err, counted.Close())
	}
	return &twoSnapshots{counted, state}, nil
}

// Restore implements [braid.StateMachine].
func (m *mapped) Restore(r io.Reader) error {
	in := bufio.NewReader(r) // the first one leaves the rest in it
	return errors.Join(m.counted.Restore(in), m.state.Restore(in))
}

// twoSnapshots are two snapshots, one after the other.
type twoSnapshots struct{ first, second braid.Snapshot }

// WriteTo implements [braid.Snapshot].
func (s *twoSnapshots) WriteTo(ctx context.Context, w io.Writer) error {
	if err := s.first.WriteTo(ctx, w); err != nil {
		return err
	}
	return s.second.WriteTo(ctx, w)
}

// Close implements [braid.Snapshot].
func (s *twoSnapshots) Close() error { return errors.Join(s.first.Close(), s.second.Close()) }

// The load of the thesis, table 2: six machines with clients, and each machine sends to one member. The keys of each
// machine are normally distributed around a different mean.
const (
	webCallers = 6
	webKeys    = 12_000
	webSpread  = 1000.0
)

// webCaller is one of these machines. Its clients request one key each, and do not wait for each other.
type webCaller struct {
	client *http.Client
	base   string
	random *rand.Rand
	middle float64
	writes float64 // the share of writes
	value  []byte
}

// bases are the HTTP addresses of the running members, round-robin for all callers.
func (t *braidTarget) bases() (bases []string) {
	for i := range webCallers {
		if n, ok := t.members[i%len(t.members)].node.(*webNode); ok {
			bases = append(bases, n.base)
		}
	}
	return bases
}

// newWebCallers returns callers at these addresses, one at each.
func newWebCallers(w *Work, bases []string) (out []proposer) {
	for i, base := range bases {
		out = append(out, &webCaller{
			client: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: flowInflight, DisableCompression: true}},
			base:   base, random: rand.New(rand.NewPCG(3, uint64(i))), middle: webKeys / webCallers * (float64(i) + 0.5),
			writes: w.Writes, value: make([]byte, max(1, w.Payload)),
		})
	}
	return out
}

// newWebClients returns the clients of such callers. Each client waits for its answers.
func newWebClients(w *Work, bases []string) (out []proposer) {
	callers := newWebCallers(w, bases)
	for i := range w.Clients {
		c := *callers[i%len(callers)].(*webCaller)
		c.random = rand.New(rand.NewPCG(4, uint64(i)))
		out = append(out, &c)
	}
	return out
}

// hangUp closes the connections of callers that are no longer needed.
func hangUp(callers []proposer) {
	for _, p := range callers {
		if c, ok := p.(*webCaller); ok {
			c.client.CloseIdleConnections()
		}
	}
}

// key draws a key.
func (c *webCaller) key() string {
	k := int(c.middle+c.random.NormFloat64()*webSpread) % webKeys
	return keyOf((k + webKeys) % webKeys)
}

func keyOf(number int) string { return fmt.Sprintf("key%07d", number) }

// ProposeWithAsync implements [proposer] with a request that the caller chooses: the arguments only determine its
// time.
func (c *webCaller) ProposeWithAsync(_, _ []byte, _ braid.ProposeOptions, done func(any, error)) error {
	method, target, value := http.MethodGet, c.base+"/kv/"+url.PathEscape(c.key()), []byte(nil)
	if c.random.Float64() < c.writes {
		method, value = http.MethodPut, c.value
	} else {
		target += "?ordered"
	}
	go func() { done(nil, c.ask(method, target, value)) }()
	return nil
}

// ask makes a request. An answer for a missing key is no error.
func (c *webCaller) ask(method, target string, value []byte) error {
	request, err := http.NewRequest(method, target, bytes.NewReader(value))
	if err != nil {
		return err
	}
	answer, err := c.client.Do(request)
	if err != nil {
		return err
	}
	defer func() { _ = answer.Body.Close() }()
	if _, err := io.Copy(io.Discard, answer.Body); err != nil {
		return err
	}
	switch answer.StatusCode {
	case http.StatusOK, http.StatusNoContent, http.StatusNotFound:
		return nil
	}
	return fmt.Errorf("%s %s: %s", method, target, answer.Status)
}
