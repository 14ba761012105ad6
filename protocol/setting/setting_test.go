package setting_test

import (
	"bytes"
	"encoding/gob"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/braidlog/braid/protocol/setting"
)

// span is a value with parts.
type span struct{ Least, Most int }

var (
	groups = &setting.Setting[int]{
		Name: "groups", Check: setting.Range(0, 64), Change: setting.Local, Detour: true, Help: "how many groups",
		Draw: func(below func(int) int, own int) int { return below(own + 2) },
	}
	lease   = &setting.Setting[bool]{Name: "lease-reads", Agree: true, Change: setting.Timed, Help: "leases"}
	timeout = &setting.Setting[time.Duration]{Name: "timeout", Default: time.Second, Agree: true,
		Check: setting.AtLeast(10 * time.Millisecond), Help: "time"}
	policy = &setting.Setting[string]{Name: "policy", Default: "both", Agree: true, Untold: true, Experiment: true}
	slots  = &setting.Setting[span]{
		Name: "slots", Default: span{8, 64}, Agree: true, Text: &setting.Text[span]{Name: "numbers", Parse: parseSpan,
			Format: formatSpan},
		Fill: func(s span) span {
			if s == (span{}) {
				return span{8, 64}
			}
			return s
		},
		Check: setting.Check[span]{Refuse: func(s span) error {
			if s.Least > s.Most {
				return errors.New("more than the most")
			}
			return nil
		}},
		Parts: []setting.Part[span]{
			{Name: "least-slots", Default: "8", Text: "int", Help: "least", Get: func(s span) string { return number(s.Least) },
				Set: func(s *span, text string) error { return json.Unmarshal([]byte(text), &s.Least) }},
			{Name: "most-slots", Default: "64", Text: "int", Help: "most", Get: func(s span) string { return number(s.Most) },
				Set: func(s *span, text string) error { return json.Unmarshal([]byte(text), &s.Most) }},
		},
	}
	table = setting.Table{Rows: []setting.Any{groups, lease, timeout, policy, slots}}
)

func number(n int) string {
	b, _ := json.Marshal(n)
	return string(b)
}

func parseSpan(text string) (s span, err error) {
	least, most, _ := strings.Cut(text, "-")
	return s, errors.Join(json.Unmarshal([]byte(least), &s.Least), json.Unmarshal([]byte(most), &s.Most))
}

func formatSpan(s span) string { return number(s.Least) + "-" + number(s.Most) }

func parse(t *testing.T, texts ...string) setting.Values {
	t.Helper()
	v, err := setting.Parse(texts...)
	require.NoError(t, err)
	return v
}

// Values that mean the same are equal: defaults are omitted, and texts are normal.
func TestValuesAreInNormalForm(t *testing.T) {
	v, err := table.Complete(parse(t, "timeout=1000ms", "groups=03", "lease-reads=1", "slots=8-64"))
	require.NoError(t, err)
	require.Equal(t, "groups=3 lease-reads=true", v.String())
	w := groups.Set(lease.Set(timeout.Set(setting.Values{}, time.Second), true), 3)
	require.Equal(t, v, w)
	require.True(t, v == w)
	require.Equal(t, 3, groups.In(v))
	require.Equal(t, time.Second, timeout.In(v))
	require.True(t, groups.Set(lease.Set(v, false), 0).IsZero())
	require.Equal(t, "groups=1 lease-reads=true", parse(t, "groups=1").Over(v).String())
	require.Equal(t, "groups=3", setting.Table{Rows: []setting.Any{groups}}.Only(v).String())
}

func TestWhatIsRefused(t *testing.T) {
	for text, why := range map[string]string{
		"groups=65": "groups 65: not in 0…64", "groups=x": "groups x: not a number",
		"lease-reads=y": "lease-reads y: neither true nor false",
		"timeout=1ms":   "timeout 1ms: not at least 10ms", "timeout=7": "timeout 7: not a duration such as 1s or 250ms",
		"x=1": "x 1: there is no such setting", "slots=9-8": "slots 9-8: more than the most",
	} {
		_, err := table.Complete(parse(t, text))
		var wrong *setting.Error
		require.ErrorAs(t, err, &wrong, text)
		require.EqualError(t, err, why)
	}
	fit := errors.New("no group without a lease")
	fitted := setting.Table{Rows: table.Rows, Fit: func(v setting.Values) error {
		if groups.In(v) > 0 && !lease.In(v) {
			return fit
		}
		return nil
	}}
	_, err := fitted.Complete(parse(t, "groups=1"))
	require.ErrorIs(t, err, fit)
	for _, text := range []string{"x", "=1", "a=b\nc=d"} {
		_, err := setting.Parse(text)
		require.Error(t, err, "%q", text)
	}
}

// Members compare all settings with Agree, except for defaults that earlier versions do not know.
func TestAgreed(t *testing.T) {
	require.Equal(t, [][2]string{{"lease-reads", "false"}, {"timeout", "1s"}, {"slots", "8-64"}},
		table.Agreed(setting.Values{}))
	require.Equal(t, [][2]string{{"lease-reads", "false"}, {"timeout", "1s"}, {"policy", "one"}, {"slots", "8-64"}},
		table.Agreed(parse(t, "groups=2", "policy=one")))
}

func TestFlags(t *testing.T) {
	var v setting.Values
	flags := map[string]*setting.Flag{}
	for _, f := range table.Flags(&v, true) {
		flags[f.Name] = &f
	}
	require.Len(t, table.Flags(&v, false), len(flags)-1, "policy is an experiment's")
	require.Equal(t, "0", flags["groups"].String())
	require.Equal(t, "time (default 1s)", flags["timeout"].Usage)
	require.True(t, flags["lease-reads"].IsBoolFlag())
	for name, text := range map[string]string{"groups": "2", "lease-reads": "true", "most-slots": "16", "policy": "",
		"timeout": "2s"} {
		require.NoError(t, flags[name].Set(text), name)
	}
	require.Equal(t, "groups=2 lease-reads=true slots=8-16 timeout=2s", v.String())
	require.Equal(t, "16", flags["most-slots"].String())
	require.Equal(t, []string{"--groups=2", "--lease-reads=true", "--timeout=2s", "--most-slots=16"}, table.Args(v))
	require.NoError(t, flags["timeout"].Set(""))
	require.NoError(t, flags["groups"].Set("0"))
	require.Equal(t, "lease-reads=true slots=8-16", v.String())
	require.Error(t, flags["groups"].Set("x"))
}

func TestFieldsOfAStruct(t *testing.T) {
	type options struct {
		Groups int    `setting:"groups"`
		Policy string `setting:"policy"`
		Slots  span   `setting:"slots"`
		Wait   string `setting:"timeout"`
		Other  int
	}
	v, err := table.Of(options{Groups: 2, Slots: span{1, 2}, Wait: "2s", Other: 5})
	require.NoError(t, err)
	require.Equal(t, "groups=2 slots=1-2 timeout=2s", v.String())
	v, err = table.Of(options{})
	require.NoError(t, err)
	require.True(t, v.IsZero())
	_, err = table.Of(options{Groups: 99})
	require.EqualError(t, err, "groups 99: not in 0…64")
	_, err = table.Of(struct {
		X int `setting:"x"`
	}{})
	require.ErrorContains(t, err, "does not exist")
}

func TestJSON(t *testing.T) {
	v := parse(t, "groups=2", "lease-reads=true", "policy=4/2")
	data, err := json.Marshal(v)
	require.NoError(t, err)
	require.Equal(t, `{"groups":2,"lease_reads":true,"policy":"4/2"}`, string(data))
	var back setting.Values
	require.NoError(t, json.Unmarshal(data, &back))
	require.Equal(t, v, back)
	require.Error(t, json.Unmarshal([]byte(`{"groups":[2]}`), &back))
	for object, want := range map[string]string{`{}`: `{"groups":2}`, `{"a":1}`: `{"a":1,"groups":2}`} {
		flat, err := parse(t, "groups=2").Flat([]byte(object))
		require.NoError(t, err)
		require.Equal(t, want, string(flat))
	}
	_, err = v.Flat([]byte(`[]`))
	require.Error(t, err)
}

// A simulated member gets another value if the cluster has one that is not the default.
func TestDraw(t *testing.T) {
	asked := []int{}
	below := func(n int) int { asked = append(asked, n); return n - 1 }
	require.Equal(t, "groups=3", table.Draw(below, parse(t, "groups=2")).String())
	require.True(t, table.Draw(below, setting.Values{}).IsZero())
	require.Equal(t, []int{4}, asked)
	require.Equal(t, []string{"groups"}, table.Detours(parse(t, "groups=2", "policy=x")))
}

// TestTextsInJSON: a text that looks like a number and would not be one in JSON remains a text.
func TestTextsInJSON(t *testing.T) {
	v := setting.MustParse("a=7", "b=007", "c=+7", "d=true", "e=-7")
	data, err := json.Marshal(v)
	require.NoError(t, err)
	require.Equal(t, `{"a":7,"b":"007","c":"+7","d":true,"e":-7}`, string(data))
	var back setting.Values
	require.NoError(t, json.Unmarshal(data, &back))
	require.Equal(t, v, back)
}

func TestGob(t *testing.T) {
	for _, v := range []setting.Values{{}, setting.MustParse("relays=3"),
		setting.MustParse("quorums=grid:2", "epochs=slots 1-2, shares equal")} {
		var b bytes.Buffer
		var read setting.Values
		require.NoError(t, gob.NewEncoder(&b).Encode(struct{ Settings setting.Values }{v}))
		require.NoError(t, gob.NewDecoder(&b).Decode(&struct{ Settings *setting.Values }{&read}))
		require.Equal(t, v, read)
	}
	var wrong *setting.Error
	require.ErrorAs(t, new(setting.Values).UnmarshalBinary([]byte("relays")), &wrong)
}
