package paper

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/rpc"
	"os/exec"
	"strings"
	"time"

	"github.com/braidlog/braid"
)

// process is a member in a separate process. Clients are in this one: commands reach the member over TCP.
type process struct {
	cmd    *exec.Cmd
	in     io.Closer // ends the process
	errors bytes.Buffer
	client *rpc.Client
	keyed  bool          // commands have the key that they touch
	ended  chan struct{} // closed when it has ended, with all its output in errors
}

// Digest is the number of commands that a member applied, and a hash over them in order.
type Digest struct{ Count, Hash uint64 }

// Use is the resource use of a process.
type Use struct {
	CPU      time.Duration
	Heap     uint64 // bytes of objects
	Resident uint64 // bytes of memory
}

// askTimeout bounds an immediate answer of a member's process.
const askTimeout = 10 * time.Second

// startProcess runs a command that calls [ServeMember].
func startProcess(command []string, s *seat) (*process, error) {
	if len(command) == 0 {
		return nil, errors.New("members cannot be processes of their own here: nothing says how to start one")
	}
	which, err := json.Marshal(s)
	if err != nil {
		return nil, err
	}
	p := &process{cmd: exec.Command(command[0], command[1:]...), ended: make(chan struct{})}
	p.cmd.Stderr = &p.errors
	in, err := p.cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := p.cmd.Start(); err != nil {
		return nil, err
	}
	p.in = in
	late := time.AfterFunc(startTimeout, func() { _ = p.cmd.Process.Kill() })
	defer late.Stop()
	_, err = in.Write(append(which, '\n'))
	address, rerr := bufio.NewReader(out).ReadString('\n')
	go func() {
		_ = p.cmd.Wait() // a kill is expected
		close(p.ended)
	}()
	if err = errors.Join(err, rerr); err == nil {
		p.client, err = dial(strings.TrimSpace(address))
	}
	if err != nil {
		return nil, fmt.Errorf("a member's process does not start: %w: %s", err, errors.Join(p.Close(), p.said()))
	}
	return p, nil
}

// startProcess starts a member in a separate process.
func (m *member) startProcess(s Setup, command []string) error {
	o := &m.options
	p, err := startProcess(command, &seat{s, o.Self, o.Members, o.Cluster, o.Dir, o.Listen, o.Experiment.Net})
	if err == nil {
		p.keyed = s.keyed()
		m.node = p // never a typed nil
	}
	return err
}

func dial(address string) (*rpc.Client, error) {
	c, err := net.DialTimeout("tcp", address, askTimeout)
	if err != nil {
		return nil, err
	}
	return rpc.NewClient(c), nil
}

// said is the error output of an ended process.
func (p *process) said() error {
	if p.errors.Len() == 0 {
		return nil
	}
	return errors.New(strings.TrimSpace(p.errors.String()))
}

// Close ends the process at once, as a power failure would.
func (p *process) Close() error {
	_ = p.cmd.Process.Kill()
	<-p.ended
	var err error
	if p.client != nil {
		err = p.client.Close()
	}
	if errors.Is(err, rpc.ErrShutdown) { // it found out before
		err = nil
	}
	_ = p.in.Close() // may be closed, as the process has ended
	return err
}

// Err implements [node]: its error, if it ended by itself.
func (p *process) Err() error {
	select {
	case <-p.ended:
		return cmp.Or(p.said(), errors.New("a member's process ended"))
	default:
		return nil
	}
}

// call calls a method of the process.
func call[T any](ctx context.Context, p *process, method string, argument any) (out T, err error) {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	var got T
	under := p.client.Go(serviceName+"."+method, argument, &got, make(chan *rpc.Call, 1))
	select {
	case <-under.Done:
		return got, under.Error
	case <-ctx.Done():
		return out, fmt.Errorf("asking a member's process: %w", ctx.Err())
	}
}

// ProposeWithAsync implements [proposer].
func (p *process) ProposeWithAsync(command, body []byte, o braid.ProposeOptions, done func(any, error)) error {
	if p.keyed {
		o = keysOf(command, o)
	}
	under := p.client.Go(serviceName+".Propose", &Proposal{command, body, o}, &struct{}{}, make(chan *rpc.Call, 1))
	go func() {
		<-under.Done
		done(nil, under.Error)
	}()
	return nil
}

// ProposeWith implements [node].
func (p *process) ProposeWith(ctx context.Context, command, body []byte, o braid.ProposeOptions) (any, error) {
	if p.keyed {
		o = keysOf(command, o)
	}
	return call[struct{}](ctx, p, "Propose", &Proposal{command, body, o})
}

// Propose implements [node].
func (p *process) Propose(ctx context.Context, command []byte) (any, error) {
	return p.ProposeWith(ctx, command, nil, braid.ProposeOptions{})
}

// Status implements [node]; it is empty if the process does not answer.
func (p *process) Status() braid.Status {
	s, _ := call[braid.Status](context.Background(), p, "Status", struct{}{})
	return s
}

// SetNet implements [node].
func (p *process) SetNet(net string) error {
	_, err := call[struct{}](context.Background(), p, "SetNet", net)
	return err
}

// TransferLeader implements [node].
func (p *process) TransferLeader(ctx context.Context, to braid.MemberID) error {
	_, err := call[struct{}](ctx, p, "Transfer", to)
	return err
}

// Ask implements [node]: processes have no requests between each other.
func (p *process) Ask(context.Context, braid.MemberID, []byte) ([]byte, error) {
	return nil, errors.ErrUnsupported
}
