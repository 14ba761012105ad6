package main

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"google.golang.org/grpc/metadata"

	"github.com/braidlog/braid"
	"github.com/braidlog/braid/internal/control"
	"github.com/braidlog/braid/internal/launch"
	"github.com/braidlog/braid/internal/registry"
)

// switchTimeout bounds a change of the protocol that the dashboard began.
const switchTimeout = time.Minute

// killTimeout bounds the wait for the end of a process that was killed.
const killTimeout = 5 * time.Second

// operator operates a local cluster for its dashboard. It implements [control.Cluster].
type operator struct {
	c    *launch.Cluster
	ctx  context.Context // ends with close
	stop context.CancelFunc
	work sync.WaitGroup // switches and loads

	relinking sync.Mutex // held while links change

	mu        sync.Mutex
	links     *links
	protocol  string // as far as it is known
	switching string
	lastError string
	load      *upLoad // the load that runs, or ran last; nil: none
}

func newOperator(c *launch.Cluster) *operator {
	m := c.Manifest()
	o := &operator{c: c, links: newLinks(m), protocol: m.Protocol}
	o.ctx, o.stop = context.WithCancel(context.Background())
	return o
}

// close ends what the operator began, and waits for it.
func (o *operator) close() {
	o.mu.Lock()
	o.stop() // nothing begins any more
	o.mu.Unlock()
	o.work.Wait()
}

// closed is the refusal of what begins after close; nil: it may begin. mu is held.
func (o *operator) closed() error {
	if o.ctx.Err() != nil {
		return operationError(launch.ErrNotRunning)
	}
	return nil
}

// State implements [control.Cluster].
func (o *operator) State() control.State {
	o.mu.Lock()
	s := control.State{Protocols: registry.Serving(), Protocol: o.protocol, Switching: o.switching,
		LastError: o.lastError, Load: o.load.state()}
	links := o.links
	o.mu.Unlock()
	for _, m := range o.c.Conditions() {
		s.Members = append(s.Members, control.Member{Name: m.Name, PID: m.PID, State: string(m.State),
			Net: links.words(m.Name), ClientURL: m.ClientURL(),
			Serves: m.PID != 0 && m.State != launch.IsPaused})
	}
	return s
}

// Learn implements [control.Cluster].
func (o *operator) Learn(protocol string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.protocol = protocol
}

// Operate implements [control.Cluster].
func (o *operator) Operate(ctx context.Context, member string, a control.Action) error {
	o.fail(nil)
	ctx, cancel := context.WithTimeout(ctx, killTimeout)
	defer cancel()
	var err error
	switch a {
	case control.Kill:
		err = o.c.Kill(ctx, member)
	case control.Start:
		err = o.c.Start(member)
	case control.Pause:
		err = o.c.Pause(member)
	case control.Resume:
		err = o.c.Resume(member)
	default:
		err = o.relink(member, a)
	}
	return operationError(err)
}

// relink changes the links of a member.
func (o *operator) relink(member string, a control.Action) error {
	o.relinking.Lock()
	defer o.relinking.Unlock()
	o.mu.Lock()
	change := o.links.with(member, a)
	o.mu.Unlock()
	err := operationError(o.c.Relink(member, change.spec(), change.event(member)))
	if !errors.As(err, new(*control.Error)) { // some members have the change now, if not all
		o.mu.Lock()
		o.links = change
		o.mu.Unlock()
	}
	return err
}

// operationError gives an error of launch its status.
func operationError(err error) error {
	var unknown *launch.UnknownError
	var state *launch.StateError
	switch {
	case errors.As(err, &unknown):
		return &control.Error{Status: http.StatusNotFound, Text: err.Error()}
	case errors.As(err, &state), errors.Is(err, launch.ErrNotRunning):
		return &control.Error{Status: http.StatusConflict, Text: err.Error()}
	}
	return err
}

// fail records the error of an operation that continued after its request; nil: there is a new request.
func (o *operator) fail(err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.lastError = ""; err != nil {
		o.lastError = err.Error()
	}
}

// endpoints are the client addresses of members that may answer, or of all.
func (o *operator) endpoints(all bool) (out []string) {
	for _, m := range o.c.Conditions() {
		if all || m.State == launch.IsRunning {
			out = append(out, m.ClientAddr())
		}
	}
	return out
}

// Switch implements [control.Cluster].
func (o *operator) Switch(protocol, token string) error {
	endpoints := o.endpoints(false)
	o.mu.Lock()
	defer o.mu.Unlock()
	if err := o.closed(); err != nil {
		return err
	}
	switch {
	case o.switching != "":
		return &control.Error{Status: http.StatusConflict, Text: "the protocol changes to " + o.switching + " already"}
	case len(endpoints) == 0:
		return &control.Error{Status: http.StatusConflict, Text: "no member runs"}
	}
	o.switching, o.lastError = protocol, ""
	o.work.Go(func() {
		f := adminFlags{endpoints: endpoints, timeout: switchTimeout}
		to := braid.Switch{Protocol: protocol}
		p, err := f.changeProtocol(withToken(o.ctx, token), to, func(*braid.SwitchPlan) {})
		o.mu.Lock()
		defer o.mu.Unlock()
		if o.switching = ""; err != nil {
			o.lastError = "switch to " + protocol + ": " + err.Error()
		} else {
			o.protocol = p.Protocol
		}
	})
	return nil
}

// withToken gives the gRPC calls of a context the token of a user; "": none.
func withToken(ctx context.Context, token string) context.Context {
	if token == "" {
		return ctx
	}
	return metadata.AppendToOutgoingContext(ctx, rpctypes.TokenFieldNameGRPC, token)
}
