package backups

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Chain is a whole backup and the increments that lead from it to a state.
type Chain []Info

// Last is the backup whose state is restored.
func (c Chain) Last() *Info { return &c[len(c)-1] }

// Files returns the file of the whole backup, and those of the increments in their order.
func (c Chain) Files(dir string) (full string, increments []string) {
	for n := range c {
		increments = append(increments, c[n].Path(dir))
	}
	return increments[0], increments[1:]
}

// Find returns the chain of the backup of a revision; 0: of the newest backup. If several backups are of the revision,
// it is the newest of those without a problem. It fails if the backup has a problem: earlier ones can be found by their
// revisions.
func Find(dir string, revision int64) (Chain, error) {
	all, err := List(dir)
	if err != nil {
		return nil, err
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("%s has no backups", dir)
	}
	problem := ""
	for n, i := range slices.Backward(all) {
		if revision != 0 && i.Now.Revision != revision {
			continue
		}
		if i.Problem == "" {
			return all[lastFull(all[:n+1]) : n+1], nil
		}
		if problem = cmp.Or(problem, i.Problem); revision == 0 {
			break
		}
	}
	if problem != "" {
		return nil, fmt.Errorf("%s; the backups before it can be restored by their revisions", problem)
	}
	return nil, fmt.Errorf("%s has no backup of revision %d, but those of %s", dir, revision,
		strings.Join(revisions(all), ", "))
}

// revisions returns the revisions of the backups without a problem, the newest first, each once.
func revisions(all []Info) (texts []string) {
	for _, i := range slices.Backward(all) {
		if text := strconv.FormatInt(i.Now.Revision, 10); i.Problem == "" && !slices.Contains(texts, text) {
			texts = append(texts, text)
		}
	}
	return texts
}
