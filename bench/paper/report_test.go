package paper

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"encoding/xml"
	"errors"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/braidlog/braid/internal/testsize"
)

func TestReportJSON(t *testing.T) {
	w := &fakeWorld{figure: steady}
	r, err := Run(t.Context(), fakeExperiment(), Config{Dir: t.TempDir(), Rounds: 2, Command: "braid bench paper fake",
		Open: w.openTarget})
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := WriteJSON(&out, []*Result{r}); err != nil {
		t.Fatal(err)
	}
	var got map[string]any
	if err := json.Unmarshal(out.Bytes(), &got); err != nil {
		t.Fatal(err)
	}
	if keys := slices.Sorted(maps.Keys(got)); !slices.Equal(keys, []string{"claims", "experiment", "machine", "series"}) {
		t.Errorf("keys %v", keys)
	}
	claim := got["claims"].([]any)[0].(map[string]any)
	if keys := slices.Sorted(maps.Keys(claim)); !slices.Equal(keys,
		[]string{"claim", "holds", "measured", "paper", "unit"}) {
		t.Errorf("keys of a claim %v", keys)
	}
	machine := got["machine"].(map[string]any)
	for _, key := range []string{"cores", "cpu", "kernel", "filesystem", "date", "command", "rounds"} {
		if machine[key] == nil {
			t.Errorf("the machine lacks %q: %v", key, machine)
		}
	}
	if got["claims"].([]any)[1].(map[string]any)["measured"] != nil {
		t.Error("what was not measured is not null")
	}
	if n := len(got["series"].([]any)); n != 3 { // a, b and the paper's
		t.Errorf("%d series", n)
	}
	out.Reset()
	if err := WriteJSON(&out, []*Result{r, r}); err != nil || !strings.HasPrefix(out.String(), "[") {
		t.Errorf("several results are no array: %v", err)
	}
}

// The page must have everything, need no other files, and be well-formed; each picture must be valid XML.
func TestReportFiles(t *testing.T) {
	testsize.Long(t)
	dir := t.TempDir()
	var results []*Result
	for _, e := range Experiments() {
		results = append(results, measureAll(e, false))
	}
	results[0].Machine.Command = `braid bench paper --out "<b>"`
	if err := WriteReport(dir, results); err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile(filepath.Join(dir, "index.html"))
	if err != nil {
		t.Fatal(err)
	}
	wellFormed(t, "index.html", page, false)
	for _, c := range []string{"http:", "https:", "<script", "src=", "<b>&#34;", "NaN", "ZgotmplZ"} {
		text := strings.ReplaceAll(string(page), `xmlns="http://www.w3.org/2000/svg"`, "")
		if strings.Contains(text, c) {
			t.Errorf("the page contains %q", c)
		}
	}
	for _, r := range results {
		checkFiles(t, dir, r, page)
	}
}

func checkFiles(t *testing.T, dir string, r *Result, page []byte) {
	t.Helper()
	for _, c := range r.Claims {
		if !bytes.Contains(page, []byte(strings.ReplaceAll(c.Claim, "'", "&#39;"))) {
			t.Errorf("the page lacks the claim %q", c.Claim)
		}
	}
	svg, err := os.ReadFile(filepath.Join(dir, r.Experiment+".svg"))
	if err != nil {
		t.Fatal(err)
	}
	wellFormed(t, r.Experiment+".svg", svg, true)
	for _, p := range r.e.Plots[0].Paper {
		if !bytes.Contains(svg, []byte(p.Name)) {
			t.Errorf("%s.svg lacks %q", r.Experiment, p.Name)
		}
	}
	data, err := os.ReadFile(filepath.Join(dir, r.Experiment+".csv"))
	if err != nil {
		t.Fatal(err)
	}
	rows, err := csv.NewReader(bytes.NewReader(data)).ReadAll()
	if err != nil || len(rows) < 20 {
		t.Errorf("%s.csv: %d rows, %v", r.Experiment, len(rows), err)
	}
}

// wellFormed fails if tags do not match.
func wellFormed(t *testing.T, name string, data []byte, strict bool) {
	t.Helper()
	d := xml.NewDecoder(bytes.NewReader(data))
	d.Strict = strict
	if !strict {
		d.AutoClose, d.Entity = xml.HTMLAutoClose, xml.HTMLEntity
	}
	depth := 0
	for {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		switch token.(type) {
		case xml.StartElement:
			depth++
		case xml.EndElement:
			depth--
		}
	}
	if depth != 0 {
		t.Errorf("%s: %d elements are not closed", name, depth)
	}
}

// A report adds to the results of earlier runs in its directory.
func TestReportKeepsEarlier(t *testing.T) {
	dir := t.TempDir()
	all := Experiments()
	for _, e := range all[:2] {
		if err := WriteReport(dir, []*Result{measureAll(e, true)}); err != nil {
			t.Fatal(err)
		}
	}
	page, err := os.ReadFile(filepath.Join(dir, "index.html"))
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range all[:2] {
		if !bytes.Contains(page, []byte(`id="`+e.Name+`"`)) {
			t.Errorf("the page lacks %s", e.Name)
		}
	}
	if bytes.Contains(page, []byte(`id="`+all[2].Name+`"`)) {
		t.Errorf("the page has %s, which did not run", all[2].Name)
	}
	var last Result
	data, err := os.ReadFile(filepath.Join(dir, "report.json"))
	if err == nil {
		err = json.Unmarshal(data, &last)
	}
	if err != nil || last.Experiment != all[1].Name {
		t.Errorf("report.json is of %q, %v", last.Experiment, err)
	}
	if err := os.WriteFile(filepath.Join(dir, all[0].Name+".json"), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := WriteReport(dir, []*Result{measureAll(all[1], true)}); err == nil ||
		!strings.Contains(err.Error(), "earlier") {
		t.Errorf("a damaged earlier result: error %v", err)
	}
}

func TestAxis(t *testing.T) {
	for _, c := range []struct {
		values []float64
		log    bool
		ticks  []float64
	}{
		{[]float64{3, 97}, false, []float64{0, 20, 40, 60, 80, 100}},
		{[]float64{0.4, 1.9}, false, []float64{0, 0.5, 1, 1.5, 2}},
		{[]float64{1, 9000}, true, []float64{1, 10, 100, 1000, 10000}},
		{[]float64{2, 40}, true, []float64{1, 2, 5, 10, 20}},
	} {
		s := newAxis(c.values, c.log)
		ticks := s.ticks()
		if !slices.EqualFunc(ticks, c.ticks, func(a, b float64) bool { return a > b*0.999-1e-9 && a < b*1.001+1e-9 }) {
			t.Errorf("%v: ticks %v, want %v", c.values, ticks, c.ticks)
		}
		for _, v := range c.values {
			if v < s.lo || v > s.hi {
				t.Errorf("%v is outside of %v – %v", v, s.lo, s.hi)
			}
		}
	}
	for v, want := range map[float64]string{0: "0", 0.5: "0.5", 0.012: "0.012", 12.34: "12.3", 999.6: "1,000",
		1234567: "1,234,567", -4200: "-4,200", 3: "3"} {
		if got := number(v); got != want {
			t.Errorf("number(%v) = %q, want %q", v, got, want)
		}
	}
}

// TestPlotsHideNothing: labels do not touch, a line that another one covers is wider, a paper's only point is drawn at
// its place, and things without an order are not joined.
func TestPlotsHideNothing(t *testing.T) {
	e := &Experiment{Name: "x", XName: "x", Cases: []Case{{Series: "a"}, {Series: "b"}}}
	r := newResult(e, nil, Config{})
	for _, series := range []string{"a", "b"} {
		for _, x := range []float64{1000, 1001, 2000} {
			r.add(&Case{Series: series, X: x}, Sample{Throughput: 1e6 * x})
		}
	}
	r.finish(1)
	lines := Plot{Kind: Lines, Title: "lines", XLabel: "x", Y: Throughput, LogX: true,
		Paper: []Curve{{"paper", "a", []float64{2000}, []float64{1e9}}}}
	svg := lines.SVG(r)
	for text, count := range map[string]int{
		">1,000<": 1, ">1,001<": 0, ">2,000<": 1, // the first two are at nearly the same place
		"stroke-width:6.2": 1, // of a, which b covers
		`class="hollow"`:   2, // in the legend, and the point
	} {
		if got := strings.Count(svg, text); got != count {
			t.Errorf("%q is there %d times, want %d:\n%s", text, got, count, svg)
		}
	}
	if !strings.Contains(svg, `<text x="116.5" y="68.0" class="soft" text-anchor="end">2,000,000,000<`) { // from 32 on
		t.Errorf("the ticks' labels have no place of their own:\n%s", svg)
	}
	points := Plot{Kind: Points, Title: "points", XLabel: "x", Names: []string{"one"}, Y: Throughput}
	r.add(&Case{Series: "a", X: 1}, Sample{Throughput: 1})
	r.finish(1)
	svg = points.SVG(r)
	if strings.Contains(svg, "<path") || !strings.Contains(svg, ">one<") {
		t.Errorf("points are joined, or have no names:\n%s", svg)
	}
}
