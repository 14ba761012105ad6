package backups

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
)

// List returns the backups of a directory, by number. If a backup has a problem, all increments that continue it have
// it, too. It reads the beginning and the end of each file; [Check] reads whole files. A directory that does not exist
// has none.
func List(dir string) (all []Info, err error) {
	names, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		i, ok := parseName(name.Name())
		if !ok {
			continue
		}
		if err := i.read(dir); err != nil {
			i.Problem = err.Error()
		}
		all = append(all, i)
	}
	slices.SortFunc(all, func(a, b Info) int { return a.Number - b.Number })
	link(all)
	return all, nil
}

// lastFull returns the index of the last whole backup; -1: there is none.
func lastFull(all []Info) int {
	for n, i := range slices.Backward(all) {
		if i.Kind == Full {
			return n
		}
	}
	return -1
}

// link notes problems of increments that do not continue the backup before them, or that continue one with a problem.
func link(all []Info) {
	for n := range all {
		i := &all[n]
		if i.Kind == Full || i.Problem != "" {
			continue
		}
		switch {
		case n == 0 || all[n-1].Number != i.Number-1:
			i.Problem = fmt.Sprintf("%s continues number %d, which is missing", i.File, i.Number-1)
		case all[n-1].Problem != "":
			i.Problem = fmt.Sprintf("%s continues number %d: %s", i.File, i.Number-1, all[n-1].Problem)
		case all[n-1].SHA256 != i.Base || all[n-1].Cluster != i.Cluster:
			i.Problem = fmt.Sprintf("%s does not continue %s, but a backup with the SHA-256 %s", i.File, all[n-1].File,
				i.Base)
		}
	}
}
