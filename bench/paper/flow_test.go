package paper

import (
	"testing"
	"time"
)

// TestFlowSendsWhatIsDue: a command is sent when it is due, and not an interval later.
func TestFlowSendsWhatIsDue(t *testing.T) {
	p := flowPace{interval: float64(10 * time.Millisecond), offset: float64(4 * time.Millisecond)}
	if n := p.due(3 * time.Millisecond); n != 0 {
		t.Errorf("%d commands are due before the first one is", n)
	}
	for k := range int64(100) {
		if n := p.due(p.at(k)); n != k+1 {
			t.Errorf("when command %d is due, %d are", k, n)
		}
		if n := p.due(p.at(k+1) - 1); n != k+1 {
			t.Errorf("just before command %d is due, %d are", k+1, n)
		}
	}
}
