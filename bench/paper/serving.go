package paper

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/rpc"
	"runtime"
	"runtime/metrics"

	"github.com/braidlog/braid"
	"github.com/braidlog/braid/bench"
)

// seat is the configuration of a member's process.
type seat struct {
	Setup   Setup
	Self    braid.MemberID
	Members []braid.Member
	Cluster uint64
	Dir     string
	Listen  []string
	Net     string
}

// ServeMember runs the process of a member. It reads its configuration from in, writes its address for calls to out,
// and ends when in ends: with the process that started it.
func ServeMember(in io.Reader, out io.Writer) error {
	var s seat
	if err := json.NewDecoder(in).Decode(&s); err != nil {
		return fmt.Errorf("which member this is: %w", err)
	}
	o, err := s.Setup.options()
	if err != nil {
		return err
	}
	o.Self, o.Members, o.Cluster, o.Dir, o.Listen, o.Experiment.Net = s.Self, s.Members, s.Cluster, s.Dir, s.Listen, s.Net
	machine := newMachine(s.Setup.ApplyCost)
	n, err := machine.open(o, s.Setup)
	if err != nil {
		return err
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return errors.Join(err, n.Close())
	}
	server := rpc.NewServer()
	if err := server.RegisterName(serviceName, &service{n, machine}); err != nil {
		return errors.Join(err, l.Close(), n.Close())
	}
	go server.Accept(l)
	_, err = fmt.Fprintln(out, l.Addr())
	if err == nil {
		_, err = io.Copy(io.Discard, in)
	}
	// It is not closed as for an intentional stop: nothing waits for that any more.
	return errors.Join(err, n.Err())
}

// service has the calls from the process that started a member's process. Its methods have the form that package rpc
// requires.
type service struct {
	n *braid.Node
	m *machine
}

const serviceName = "Member"

// Proposal is a command from another process.
type Proposal struct {
	Command, Body []byte
	Options       braid.ProposeOptions
}

// Propose proposes a command and waits for the answer.
func (s *service) Propose(p *Proposal, _ *struct{}) error {
	ctx, cancel := context.WithTimeout(context.Background(), stallTimeout)
	defer cancel()
	_, err := s.n.ProposeWith(ctx, p.Command, p.Body, p.Options)
	return err
}

// Status returns the member's status.
func (s *service) Status(_ struct{}, out *braid.Status) error {
	*out = s.n.Status()
	return nil
}

// SetNet changes the emulation of the member's links.
func (s *service) SetNet(net string, _ *struct{}) error { return s.n.SetNet(net) }

// Transfer transfers the leadership.
func (s *service) Transfer(to braid.MemberID, _ *struct{}) error {
	ctx, cancel := context.WithTimeout(context.Background(), transferTimeout)
	defer cancel()
	return s.n.TransferLeader(ctx, to)
}

// Digest returns the digest of the member's applied commands.
func (s *service) Digest(_ struct{}, out *Digest) error {
	out.Count, out.Hash = s.m.m.Digest()
	return nil
}

// Use returns the resource use of the process. With collect, garbage is collected before.
func (s *service) Use(collect bool, out *Use) error {
	out.CPU = bench.CPUTime()
	if collect {
		runtime.GC()
	}
	heap := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
	metrics.Read(heap)
	out.Heap, out.Resident = heap[0].Value.Uint64(), bench.ResidentBytes()
	return nil
}
