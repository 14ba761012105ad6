package paper

import (
	"math"
	"strings"
	"testing"
)

// madeUpDay is a result with these figures of each contestant and phase: throughputs from the begin on are nine tenths
// of those that count, and each phase has as many changes as its number.
func madeUpDay(e *Experiment, figures map[string][]float64) *Result {
	r := newResult(e, nil, Config{})
	for series, phases := range figures {
		c := &Case{Series: series, Part: byDay, X: 1, Work: Work{Day: &Day{Part: bySecondOfDay}}}
		r.add(c, Sample{Throughput: phases[0] + phases[1], Wrong: 0})
		for i, v := range phases {
			r.addMoments(c, []Moment{{float64(i + 1), "", Sample{Throughput: v, FromBegin: 0.9 * v, Changes: float64(i)}}})
		}
		r.addMarks(c, []Mark{{X: 1, Text: "1: a", Part: bySecondOfDay, Phase: true}, {X: 2, Text: "craft",
			Why: "much is waiting"}})
	}
	r.finish(1)
	return r
}

func TestFitClaims(t *testing.T) {
	e := &Experiment{XName: byPhase, Claims: append(fittedClaims(2), fitClaims(2)...),
		Cases: []Case{{Series: seriesFit}, {Series: seriesRaft}, {Series: seriesISS}}}
	r := madeUpDay(e, map[string][]float64{seriesFit: {95, 380}, seriesRaft: {100, 100}, seriesISS: {25, 400}})
	for i, want := range []float64{0.95, math.Sqrt(95*380) / 100, 475. / 425, 1, 2, 0} {
		c := &r.Claims[i]
		if c.Measured == nil || math.Abs(*c.Measured-want) > 1e-9 || !c.passes {
			t.Errorf("claim %+v: %s, want %v", c, withUnit(c.Measured, ""), want)
		}
	}
	if len(r.Marks) != 4 { // that of the phase once
		t.Errorf("marks %v", r.Marks)
	}
	e.Claims = otherClaims(2)
	r = madeUpDay(e, map[string][]float64{seriesFit: {50, 380}, seriesRaft: {100, 100}, seriesISS: {25, 400}})
	if c := r.Claims[0]; c.Measured == nil || *c.Measured != 0.5 || c.passes {
		t.Errorf("claim %+v", c)
	}
	r = madeUpDay(e, map[string][]float64{seriesRaft: {100, 100}})
	for _, c := range r.Claims {
		if c.Measured != nil {
			t.Errorf("claim %q about what was not measured: %v", c.Claim, *c.Measured)
		}
	}
}

// The timeline shows the begins of phases, and the changes with their texts.
func TestTimelineMarks(t *testing.T) {
	e := &Experiment{XName: byPhase, Cases: []Case{{Series: seriesFit}, {Series: seriesRaft}}}
	r := madeUpDay(e, map[string][]float64{seriesFit: {50, 380}, seriesRaft: {100, 100}})
	c := &Case{Series: seriesFit}
	for x := range 4 {
		r.addMoments(c, []Moment{{float64(x), bySecondOfDay, Sample{Throughput: float64(10 + x)}}})
	}
	r.finish(1)
	var text strings.Builder
	r.WriteText(&text)
	for _, want := range []string{"phase 1: a\n", "fit on, 2 s: craft: much is waiting\n", "raft, 2 s: craft: much",
		"fit on   50  380"} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("%q is not in\n%s", want, &text)
		}
	}
	svg := dayPlots()[0].SVG(r)
	wellFormed(t, "timeline", []byte(svg), true)
	for _, want := range []string{"<title>1: a</title>", "<title>fit on, 2 s: craft: much is waiting</title>",
		">craft</text>", "<title>raft, 2 s: craft: much"} {
		if !strings.Contains(svg, want) {
			t.Errorf("the picture lacks %s", want)
		}
	}
}
