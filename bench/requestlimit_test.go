package bench

import (
	"context"
	"errors"
	"testing"
	"time"
)

func TestPatience(t *testing.T) {
	p := requestLimit{parent: context.Background(), limit: 200 * time.Millisecond}
	defer p.end()
	base := time.Now()
	now := func() int64 { return int64(time.Since(base)) }
	if err := p.explain(p.at(now()).Err()); err != nil {
		t.Fatal(err)
	}
	// Requests that are answered keep the context alive, however many they are.
	for time.Since(base) < 500*time.Millisecond {
		if err := p.at(now()).Err(); err != nil {
			t.Fatalf("a request began with an ended context: %v", err)
		}
		<-time.After(time.Millisecond)
	}
	// One that is not answered ends.
	began := time.Now()
	ctx := p.at(now())
	<-ctx.Done()
	if took := time.Since(began); took > 50*p.limit {
		t.Errorf("a request ended after %v, the limit is %v", took, p.limit)
	}
	if err := p.explain(ctx.Err()); !errors.Is(err, errLate) {
		t.Errorf("the error is %v", err)
	}
	// And the next one has a new context.
	if err := p.at(now()).Err(); err != nil {
		t.Errorf("the next request: %v", err)
	}
}
