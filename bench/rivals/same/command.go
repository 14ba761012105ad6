package same

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"time"
)

// command is a command line of etcdctl. Words $X are replaced by what an earlier command kept under this name.
type command struct {
	line, in string
	// lines: the command runs until it is stopped, here after so many lines of output; 0: it ends by itself.
	lines int
	// keep is what to remember of the output: names, with an expression that has one group each.
	keep map[string]*regexp.Regexp
	// hides are parts of the output that are not compared.
	hides []*regexp.Regexp
	// measures: it takes long, and is not run by default.
	measures bool
	// anyOrder: lines are in the order of ids.
	anyOrder bool
}

// commandTime bounds a command, and measureTime one that measures.
const (
	commandTime = 30 * time.Second
	measureTime = 3 * time.Minute
)

// console runs commands against one cluster.
type console struct {
	program  string
	endpoint string // of the leader
	kept     map[string]string
}

// run returns what the command printed, and how it ended.
func (c *console) run(ctx context.Context, row *command) (string, error) {
	limit := commandTime
	if row.measures {
		limit = measureTime
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	line := row.line
	for name, value := range c.kept {
		line = strings.ReplaceAll(line, "$"+name, value)
	}
	args := append([]string{"ctl", "--endpoints", c.endpoint}, strings.Fields(line)...)
	p := exec.CommandContext(ctx, c.program, args...)
	p.Stdin = strings.NewReader(row.in)
	var out string
	var err error
	if row.lines > 0 {
		out, err = firstLines(p, cancel, row.lines)
	} else {
		out, err = toItsEnd(p)
	}
	if err != nil {
		return "", fmt.Errorf("%s: %w", row.line, err)
	}
	for name, expression := range row.keep {
		found := expression.FindStringSubmatch(out)
		if found == nil {
			return "", fmt.Errorf("%s: no %s in %q", row.line, name, out)
		}
		c.kept[name] = found[1]
	}
	return row.normal(out), nil
}

// toItsEnd returns the output of a command, and its exit code.
func toItsEnd(p *exec.Cmd) (string, error) {
	var out, errs bytes.Buffer
	p.Stdout, p.Stderr = &out, &errs
	err := p.Run()
	if failed := (*exec.ExitError)(nil); err != nil && (!errors.As(err, &failed) || failed.ExitCode() < 0) {
		return "", err
	}
	return fmt.Sprintf("%s%sexit code %d", out.String(), errs.String(), p.ProcessState.ExitCode()), nil
}

// firstLines returns the first lines of the output of a command, and stops it.
func firstLines(p *exec.Cmd, end func(), n int) (string, error) {
	r, err := p.StdoutPipe()
	if err != nil {
		return "", err
	}
	if err := p.Start(); err != nil {
		return "", err
	}
	var all []string
	for s := bufio.NewScanner(r); len(all) < n && s.Scan(); {
		all = append(all, s.Text())
	}
	end()
	_ = p.Wait() // it was ended
	if len(all) < n {
		return "", fmt.Errorf("%d lines of output, not %d: %q", len(all), n, all)
	}
	return strings.Join(all, "\n"), nil
}

// ofOneCluster are parts of any output that are of one cluster, or of one moment.
var ofOneCluster = []struct {
	what *regexp.Regexp
	by   string
}{
	{regexp.MustCompile(`127\.0\.0\.1:\d+`), "ADDRESS"},
	{regexp.MustCompile(`"(cluster_id|member_id|ID|id|leader|raft_term|raftTerm)":\d+`), `"$1":N`},
	{regexp.MustCompile(`"(ClusterID|MemberID|RaftTerm)" : \d+`), `"$1" : N`},
	{regexp.MustCompile(` *\b[0-9a-f]{14,16}\b`), " ID"}, // some are aligned
	{regexp.MustCompile(`\b\d+(\.\d+)?(ns|µs|ms|s)\b`), "TIME"},
	{regexp.MustCompile(`(?m)^\{"level":"info".*\n`), ""}, // a client's log
	{regexp.MustCompile(`"ts":"[^"]*"|etcd-endpoints://0x[0-9a-f]+`), "OF-THE-CLIENT"},
}

// normal takes out of output what is of one cluster.
func (row *command) normal(out string) string {
	for _, of := range ofOneCluster {
		out = of.what.ReplaceAllString(out, of.by)
	}
	for _, hide := range row.hides {
		out = hide.ReplaceAllString(out, "HIDDEN")
	}
	if row.anyOrder {
		lines := strings.Split(out, "\n")
		slices.Sort(lines)
		out = strings.Join(lines, "\n")
	}
	return out
}
