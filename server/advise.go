package server

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/emptypb"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/braidlog/braid"
)

// Advised is a [braid.Advice] with members' names, and with rates instead of counts. Ids are hexadecimal.
type Advised struct {
	By      string            `json:"by"`
	At      time.Time         `json:"at"`
	Mode    string            `json:"mode"`
	Profile uint64            `json:"profile"`
	Names   map[string]string `json:"names"`   // of the members that have one, by id
	Members []AdvisedMember   `json:"members"` // by name
	Costs   []AdvisedCost     `json:"costs"`   // the active profile first
	Wish    *AdvisedWish      `json:"wish,omitempty"`
	Waits   string            `json:"waits,omitempty"`
	Avoids  []AdvisedAvoid    `json:"avoids,omitempty"`
}

// AdvisedMember is what a member measured. Rates are per second, and shares are 0…1.
type AdvisedMember struct {
	ID       string  `json:"id"`
	Seconds  float64 `json:"span_seconds"`
	Commands float64 `json:"commands_per_second"`
	Bytes    float64 `json:"bytes_per_second"`
	Blind    float64 `json:"blind_share"`      // of the commands: their results are not needed
	Large    float64 `json:"large_share"`      // of the bytes: they are in bodies
	Latency  float64 `json:"latency_seconds"`  // the mean time of a command
	Waiting  float64 `json:"mean_in_progress"` // commands, at a time

	Loops     []float64     `json:"loop_shares"` // in which each instance's event loop was busy
	Apply     float64       `json:"apply_share"`
	CPU       float64       `json:"cpu_share"` // of all cores
	Disk      float64       `json:"disk_share"`
	Syncs     float64       `json:"syncs_per_second"`
	Unapplied uint64        `json:"unapplied,omitempty"`
	Links     []AdvisedLink `json:"links"`
}

// AdvisedLink is what a member measured of another one.
type AdvisedLink struct {
	To     string  `json:"to"`
	Trip   float64 `json:"round_trip_seconds,omitempty"` // the shortest; 0: not known
	Bytes  float64 `json:"bytes_per_second"`             // sent
	Queued uint64  `json:"queued_bytes,omitempty"`
}

// AdvisedCandidate is a profile, with the member that leads under it.
type AdvisedCandidate struct {
	Protocol string            `json:"protocol"`
	Settings map[string]string `json:"settings,omitempty"` // what differs from those that a switch would keep
	Leader   string            `json:"leader,omitempty"`   // "": several lead, or it does not matter
}

// AdvisedCost is what is expected of a profile under today's load.
type AdvisedCost struct {
	AdvisedCandidate
	Throughput float64 `json:"commands_per_second"`
	Latency    float64 `json:"latency_seconds"`
	Gain       float64 `json:"gain"` // the throughput as a factor of the active profile's; 0: not known
	Limit      string  `json:"limit,omitempty"`
	Excluded   string  `json:"excluded,omitempty"`
}

// AdvisedWish is the change that the leader wishes for.
type AdvisedWish struct {
	AdvisedCandidate
	Gain      float64 `json:"gain"`
	Reason    string  `json:"reason"`
	TakesBack bool    `json:"takes_back,omitempty"` // it takes an earlier change back
	Restores  bool    `json:"restores,omitempty"`   // it lets the others serve, where a member is missing or slow
}

// AdvisedAvoid is a change that was taken back.
type AdvisedAvoid struct {
	AdvisedCandidate
	Until time.Time `json:"until"` // from when it may be tried again
}

// Advise asks a member which change of the protocol, settings or leader would fit the load better. Nothing is changed.
// Without advice the code is Unavailable if a retry may succeed, else FailedPrecondition.
func Advise(ctx context.Context, member grpc.ClientConnInterface) (Advised, error) {
	var out Advised
	answer := new(structpb.Struct)
	err := callAdmin(ctx, member, adviseMethod, new(emptypb.Empty), answer)
	if err == nil {
		err = fromStruct(answer, &out)
	}
	return out, err
}

func (s *Server) advise(ctx context.Context, _ *emptypb.Empty) (*structpb.Struct, error) {
	ctx, cancel, err := s.forChange(ctx)
	defer cancel()
	if err != nil {
		return nil, err
	}
	advice, err := s.log.Advise(ctx)
	var why *braid.AdviceError
	switch {
	case errors.As(err, &why) && why.Retry:
		return nil, status.Error(codes.Unavailable, err.Error()+"; a retry may succeed")
	case why != nil:
		return nil, status.Error(codes.FailedPrecondition, err.Error())
	case err != nil:
		return nil, toStatus(err)
	}
	return toStruct(newAdvised(&advice, s.log.Status().Members))
}

func newAdvised(a *braid.Advice, members []braid.Member) Advised {
	out := Advised{By: a.By.String(), At: a.At, Mode: string(a.Mode), Profile: a.Version, Waits: a.Waits,
		Names: map[string]string{}}
	for i := range members {
		if m := &members[i]; m.Name != "" {
			out.Names[m.ID.String()] = m.Name
		}
	}
	for i := range a.Reports {
		out.Members = append(out.Members, newAdvisedMember(&a.Reports[i]))
	}
	slices.SortStableFunc(out.Members, func(x, y AdvisedMember) int {
		return strings.Compare(out.Names[x.ID], out.Names[y.ID])
	})
	for i := range a.Costs {
		c := &a.Costs[i]
		out.Costs = append(out.Costs, AdvisedCost{newCandidate(&c.Candidate), c.Throughput, c.Latency,
			ratio(c.Throughput, a.Costs[0].Throughput), c.Limit, c.Excluded})
	}
	if w := a.Wish; w != nil {
		out.Wish = &AdvisedWish{newCandidate(&w.Candidate), w.Gain, w.Reason, w.TakesBack, w.Restores}
	}
	for i := range a.Avoids {
		v := &a.Avoids[i]
		out.Avoids = append(out.Avoids, AdvisedAvoid{newCandidate(&v.Candidate), time.UnixMilli(v.Until)})
	}
	return out
}

func newCandidate(c *braid.FitCandidate) AdvisedCandidate {
	out := AdvisedCandidate{Protocol: c.Protocol, Settings: c.Settings}
	if c.Leader != 0 {
		out.Leader = c.Leader.String()
	}
	return out
}

func newAdvisedMember(r *braid.FitReport) AdvisedMember {
	span, asked := r.Span.Seconds(), &r.Asked
	n := float64(asked.Commands)
	m := AdvisedMember{
		ID: r.Member.String(), Seconds: span, Commands: ratio(n, span), Bytes: ratio(float64(asked.Bytes), span),
		Blind: ratio(float64(asked.Blind), n), Large: ratio(float64(asked.LargeBytes), float64(asked.Bytes)),
		Latency: ratio(asked.Waited.Seconds(), n), Waiting: ratio(asked.Waited.Seconds(), span),
		Loops: r.Loops, Apply: r.Apply, CPU: r.CPU, Disk: ratio(r.Disk.Time.Seconds(), span),
		Syncs: ratio(float64(r.Disk.Syncs), span), Unapplied: r.Unapplied,
	}
	at := map[braid.MemberID]int{}
	link := func(to braid.MemberID) *AdvisedLink {
		i, known := at[to]
		if !known {
			i, at[to] = len(m.Links), len(m.Links)
			m.Links = append(m.Links, AdvisedLink{To: to.String()})
		}
		return &m.Links[i]
	}
	for _, t := range r.Trips {
		link(t.To).Trip = t.Time.Seconds()
	}
	for _, l := range r.Links {
		known := link(l.To)
		known.Bytes, known.Queued = ratio(float64(l.Bytes), span), l.Queued
	}
	return m
}

// ratio is a/b, 0 if b is 0.
func ratio(a, b float64) float64 {
	if b == 0 {
		return 0
	}
	return a / b
}
