package main

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// benchTime is how long a benchmark runs in each round.
const benchTime = "100ms"

// units are the figures that are compared.
var units = []string{"ns/op", "cpu-ns/op", "B/op", "allocs/op"}

// figures are the values of a benchmark's runs, by unit.
type figures map[string][]float64

// result is a benchmark's figures on both sides.
type result struct {
	folder, name string
	of           [2]figures
}

// measure runs all programs in turns, the one and then the other, at least once. It begins no round that would end
// after a given time, if it takes as long as the longest one before. It returns the number of rounds.
func measure(ctx context.Context, t *trees, rounds int, until time.Time) (made int, all []*result, err error) {
	longest := time.Duration(0)
	for made < max(1, rounds) && (made == 0 || time.Now().Add(longest).Before(until)) {
		began := time.Now()
		for i := range t.runs {
			for _, of := range []side{sideBefore, sideAfter} {
				if all, err = t.bench(ctx, of, i, all); err != nil {
					return made, all, err
				}
			}
		}
		made++
		longest = max(longest, time.Since(began))
	}
	return made, all, nil
}

// bench runs a program and adds what it prints. A program of before may be missing, and may fail.
func (t *trees) bench(ctx context.Context, of side, suite int, all []*result) ([]*result, error) {
	s, program := t.runs[suite], t.program(of, suite)
	if _, err := os.Stat(program); err != nil {
		return all, nil
	}
	for _, pattern := range s.patterns {
		text, err := output(ctx, filepath.Join(t.root[of], s.folder), program, "-test.run", "^$",
			"-test.bench", pattern, "-test.benchtime", benchTime, "-test.benchmem")
		if err != nil && (of == sideAfter || ctx.Err() != nil) {
			return all, err
		}
		for line := range strings.Lines(text) {
			if name, f := parse(line); name != "" {
				all = add(all, s.folder, name, of, f)
			}
		}
	}
	return all, nil
}

// add adds the figures of a run.
func add(all []*result, folder, name string, of side, f map[string]float64) []*result {
	i := slices.IndexFunc(all, func(r *result) bool { return r.folder == folder && r.name == name })
	if i < 0 {
		i, all = len(all), append(all, &result{folder: folder, name: name, of: [2]figures{{}, {}}})
	}
	for unit, v := range f {
		all[i].of[of][unit] = append(all[i].of[of][unit], v)
	}
	return all
}

// parse reads a benchmark's line; "": it is another one. The name is without the number of processors.
func parse(line string) (name string, f map[string]float64) {
	fields := strings.Fields(line)
	if len(fields) < 4 || !strings.HasPrefix(fields[0], "Benchmark") {
		return "", nil
	}
	if _, err := strconv.Atoi(fields[1]); err != nil {
		return "", nil
	}
	f = map[string]float64{}
	for i := 2; i+1 < len(fields); i += 2 {
		if v, err := strconv.ParseFloat(fields[i], 64); err == nil && slices.Contains(units, fields[i+1]) {
			f[fields[i+1]] = v
		}
	}
	name = strings.TrimPrefix(fields[0], "Benchmark")
	if at := strings.LastIndexByte(name, '-'); at > 0 {
		if _, err := strconv.Atoi(name[at+1:]); err == nil {
			name = name[:at]
		}
	}
	return name, f
}
