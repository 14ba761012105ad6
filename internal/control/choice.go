package control

import (
	"context"
	"net/http"
	"slices"
	"sync"
	"time"
)

const (
	// probeTimeout bounds the time for choosing a member.
	probeTimeout = 500 * time.Millisecond
	// readyTimeout bounds the part of it in which a member may say that it is ready.
	readyTimeout = 300 * time.Millisecond
	// probeAge is how long a choice is used again.
	probeAge = 200 * time.Millisecond
)

// health orders members by their answers, the best last.
type health int

const (
	silent  health = iota
	answers        // and is not ready
	ready
)

// choice finds the member that gets requests. It stays with one while that is ready.
type choice struct {
	client *http.Client

	mu     sync.Mutex
	asked  []string // the URLs among which was chosen last
	chosen []string // they, the best first
	at     time.Time
}

// among returns URLs of members with the best first, within probeTimeout.
func (c *choice) among(ctx context.Context, urls []string) []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	if slices.Equal(urls, c.asked) && time.Since(c.at) < probeAge {
		return c.chosen
	}
	ranks := c.probe(ctx, urls)
	ordered := slices.Clone(urls)
	slices.SortStableFunc(ordered, func(a, b string) int {
		switch {
		case ranks[a] != ranks[b]:
			return int(ranks[b] - ranks[a])
		case c.best() == a:
			return -1
		case c.best() == b:
			return 1
		}
		return 0
	})
	if ctx.Err() == nil {
		c.asked, c.chosen, c.at = slices.Clone(urls), ordered, time.Now()
	}
	return ordered
}

// best is the member that was chosen last; "": none.
func (c *choice) best() string {
	if len(c.chosen) == 0 {
		return ""
	}
	return c.chosen[0]
}

// probe asks members whether they are ready. It returns as soon as the last choice is.
func (c *choice) probe(ctx context.Context, urls []string) map[string]health {
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	type result struct {
		url string
		h   health
	}
	results := make(chan result, len(urls))
	for _, url := range urls {
		go func() { results <- result{url, c.ask(ctx, url)} }()
	}
	ranks := map[string]health{}
	for range urls {
		r := <-results
		if ranks[r.url] = r.h; r.url == c.best() && r.h == ready {
			break
		}
	}
	return ranks
}

// ask asks a member. /readyz of one without a leader may take longer than readyTimeout; /livez answers at once.
func (c *choice) ask(ctx context.Context, url string) health {
	within, cancel := context.WithTimeout(ctx, readyTimeout)
	defer cancel()
	status, err := c.get(within, url+"/readyz")
	switch {
	case err == nil && status == http.StatusOK:
		return ready
	case err != nil:
		_, err = c.get(ctx, url+"/livez")
	}
	if err != nil {
		return silent
	}
	return answers
}

func (c *choice) get(ctx context.Context, url string) (status int, err error) {
	q, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return 0, err
	}
	a, err := c.client.Do(q)
	if err != nil {
		return 0, err
	}
	return a.StatusCode, a.Body.Close()
}
