package netspec

import (
	"errors"
	"fmt"
	"strings"
	"testing"
)

func parse(t *testing.T, text string) Spec {
	t.Helper()
	s, err := Parse(text)
	if err != nil {
		t.Fatalf("%q: %v", text, err)
	}
	return s
}

// TestEqualLinks: a specification without pairs is about all links.
func TestEqualLinks(t *testing.T) {
	for text, want := range map[string]struct {
		Link
		Cards
	}{
		"":            {},
		" ":           {},
		"latency=5ms": {Link: Link{Latency: 5 * ms}},
		"rtt=5ms":     {Link: Link{Latency: 5 * ms / 2}},
		"latency=5ms,jitter=0.1ms,bandwidth=250mbit,loss=0.1%,nics=2": {Link{5 * ms, ms / 10, 0.1}, Cards{250e6, 2}},
		"latency=5ms; jitter=0.1ms\n # cards\nnics=2":                 {Link{5 * ms, ms / 10, 0}, Cards{0, 2}},
		" egress = 1.5gbit , loss=0":                                  {Cards: Cards{Egress: 15e8}},
		"bandwidth=10MB/s":                                            {Cards: Cards{Egress: 80e6}},
		"bandwidth=100kbitps":                                         {Cards: Cards{Egress: 100e3}},
		"bandwidth=1GB/s,nics=3":                                      {Cards: Cards{8e9, 3}},
		"bandwidth=1001bit":                                           {Cards: Cards{Egress: 1001}},
		"egress=2000B/s":                                              {Cards: Cards{Egress: 16e3}},
	} {
		s := parse(t, text)
		for _, s := range []Spec{s, parse(t, s.String())} {
			if l, c := s.Link("m1", "m2"), s.Cards("m1"); l != want.Link || c != want.Cards {
				t.Errorf("%q: got %+v, %+v", text, l, c)
			}
			if shapes := want.Link != (Link{}) || want.Egress > 0; s.Enabled() != shapes {
				t.Errorf("%q: enabled %v", text, s.Enabled())
			}
		}
	}
}

// TestPairs: what differs between members, by number, name and region.
func TestPairs(t *testing.T) {
	for _, c := range []struct {
		text, from, to string
		want           Link
	}{
		{"latency=1ms;1~2:latency=40ms", "m1", "m2", Link{Latency: 40 * ms}},
		{"latency=1ms;1~2:latency=40ms", "m2", "m1", Link{Latency: 40 * ms}},
		{"latency=1ms;1~2:latency=40ms", "m1", "m3", Link{Latency: ms}},
		{"latency=1ms;1>2:latency=40ms", "m1", "m2", Link{Latency: 40 * ms}},
		{"latency=1ms;1>2:latency=40ms", "m2", "m1", Link{Latency: ms}},
		{"latency=1ms,loss=2%;1~2:rtt=80ms,jitter=3ms", "node-02", "etcd1", Link{40 * ms, 3 * ms, 2}},
		{"latency=1ms;alice~3:latency=4ms", "alice", "m3", Link{Latency: 4 * ms}},
		{"latency=1ms;alice~3:latency=4ms", "bob", "m3", Link{Latency: ms}},
		{"latency=1ms;m3>*:latency=4ms", "m3", "", Link{Latency: 4 * ms}},
		{"latency=1ms;m3>*:latency=4ms", "", "m3", Link{Latency: ms}},
		{"latency=1ms;1~2:loss=100%", "m2", "m1", Link{Latency: ms, Loss: 100}},
		// A member counts more than *, and a later part more than an earlier one.
		{"1~2:latency=4ms;*~2:latency=5ms;*~2:latency=6ms", "m1", "m2", Link{Latency: 4 * ms}},
		{"1~2:latency=4ms;*~2:latency=5ms;*~2:latency=6ms", "m3", "m2", Link{Latency: 6 * ms}},
		{"1~2:latency=4ms,loss=1%;1>2:loss=2%", "m1", "m2", Link{Latency: 4 * ms, Loss: 2}},
		// Regions, in turn.
		{"regions=us-east-1+eu-west-1+ap-northeast-1", "m1", "m2", Link{Latency: 35 * ms}},
		{"regions=us-east-1+eu-west-1+ap-northeast-1", "m3", "m2", Link{Latency: 100*ms + ms/2}},
		{"regions=us-east-1+eu-west-1+ap-northeast-1", "m1", "m4", Link{Latency: ms / 4}},
		{"regions=us-east-1+eu-west-1,jitter=1ms", "m5", "m6", Link{Latency: 35 * ms, Jitter: ms}},
		{"regions=us-east-1+eu-west-1", "braid-0", "braid-1", Link{Latency: 35 * ms}}, // counted from 0
		{"regions=us-east-1+eu-west-1", "braid-0", "braid-2", Link{Latency: ms / 4}},
		{"regions=us-east-1+eu-west-1", "m1", "", Link{}}, // not known yet
		{"latency=9ms;m1:region=us-east-1;alice:region=eu-west-1", "m1", "alice", Link{Latency: 35 * ms}},
		{"latency=9ms;m1:region=us-east-1;alice:region=eu-west-1", "m1", "m2", Link{Latency: 9 * ms}},
		{"regions=us-east-1+eu-west-1;m2:region=sa-east-1", "m2", "m1", Link{Latency: 57*ms + ms/2}},
		{"regions=us-east-1+eu-west-1;us-east-1>*:loss=1%", "m1", "m2", Link{Latency: 35 * ms, Loss: 1}},
		{"regions=us-east-1+eu-west-1;us-east-1>*:loss=1%", "m2", "m1", Link{Latency: 35 * ms}},
		{"regions=us-east-1+eu-west-1;us-east-1~eu-west-1:rtt=90ms;3~2:latency=7ms", "m1", "m2", Link{Latency: 45 * ms}},
		{"regions=us-east-1+eu-west-1;us-east-1~eu-west-1:rtt=90ms;3~2:latency=7ms", "m2", "m3", Link{Latency: 7 * ms}},
		{"regions=us-east-1+eu-west-1;us-east-1~us-east-1:rtt=2ms", "m1", "m3", Link{Latency: ms}},
		// Regions of one's own.
		{"regions=ams+fra;ams~fra:rtt=9ms", "m1", "m2", Link{Latency: 9 * ms / 2}},
		{"regions=ams+fra;ams~fra:rtt=9ms", "m1", "m3", Link{Latency: ms / 4}},
		{"regions=ams+us-east-1\nams~us-east-1: rtt=80ms # measured\n", "m1", "m2", Link{Latency: 40 * ms}},
		{"regions=ams+fra;ams>fra:latency=1ms;fra>ams:latency=2ms", "m2", "m1", Link{Latency: 2 * ms}},
	} {
		s := parse(t, c.text)
		for _, s := range []Spec{s, parse(t, s.String())} {
			if got := s.Link(c.from, c.to); got != c.want {
				t.Errorf("%q: from %q to %q: %+v, want %+v", c.text, c.from, c.to, got, c.want)
			}
			if l := s.Link(c.from, c.to); l.Latency+l.Jitter > s.Farthest() {
				t.Errorf("%q: %+v is farther than %s", c.text, l, s.Farthest())
			}
		}
	}
}

func TestCardsOfMembers(t *testing.T) {
	s := parse(t, "bandwidth=1gbit,nics=2;eu-west-1:bandwidth=100mbit;3:bandwidth=10mbit;"+
		"3:region=eu-west-1;m4:region=eu-west-1")
	for name, want := range map[string]int64{"m1": 1e9, "m3": 10e6, "m4": 100e6, "": 1e9} {
		if c := s.Cards(name); c != (Cards{want, 2}) {
			t.Errorf("%q has %+v", name, c)
		}
	}
}

func TestNumbers(t *testing.T) {
	for name, want := range map[string]string{"m1": "1", "node-03": "3", "12": "12", "m": "", "": "", "m0": "0", "a1b": "",
		"m1234567890": "", "us-east-1": "1"} {
		if got := numberOf(name); got != want {
			t.Errorf("%q has number %q", name, got)
		}
	}
}

func TestBadSpecifications(t *testing.T) {
	for text, want := range map[string]string{
		"latency":                      "key=value",
		"latency=":                     "key=value",
		"latency=5":                    "missing unit",
		"latency=-5ms":                 "within 0 and 1m",
		"latency=2h":                   "within 0 and 1m",
		"speed=5ms":                    "known are latency",
		"bandwidth=5":                  "lacks a unit",
		"bandwidth=-5mbit":             "above 0",
		"bandwidth=xmbit":              "above 0",
		"bandwidth=nanmbit":            "above 0",
		"bandwidth=1bit":               "at least 1kbit",
		"bandwidth=1mbit,egress=1mbit": "given twice",
		"latency=1ms,rtt=1ms":          "given twice",
		"latency=1ms;latency=2ms":      "given twice",
		"loss=5":                       "lacks the % sign",
		"loss=101%":                    "within 0 and 100",
		"loss=NaN%":                    "within 0 and 100",
		"nics=0":                       "number of network cards",
		"nics=9999":                    "within 1 and 1024",
		"latency=1ms,,bandwidth=1mbit": "key=value",
		"regions=us-east-1+nowhere":    `region "nowhere" is not known: known are ap-northeast-1,`,
		"regions=us-east-1+":           "cannot be the name of a region",
		"regions=1+2":                  "cannot be the name of a region",
		"regions=us-east-1+eu-de":      `how far region "eu-de" is from "us-east-1" is not known`,
		"regions=ams+fra+nyc;ams~fra:rtt=9ms;ams~nyc:rtt=80ms": `how far region "fra" is from "nyc" is not known`,
		"regions=ams+fra;ams>fra:latency=9ms":                  `how far region "fra" is from "ams" is not known`,
		"regions=ams+fra;ams~fra:loss=1%":                      `region "ams" is not known`,
		"regions=us-east-1,latency=5ms":                        "leave one of them out",
		"eu-west-1:region=us-east-1":                           "is a region",
		"m1:region=nowhere":                                    `region "nowhere" is not known`,
		"1~2:bandwidth=1mbit":                                  "known are latency, rtt, jitter, loss in a part about a pair",
		"1~2:":                                                 "key=value",
		"1~:latency=5ms":                                       "whom it is about",
		":latency=5ms":                                         "whom it is about",
		"1~2~3:latency=5ms":                                    `"2~3" is no member's number or name`,
		"1>2:rtt=5ms":                                          "both ways",
		"1~2:latency=2h":                                       "within 0 and 1m",
		"3:latency=5ms": "known are bandwidth, egress, region in a part about one " +
			"member",
		"*:bandwidth=1mbit":         "of all members",
		"12345678901~2:latency=5ms": "up to 9 digits",
	} {
		var e *Error
		if _, err := Parse(text); !errors.As(err, &e) || !strings.Contains(err.Error(), want) ||
			!strings.Contains(err.Error(), fmt.Sprintf("%q", text)) {
			t.Errorf("%q: got %v, want an Error with %q", text, err, want)
		}
	}
}

func TestCheckMember(t *testing.T) {
	s := parse(t, "regions=us-east-1+eu-west-1;bob:region=eu-west-1")
	for name, ok := range map[string]bool{"m1": true, "bob": true, "alice": false} {
		var e *Error
		if err := s.CheckMember(name); ok != (err == nil) ||
			!ok && (!errors.As(err, &e) || !strings.Contains(err.Error(), "alice:region=us-east-1")) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if s := parse(t, "regions="+strings.Join(regionsOf(aws), "+")); s.Farthest() != 327*ms/2 {
		t.Errorf("farthest is %v", s.Farthest())
	}
	equal := parse(t, "latency=5ms")
	if err := equal.CheckMember("alice"); err != nil {
		t.Error(err)
	}
}

func FuzzParse(f *testing.F) {
	f.Add("regions=us-east-1+eu-west-1,jitter=1ms;1~2:latency=40ms;m3:region=sa-east-1;bandwidth=1mbit")
	f.Add("a~b:rtt=1ms;regions=a+b;a>*:loss=0.1%;3:bandwidth=1kbit")
	f.Fuzz(func(t *testing.T, text string) {
		s, err := Parse(text)
		if err != nil {
			return
		}
		again, err := Parse(s.String())
		if err != nil || again.String() != s.String() || again.Link("m1", "m2") != s.Link("m1", "m2") ||
			again.Cards("m1") != s.Cards("m1") {
			t.Errorf("%q: printed as %q, read as %q, %v", text, s.String(), again.String(), err)
		}
	})
}
