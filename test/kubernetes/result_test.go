package main

import (
	"strings"
	"testing"
)

func TestResult(t *testing.T) {
	r := newResult()
	err := r.read(strings.NewReader(`
		{"Action":"output","Package":"p","Test":"A/a","Output":"why it failed\n"}
		{"Action":"fail","Package":"p","Test":"A/a"}
		{"Action":"output","Package":"p","Test":"B","Output":"not of interest\n"}
		{"Action":"pass","Package":"p","Test":"B"}
		{"Action":"skip","Package":"p","Test":"C"}
		{"Action":"pass","Package":"q"}
		{"Action":"build-output","ImportPath":"r","Output":"undefined: x\n"}
		{"Action":"build-fail","ImportPath":"r"}`))
	if err != nil {
		t.Fatal(err)
	}
	if got, want := r.String(), "1 tests passed, 1 were skipped, failed: p A/a, r"; got != want {
		t.Errorf("%q, not %q", got, want)
	}
	if got, want := r.output(), "why it failed\nundefined: x\n"; got != want {
		t.Errorf("%q, not %q", got, want)
	}
}
