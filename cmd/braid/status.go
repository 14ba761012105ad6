package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
	"go.etcd.io/etcd/client/pkg/v3/transport"

	"github.com/braidlog/braid/internal/registry"
	"github.com/braidlog/braid/internal/status"
)

func init() { commands = append(commands, newStatusCommand) }

func newStatusCommand() *cobra.Command {
	var o status.Options
	var tls transport.TLSInfo
	var login ctlLogin
	asJSON, events := false, false
	cmd := &cobra.Command{
		Use:   "status",
		Short: "Show members, instances, leaders, lag, and use of disk and network",
		Long: `status shows the state of the members at --endpoints, and of those that they name. Counters are
since a member's start. For servers other than braid it shows the data of the etcd API.

If a protocol has other settings than its defaults, or settings were changed, a table shows the
settings of the protocol, the version of the profile ("braid tune" shows it), and the tolerated
failures.

If members have zones, a table shows the members of each zone.

If several instances are merged into one log, each has a line, and a table shows the progress of
the merged log: its position, the round and the instance that it waits for, and the leaders.

If members have lanes, a table shows how far each member's own lane is confirmed, accepted and
held, in batches; the fullest lane there and its owner; and the bytes that were sent and received
by lanes, those that a leader did not have to send because of that, and those that it sent anyway.

If there are epochs, a table shows each member's epoch and its slots; the voters that may not lead;
how far the slots of each leader are decided, and the ballot if the leader is suspected; and the
number of slots in the log without a value.

The next table is about large values, which are in files next to the log: the number that a member
holds, whole or as a fragment, and their bytes; the number of fragments into which the leader cuts
new ones now (1: not at all); the numbers that are missing, were made whole from others' fragments,
were found damaged and repaired.

The last line says which change of the protocol, settings or leader would fit the load better, if one
would: "braid advise" has the figures.

A member is ready if it knows a leader of every instance, no alarm CORRUPT is raised, and within
two seconds it has applied all writes that were acknowledged before the request. The exit code is 1
if a member does not answer or is not ready.

With --events it prints what happened to the members lately, as the first endpoint that answers
knows it; with --json too, one event a line.

Flags that are not given come from etcdctl's variables: ETCDCTL_ENDPOINTS, ETCDCTL_CACERT,
ETCDCTL_CERT, ETCDCTL_KEY, ETCDCTL_USER, ETCDCTL_PASSWORD.

The connection uses TLS if the endpoint begins with https://, and clear text if it begins with
http://; without either it uses TLS if a flag names a certificate. While auth is on, members answer
users only.`,
		Example: `  braid status
  braid status --endpoints 10.0.0.1:2379 --json
  braid status --events
  braid status --endpoints https://10.0.0.1:2379 --cacert ca.crt --user root:secret`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			user, err := login.complete(cmd.Flags())
			if err != nil {
				return usageError{err}
			}
			if len(o.Endpoints) == 0 {
				return usagef("--endpoints is empty")
			}
			o.User, o.Password, _ = strings.Cut(user, ":")
			if o.TLS, err = clientTLS(&tls); err != nil {
				return err
			}
			if events {
				return showEvents(cmd.Context(), cmd.OutOrStdout(), o, asJSON)
			}
			return showStatus(cmd.OutOrStdout(), status.Ask(cmd.Context(), o), asJSON)
		},
	}
	f := cmd.Flags()
	f.StringSliceVar(&o.Endpoints, "endpoints", []string{"127.0.0.1:2379"}, "members' client addresses")
	f.BoolVar(&o.Only, "only", false, "ask the endpoints alone, not the members that they name")
	f.DurationVar(&o.Timeout, "timeout", 5*time.Second, "time for a member's answer")
	f.StringVar(&tls.TrustedCAFile, "cacert", "", "file of the authority that signed the servers' certificates")
	f.StringVar(&tls.CertFile, "cert", "", "file of the client's certificate")
	f.StringVar(&tls.KeyFile, "key", "", "file of the client's key")
	login.flags(f, "user:password, where auth is on")
	f.BoolVar(&events, "events", false, "print the last events of all members")
	f.BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

func showStatus(w io.Writer, members []status.Member, asJSON bool) error {
	print := printStatus
	if asJSON {
		print = func(w io.Writer, members []status.Member) error { return json.NewEncoder(w).Encode(members) }
	}
	if err := print(w, members); err != nil {
		return err
	}
	for _, m := range members {
		if m.Error != "" || !m.Ready {
			return errors.New("not every member is ready")
		}
	}
	return nil
}

func printStatus(w io.Writer, members []status.Member) error {
	t := tabwriter.NewWriter(w, 0, 8, 2, ' ', 0)
	fmt.Fprintln(t, "MEMBER\tENDPOINT\tID\tREADY\tREVISION\tPOSITION\tLOG\tDATABASE\tSENT\tRECEIVED\tFSYNCS\tALARMS")
	for _, m := range members {
		if m.ID == "" {
			fmt.Fprintf(t, "%s\t%s\t-\tno: %s\n", orDash(m.Name), m.Endpoint, m.Error)
			continue
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%d\t%d\t%s\t%s\t%s\t%s\t%s\t%s\n", orDash(m.Name), m.Endpoint, m.ID,
			readyText(m), m.Revision, m.Applied, status.Bytes(float64(m.LogBytes)), status.Bytes(float64(m.DBBytes)),
			status.Bytes(m.SentBytes), status.Bytes(m.ReceivedBytes), fsyncs(m), orDash(fmt.Sprint(m.Alarms)))
	}
	printWhy(t, members)
	printRates(t, members)
	fmt.Fprintln(t, "\nMEMBER\tINSTANCE\tROLE\tLEADER\tTERM\tLAST\tDURABLE\tCOMMITTED\tAPPLIED\tBEHIND")
	names := nameOf(members)
	for _, m := range members {
		for _, i := range m.Instances {
			role, leader, term := roleText(m, i, names)
			fmt.Fprintf(t, "%s\t%d\t%s\t%s\t%s\t%d\t%d\t%d\t%d\t%s\n", orDash(m.Name), i.Instance, role, leader, term,
				i.Last, i.Durable, i.Commit, i.Applied, behind(members, m, i))
		}
	}
	printZones(t, members)
	printQuorums(t, members)
	printMerged(t, members)
	printLanes(t, members)
	printEpochs(t, members)
	printBodies(t, members)
	printDamage(t, members)
	printFit(t, members)
	return t.Flush()
}

// printDamage prints the damage that scrubbing found in logs and snapshots, if any.
func printDamage(w io.Writer, members []status.Member) {
	if !slices.ContainsFunc(members, func(m status.Member) bool { return m.Disk.Damaged > 0 }) {
		return
	}
	fmt.Fprintln(w, "\nMEMBER\tDAMAGED ON DISK\tMENDED\tSTILL NEEDED")
	for _, m := range members {
		if d := &m.Disk; d.Damaged > 0 {
			fmt.Fprintf(w, "%s\t%d\t%d\t%s\n", orDash(m.Name), d.Damaged, d.Mended, orDash(d.Failing))
		}
	}
}

// printQuorums prints the protocol, its settings, the version of the profile, and the failures that the cluster
// tolerates, if these are not the defaults, or if settings were changed.
func printQuorums(w io.Writer, members []status.Member) {
	own := func(m status.Member) string { return registry.Settings().Only(m.Settings).String() }
	if !slices.ContainsFunc(members, func(m status.Member) bool { return own(m) != "" || m.Profile > 1 }) {
		return
	}
	fmt.Fprintln(w, "\nMEMBER\tPROTOCOL\tPROFILE\tSETTINGS\tTOLERANCE")
	for _, m := range members {
		if m.ID != "" {
			fmt.Fprintf(w, "%s\t%s\t%d\t%s\t%s\n", orDash(m.Name), m.Protocol, m.Profile, orDash(own(m)),
				orDash(m.Tolerance))
		}
	}
}

// printMerged prints the progress of the log that is merged from instances.
func printMerged(w io.Writer, members []status.Member) {
	if !slices.ContainsFunc(members, func(m status.Member) bool { return m.Next != nil }) {
		return
	}
	fmt.Fprintln(w, "\nMEMBER\tPOSITION\tNEXT\tLEADS\tROUNDS APPLIED\tCOMMITTED\tAPPENDED\tSKIPS")
	for _, m := range members {
		if m.Next == nil {
			continue
		}
		var leads, applied, committed, appended []string
		skips := uint64(0)
		for _, i := range m.Instances {
			if i.Leader == m.ID {
				leads = append(leads, fmt.Sprint(i.Instance))
			}
			if r := i.Rounds; r != nil {
				applied = append(applied, fmt.Sprint(r.Applied))
				committed = append(committed, fmt.Sprint(r.Committed))
				appended = append(appended, fmt.Sprint(r.Appended))
				skips += r.Skips
			}
		}
		fmt.Fprintf(w, "%s\t%d\tround %d of %d\t%s\t%s\t%s\t%s\t%d\n", orDash(m.Name), m.Applied, m.Next.Round,
			m.Next.Instance,
			orDash(strings.Join(leads, ",")), strings.Join(applied, " "), strings.Join(committed, " "),
			strings.Join(appended, " "), skips)
	}
}

// printBodies prints the placement of large values.
func printBodies(w io.Writer, members []status.Member) {
	if !slices.ContainsFunc(members, func(m status.Member) bool { return m.Placement != "" }) {
		return // no member is braid's, or none answers
	}
	fmt.Fprintln(w,
		"\nMEMBER\tPLACEMENT\tCUT IN\tBODIES\tBYTES\tFILES\tMISSING\tFETCHED\tSERVED\tDAMAGED\tREPAIRED\tSTATE")
	for _, m := range members {
		if m.Placement == "" {
			continue
		}
		b := &m.Bodies
		fmt.Fprintf(w, "%s\t%s\t%s\t%d\t%s\t%s\t%d\t%d\t%d\t%d\t%d\t%s\n", orDash(m.Name), m.Placement, cut(m), b.Held,
			status.Bytes(float64(b.LiveBytes)), status.Bytes(float64(b.TotalBytes)), b.Missing, b.Fetched, b.Served,
			b.Corrupt, b.Repaired,
			bodyState(members, m))
	}
}

// cut is the number of fragments into which a leader cuts values now.
func cut(m status.Member) string {
	for _, i := range m.Instances {
		if i.K > 0 {
			return fmt.Sprint(i.K)
		}
	}
	return "-"
}

// bodyState explains why a member does not hold all its bodies. The member itself or its leader reports it; either
// report may be older.
func bodyState(members []status.Member, m status.Member) string {
	for _, i := range m.Instances {
		if i.Preparing > 0 {
			return fmt.Sprintf("prepares to lead: %d to be made whole", i.Preparing)
		}
	}
	lacks := m.Bodies.Missing > 0
	for _, i := range m.Instances {
		lacks = lacks || i.Lacking
	}
	switch {
	case m.Bodies.Failing != "":
		return "cannot restore: " + m.Bodies.Failing
	case lacks:
		return "restores what it lacks"
	case m.Bodies.Short > 0:
		return fmt.Sprintf("makes %d whole, so that members may leave", m.Bodies.Short)
	}
	for _, leader := range members {
		leads := slices.ContainsFunc(m.Instances, func(i status.Instance) bool { return i.Leader == leader.ID })
		for _, p := range leader.Members {
			if leads && leader.ID != m.ID && p.ID == m.ID && p.Lacking != nil && *p.Lacking {
				return "lacks some, its leader says"
			}
		}
	}
	return "complete"
}

// behind is the member's distance from its leader, according to the leader (of this instance, if it reports), and the
// distance of applying from committing.
func behind(members []status.Member, m status.Member, i status.Instance) string {
	lag := "-"
	for _, leader := range members {
		if leader.ID != i.Leader || m.ID == i.Leader {
			continue
		}
		for _, p := range leader.Members {
			if p.ID == m.ID && p.Lag != nil {
				lag = fmt.Sprint(*p.Lag)
			}
		}
		for _, led := range leader.Instances {
			for _, p := range led.Peers {
				if led.Instance == i.Instance && p.ID == m.ID {
					lag = fmt.Sprint(p.Lag)
				}
			}
		}
	}
	if m.ID == i.Leader {
		lag = "0"
	}
	return fmt.Sprintf("%s log, %d apply", lag, i.ApplyLag)
}

func fsyncs(m status.Member) string {
	if m.Fsyncs == 0 {
		return "0"
	}
	return fmt.Sprintf("%.0f of %.2f ms", m.Fsyncs, 1000*m.FsyncSeconds/m.Fsyncs)
}

func nameOf(members []status.Member) func(id string) string {
	names := map[string]string{}
	for _, m := range members {
		for _, p := range m.Members {
			names[p.ID] = p.Name
		}
	}
	return func(id string) string {
		if name := names[id]; name != "" {
			return name
		}
		return orDash(id)
	}
}

// readyText is whether a member is ready, and whether it is drained.
func readyText(m status.Member) string {
	if m.Drained {
		return yesNo(m.Ready) + ", drained"
	}
	return yesNo(m.Ready)
}

func yesNo(yes bool) string {
	if yes {
		return "yes"
	}
	return "no"
}

func orDash(text string) string {
	if text == "" || text == "[]" {
		return "-"
	}
	return text
}
