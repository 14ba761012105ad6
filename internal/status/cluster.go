package status

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"
)

// Event is something that happened to a member.
type Event struct {
	Member string    `json:"member"` // its name, or its id
	At     time.Time `json:"at"`
	Level  string    `json:"level"` // info, warn or error
	Kind   string    `json:"kind"`
	Text   string    `json:"text"`
}

// Rates are what a member did in the last ten seconds, per second. Quantiles are the largest of a second.
type Rates struct {
	Writes   float64 `json:"writes"`
	Reads    float64 `json:"reads"`
	Failed   float64 `json:"failed"`
	WriteP99 float64 `json:"write_p99_ms"`
	ReadP99  float64 `json:"read_p99_ms"`
	Sent     float64 `json:"sent_bytes"`
	Received float64 `json:"received_bytes"`
	CPU      float64 `json:"cpu_cores"`
	Memory   float64 `json:"memory_bytes"`
}

// answers is what a member reports of all members.
type answers struct {
	Members []struct {
		ID      string                `json:"id"`
		Name    string                `json:"name"`
		Reached bool                  `json:"reached"`
		Samples map[string][]*float64 `json:"samples"`
		Events  []struct {
			At    int64  `json:"at"`
			Level string `json:"level"`
			Kind  string `json:"kind"`
			Text  string `json:"text"`
		} `json:"events"`
	} `json:"members"`
}

// Events asks the endpoints, one after the other, for the events of all members, and returns those of the first that
// answers, oldest first.
func Events(ctx context.Context, o Options) ([]Event, error) {
	a := asker{options: &o}
	var failed error
	for _, endpoint := range o.Endpoints {
		t, err := a.cluster(ctx, endpoint)
		if err != nil {
			failed = errors.Join(failed, fmt.Errorf("%s: %w", endpoint, err))
			continue
		}
		return t.events(), nil
	}
	return nil, failed
}

func (t *answers) events() (out []Event) {
	for _, m := range t.Members {
		for _, e := range m.Events {
			out = append(out, Event{cmp.Or(m.Name, m.ID), time.UnixMilli(e.At).UTC(), e.Level, e.Kind, e.Text})
		}
	}
	slices.SortStableFunc(out, func(x, y Event) int { return x.At.Compare(y.At) })
	return out
}

// cluster asks a member for its report of all members.
func (a *asker) cluster(ctx context.Context, endpoint string) (t answers, err error) {
	ctx, cancel := context.WithTimeout(ctx, a.options.Timeout)
	defer cancel()
	body, err := a.get(ctx, endpoint, "/braid/cluster")
	if errors.Is(err, errNotBraid) {
		return t, errors.New("it keeps no history")
	}
	if err != nil {
		return t, err
	}
	defer body.Close()
	if err := json.NewDecoder(body).Decode(&t); err != nil {
		return t, fmt.Errorf("/braid/cluster: %w", err)
	}
	return t, nil
}

// addRates adds the rates of the members that answered, as reported by the first of those that can.
func (a *asker) addRates(ctx context.Context, members []Member) {
	for i := range members {
		if members[i].Kind != "braid" || members[i].Braid == "" {
			continue
		}
		t, err := a.cluster(ctx, members[i].Endpoint)
		if err != nil {
			continue
		}
		for _, of := range t.Members {
			for j := range members {
				if members[j].ID == of.ID && of.Reached {
					members[j].Rates = rates(of.Samples)
				}
			}
		}
		return
	}
}

// ratesOver is how many samples, of a second each, rates are of.
const ratesOver = 10

// rates are the means of the newest samples; nil: there are none.
func rates(samples map[string][]*float64) *Rates {
	newest := func(name string) (out []float64) {
		column := samples[name]
		for _, v := range column[max(0, len(column)-ratesOver):] {
			if v != nil {
				out = append(out, *v)
			}
		}
		return out
	}
	mean := func(name string) (sum float64) {
		values := newest(name)
		for _, v := range values {
			sum += v / float64(len(values))
		}
		return sum
	}
	largest := func(name string) float64 { return slices.Max(append(newest(name), 0)) }
	if len(newest("t")) == 0 {
		return nil
	}
	return &Rates{
		Writes: mean("writes"), Reads: mean("reads"), Failed: mean("failed"), WriteP99: largest("write_p99_ms"),
		ReadP99: largest("read_p99_ms"), Sent: mean("sent_bytes"), Received: mean("received_bytes"),
		CPU: mean("cpu_cores"), Memory: mean("memory_bytes"),
	}
}

// nameMissing gives the members that do not answer their names, as those that answer know them, and adds the ones that
// have not started: they have sent no client URL.
func nameMissing(members []Member, only bool) []Member {
	known := map[string]bool{}
	for _, m := range members {
		known[m.ID] = true
	}
	for _, m := range slices.Clone(members) {
		for _, p := range m.Members {
			for i := range members {
				if members[i].ID == "" && serves(&p, members[i].Endpoint) {
					members[i].Name = cmp.Or(members[i].Name, p.Name)
				}
			}
			if len(p.ClientURLs) == 0 && !known[p.ID] && !only && len(p.PeerURLs) > 0 {
				known[p.ID] = true
				members = append(members, Member{Endpoint: p.PeerURLs[0], Name: p.Name,
					Error: fmt.Sprintf("member %s was added and has not started (%s)", p.ID, p.Role)})
			}
		}
	}
	return members
}

// serves reports whether an endpoint is one of a member's.
func serves(p *Peer, endpoint string) bool {
	return slices.ContainsFunc(p.ClientURLs, func(u string) bool { return address(u) == address(endpoint) })
}
