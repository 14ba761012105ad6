package paper

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/braidlog/braid"
	"github.com/braidlog/braid/protocol/common"
)

// Mark is an event on a timeline: the begin of a phase, or a change that a cluster made.
type Mark struct {
	Series string  `json:"series,omitempty"` // empty: all
	Part   string  `json:"part"`             // that shows the timeline
	X      float64 `json:"x"`                // seconds
	Text   string  `json:"text"`
	Why    string  `json:"why,omitempty"`   // the fitter's reason, if it made the change
	Run    int     `json:"run,omitempty"`   // number of the run, from 1 on; 0: all
	Phase  bool    `json:"phase,omitempty"` // the begin of a phase, and no change
}

// changeWatch notes when a cluster changes its profile, or the member that leads.
type changeWatch struct {
	t     *braidTarget
	began time.Time
	quit  chan struct{}
	done  chan []Mark
}

const (
	// changeInterval is the resolution of a changeWatch.
	changeInterval = 50 * time.Millisecond
	// settlesWithin is the time after a change of the profile within which another leader belongs to it.
	settlesWithin = 3 * time.Second
)

// watchChanges begins to watch. Times count from began.
func watchChanges(t *braidTarget, began time.Time) *changeWatch {
	w := &changeWatch{t: t, began: began, quit: make(chan struct{}), done: make(chan []Mark, 1)}
	go w.run()
	return w
}

// stop returns the changes in the order of their times.
func (w *changeWatch) stop() []Mark {
	close(w.quit)
	return <-w.done
}

func (w *changeWatch) run() {
	tick := time.NewTicker(changeInterval)
	defer tick.Stop()
	var marks []Mark
	var wish lastWish
	last := w.t.members[0].node.Status()
	settled := time.Duration(0)
	for {
		select {
		case <-w.quit:
			w.done <- marks
			return
		case <-tick.C:
		}
		now, at := w.t.members[0].node.Status(), time.Since(w.began)
		wish.see(&now, at)
		text := changeOfProfile(&last, &now)
		switch {
		case text != "":
			settled = at + settlesWithin
		case at > settled:
			text = changeOfLeader(&last, &now)
		}
		if text != "" {
			marks = append(marks, Mark{X: at.Seconds(), Text: text, Why: wish.reason(at)})
		}
		now.Lead.Leader = cmp.Or(now.Lead.Leader, last.Lead.Leader)
		last = now
	}
}

// lastWish is the newest wish of a fitter that was seen, and when.
type lastWish struct {
	text string
	at   time.Duration
}

// see takes in a status at a time.
func (l *lastWish) see(s *braid.Status, at time.Duration) {
	if w := s.Fit.Wish; w != nil {
		l.text, l.at = fmt.Sprintf("%s (%.2f times as much)", w.Reason, w.Gain), at
	}
}

// reason is the reason of a change at a time: that of the last wish, unless it is long ago.
func (l *lastWish) reason(at time.Duration) string {
	if at > l.at+settlesWithin {
		return ""
	}
	return l.text
}

// changeOfProfile describes what changed between two statuses; "": nothing but the notes of the fitter.
func changeOfProfile(before, after *braid.Status) string {
	if before.Protocol != after.Protocol {
		return after.Protocol
	}
	if before.Profile.Version == after.Profile.Version {
		return ""
	}
	var set []string
	for _, name := range slices.Sorted(maps.Keys(after.Profile.Settings)) {
		value := after.Profile.Settings[name]
		if old, had := before.Profile.Settings[name]; had && old != value && name != common.FitAvoid.Name {
			set = append(set, name+"="+value)
		}
	}
	return strings.Join(set, " ")
}

// changeOfLeader names the member that leads in place of another one; "": none does, or each member leads a part.
func changeOfLeader(before, after *braid.Status) string {
	from, to := before.Lead.Leader, after.Lead.Leader
	if from == to || from == 0 || to == 0 || len(after.Instances) > 1 || after.Protocol == seriesISS {
		return ""
	}
	for _, m := range after.Members {
		if m.ID == to {
			return "leader " + m.Name
		}
	}
	return fmt.Sprintf("leader %s", to)
}
