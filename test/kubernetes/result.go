package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
)

// result is what `go test -json` said.
type result struct {
	passed, skipped int
	failed          []string            // of tests and packages, in the order of their ends
	outputs         map[string][]string // of those that have not passed
}

func newResult() *result { return &result{outputs: map[string][]string{}} }

// read reads events until the end. A test and each of its parts count as one.
func (r *result) read(events io.Reader) error {
	for lines := json.NewDecoder(events); ; {
		var e struct{ Action, Package, ImportPath, Test, Output string }
		if err := lines.Decode(&e); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			_, _ = io.Copy(io.Discard, events) // or the process waits
			return err
		}
		name := strings.TrimSpace(e.Package + e.ImportPath + " " + e.Test)
		switch e.Action {
		case "output", "build-output":
			r.outputs[name] = append(r.outputs[name], e.Output)
		case "fail", "build-fail":
			r.failed = append(r.failed, name)
		case "pass", "skip":
			delete(r.outputs, name)
			if e.Test != "" && e.Action == "pass" {
				r.passed++
			} else if e.Test != "" {
				r.skipped++
			}
		}
	}
}

// String says how many tests passed.
func (r *result) String() string {
	s := fmt.Sprintf("%d tests passed", r.passed)
	if r.skipped > 0 {
		s += fmt.Sprintf(", %d were skipped", r.skipped)
	}
	if len(r.failed) > 0 {
		s += fmt.Sprintf(", failed: %s", strings.Join(r.failed, ", "))
	}
	return s
}

// output is what failed tests and packages wrote.
func (r *result) output() string {
	var all strings.Builder
	for _, name := range r.failed {
		for _, line := range r.outputs[name] {
			all.WriteString(line)
		}
	}
	return all.String()
}
