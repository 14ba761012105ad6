package main

import (
	"encoding/json"
	"net"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	grpcstatus "google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/braidlog/braid"
	"github.com/braidlog/braid/internal/status"
)

// switchable is a member that answers questions about a switch.
type switchable struct {
	endpoint string

	mu      sync.Mutex
	asked   []string // the methods
	to      braid.Switch
	answers map[string]any // of each method: an error, or what is sent as JSON
}

func startSwitchable(t *testing.T, answers map[string]any) *switchable {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	m := &switchable{endpoint: listener.Addr().String(), answers: answers}
	s := grpc.NewServer(grpc.UnknownServiceHandler(func(_ any, stream grpc.ServerStream) error {
		name, _ := grpc.MethodFromServerStream(stream)
		q := new(structpb.Struct)
		if err := stream.RecvMsg(q); err != nil {
			return err
		}
		answer, err := m.answer(strings.TrimPrefix(name, "/braid.Admin/"), q)
		if err != nil {
			return err
		}
		return stream.SendMsg(answer)
	}))
	go s.Serve(listener)
	t.Cleanup(s.Stop)
	return m
}

func (m *switchable) answer(method string, q *structpb.Struct) (*structpb.Struct, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.asked = append(m.asked, method)
	b, err := protojson.Marshal(q)
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal(b, &m.to); err != nil {
		return nil, err
	}
	answer := new(structpb.Struct)
	switch a := m.answers[method].(type) {
	case error:
		return nil, a
	default:
		if b, err = json.Marshal(a); err == nil {
			err = protojson.Unmarshal(b, answer)
		}
	}
	return answer, err
}

var (
	toISS = braid.SwitchPlan{Version: 2, Tune: map[string]string{"lanes": "false"}, Seal: 4, Protocol: "iss",
		Instances: 1,
		Settings:  map[string]string{"relays": "2", "quorums": "majority"}}
	isISS = braid.Profile{Version: 4, Protocol: "iss", Settings: map[string]string{"relays": "2"}}
)

func TestSwitchCommand(t *testing.T) {
	no := grpcstatus.Error(codes.InvalidArgument, "braid: switch: relays: 99: not in 0…64")
	done := grpcstatus.Error(codes.Aborted, "braid: switch: profile 4 is active, and not 2")
	for _, c := range []struct {
		args                   string
		answers                map[string]any
		stdout, stderr, called string
	}{
		{"", map[string]any{"PlanSwitch": toISS, "Switch": isISS}, "the protocol is iss, profile 4\n",
			"braid switch: to do: tune lanes=false\nbraid switch: to do: seal the log, and begin iss under profile 4\n",
			"PlanSwitch Switch"},
		{"--json", map[string]any{"PlanSwitch": toISS, "Switch": isISS},
			`{"version":4,"protocol":"iss","settings":{"relays":"2"}}` + "\n", "", "PlanSwitch Switch"},
		{"--dry-run", map[string]any{"PlanSwitch": toISS}, "profile 2 is replaced:\n1. tune lanes=false\n" +
			"2. seal the log, and begin iss under profile 4\n" +
			"then the protocol is iss, with quorums=majority relays=2\n", "",
			"PlanSwitch"},
		{"--dry-run --json", map[string]any{"PlanSwitch": toISS}, `{"version":2,"tune":{"lanes":"false"},"seal":4,` +
			`"protocol":"iss","instances":1,"settings":{"quorums":"majority","relays":"2"}}` + "\n", "", "PlanSwitch"},
		{"--dry-run", map[string]any{"PlanSwitch": braid.SwitchPlan{Version: 4, Protocol: "iss"}},
			"nothing to do: the protocol is iss, profile 4\n", "", "PlanSwitch"},
		{"", map[string]any{"PlanSwitch": done, "Switch": isISS}, "the protocol is iss, profile 4\n", "",
			"PlanSwitch Switch"},
		{"", map[string]any{"PlanSwitch": done, "Switch": done}, "",
			"braid switch: profile 4 is active, and not 2\n", "PlanSwitch Switch"},
		{"", map[string]any{"PlanSwitch": no}, "", "braid switch: relays: 99: not in 0…64\n", "PlanSwitch"},
		{"--dry-run", map[string]any{"PlanSwitch": no}, "", "braid switch: relays: 99: not in 0…64\n", "PlanSwitch"},
	} {
		m := startSwitchable(t, c.answers)
		args := append([]string{"switch", "iss", "relays=2", "quorums=", "--version=2", "--endpoints=" + m.endpoint},
			strings.Fields(c.args)...)
		stdout, stderr, code := call(args...)
		require.Equal(t, c.stdout, stdout, c.args)
		require.Equal(t, c.stderr, stderr, c.args)
		require.Equal(t, c.stdout == "", code == exitFailed)
		m.mu.Lock()
		require.Equal(t, c.called, strings.Join(m.asked, " "))
		require.Equal(t, braid.Switch{Protocol: "iss", Version: 2,
			Settings: map[string]string{"relays": "2", "quorums": ""}}, m.to)
		m.mu.Unlock()
	}
}

func TestWhatIsUnderWayOfASwitch(t *testing.T) {
	member := func(name string, profile uint64, protocol, leader string) status.Member {
		return status.Member{Name: name, ID: name, Profile: profile, Protocol: protocol,
			Instances: []status.Instance{{Instance: 1, Leader: leader}}}
	}
	away := status.Member{Endpoint: "10.0.0.3:2379", Error: "refused"}
	tune := braid.SwitchPlan{Version: 2, Tune: map[string]string{"placement": "code"}, Protocol: "craft", Instances: 1}
	fenced := member("m1", 2, "lcr", "m1")
	fenced.Instances[0].Lanes = &status.Lanes{Fence: true}
	for _, c := range []struct {
		want    string
		plan    *braid.SwitchPlan
		members []status.Member
	}{
		{"waits for a member that answers", nil, []status.Member{away}},
		{"waits for a member that answers", &toISS, []status.Member{away}},
		{"waits for a leader", nil, []status.Member{member("m1", 2, "lcr", "")}},
		{"waits for m2 to apply profile 3", &tune, []status.Member{member("m1", 3, "craft", "m1"),
			member("m2", 2, "raft", "m1")}},
		{"tunes lanes=false; waits for a fence: members replicate first what lanes have accepted", &toISS,
			[]status.Member{fenced}},
		{"seals the log under profile 3; waits for the leader", &toISS, []status.Member{member("m1", 3, "raft", "m1")}},
		{"m2 has profile 4 (iss), m1 has profile 3 (raft), 10.0.0.3:2379 does not answer; " +
			"waits for m1 to apply profile 4",
			&toISS, []status.Member{member("m1", 3, "raft", "m1"), member("m2", 4, "iss", "m1"), away}},
		{"m1 has profile 4 (iss); waits for a leader", &toISS, []status.Member{member("m1", 4, "iss", "")}},
	} {
		require.Equal(t, c.want, switchWaits(c.members, c.plan))
	}
}
