package workload

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestParseMix(t *testing.T) {
	m, err := ParseMix("read=0.95, update=5%")
	require.NoError(t, err)
	require.Equal(t, Mix{Read: 0.95, Update: 0.05}, m)
	require.Equal(t, "read=0.95,update=0.05", m.String())
	require.InDelta(t, 0.05, m.Writes(), 1e-9)
	thirds, err := ParseMix("read=0.3333333,insert=0.3333333,rmw=0.3333334")
	require.NoError(t, err)
	require.InDelta(t, 2.0/3, thirds.Writes(), 1e-6)

	for text, want := range map[string]string{
		"":                      "add up to 0, not to 1",
		"read=0.5":              "add up to 0.5, not to 1",
		"read=0.9,update=0.2":   "add up to 1.1, not to 1",
		"read=0.5,write=0.5":    `unknown operation "write": there are read, update, insert, scan, rmw, delete, grant`,
		"read=0.5,read=0.5":     "two shares for read",
		"read=2,update=-1":      "share 2 of read: must be between 0 and 1",
		"read=half,update=half": `share of read: "half" is not a number`,
		"read=NaN":              "is not a number",
		"read":                  `"read" must be an operation and its share`,
		"read=1,":               "must be an operation and its share",
		"read=50%,update=50":    "share 50 of update",
	} {
		_, err := ParseMix(text)
		require.ErrorContains(t, err, want, "%q", text)
	}
}

func TestParseKeys(t *testing.T) {
	for text, again := range map[string]string{
		"uniform": "uniform", "conflict": "conflict:share=0.02,hot=1", "conflict:25%": "conflict:share=0.25,hot=1",
		"conflict:hot=3,share=0.5": "conflict:share=0.5,hot=3", "normal": "normal",
		"normal:500,move=-10": "normal:mean=500,move=-10",
		"zipf":                "zipf:skew=0.99", "zipf:0": "zipf:skew=0",
		"zipf:skew=1.2,scatter=1": "zipf:skew=1.2,scatter=1",
		"exponential:mean=12.5":   "exponential:mean=12.5", "latest:1.1": "latest:skew=1.1",
	} {
		k, err := ParseKeys(text)
		require.NoError(t, err)
		require.Equal(t, again, k.String())
		same, err := ParseKeys(again)
		require.NoError(t, err)
		require.Equal(t, k, same)
	}
	for text, want := range map[string]string{
		"":                      `unknown distribution "": there are uniform, conflict, normal, zipf, exponential, latest`,
		"zipfian":               `unknown distribution "zipfian"`,
		"uniform:3":             `unknown parameter "3": uniform has none`,
		"zipf:lambda=3":         `unknown parameter "lambda": zipf has skew, scatter`,
		"zipf:skew=1,skew=2":    "parameter skew comes twice",
		"zipf:skew=x":           `parameter skew: "x" is not a number`,
		"zipf:-1":               "skew -1: must be between 0 and 100",
		"conflict:120%":         "share 1.2 of hot keys: must be between 0 and 1",
		"conflict:hot=0":        "0 hot keys: must be at least 1",
		"normal:deviation=-1":   "deviation -1: must not be negative",
		"exponential:mean=-0.1": "mean -0.1: must not be negative",
	} {
		_, err := ParseKeys(text)
		require.ErrorContains(t, err, want, "%q", text)
	}
}

func TestParseSizes(t *testing.T) {
	for text, want := range map[string]Sizes{
		"16": {16, 16}, "4KiB": {4096, 4096}, "1M": {1 << 20, 1 << 20}, "16-16MiB": {16, 16 << 20}, "100B-1K": {100, 1024},
	} {
		s, err := ParseSizes(text)
		require.NoError(t, err, text)
		require.Equal(t, want, s)
		again, err := ParseSizes(s.String())
		require.NoError(t, err)
		require.Equal(t, s, again)
	}
	for text, want := range map[string]string{
		"0": "values of 0 bytes: must be at least 1", "-5": "must be", "": "must be a number of bytes",
		"x":     "must be a number of bytes",
		"17MiB": "at most 16777216", "10-5": "the smaller size comes first", "1-": "must be a number of bytes",
		"0-16":                "values of 0 bytes",
		"9223372036854775807": "must be", "2147483647MiB": "at most",
	} {
		_, err := ParseSizes(text)
		require.ErrorContains(t, err, want, "%q", text)
	}
}

func TestImpossibleSpecs(t *testing.T) {
	good := spec(t, "uniform", 100)
	require.NoError(t, good.Validate(10))
	for want, change := range map[string]func(*Spec){
		"shares add up to 0":         func(s *Spec) { s.Mix = Mix{} },
		"0 keys: must be at least 1": func(s *Spec) { s.KeySpace = 0 },
		"values of 0 bytes":          func(s *Spec) { s.Values = Sizes{} },
		"scans of -1 keys":           func(s *Spec) { s.ScanLimit = -1 },
		"too few for 10 clients to have a key of their own": func(s *Spec) {
			s.Keys, s.KeySpace = spec(t, "conflict:hot=5", 10).Keys, 10
		},
		"mean 100: must be one of the 100 keys": func(s *Spec) { s.Keys = spec(t, "normal:mean=100", 100).Keys },
		"what is deleted would still count as the latest": func(s *Spec) {
			s.Keys, s.Mix = spec(t, "latest", 10).Keys, Mix{Delete: 1}
		},
	} {
		bad := good
		change(&bad)
		_, err := New(bad, 10)
		require.ErrorContains(t, err, want)
	}
	_, err := New(good, 0)
	require.ErrorContains(t, err, "0 clients")
	_, _, err = YCSB("G")
	require.ErrorContains(t, err, `unknown YCSB workload "G": there are A, B, C, D, E and F`)
}
