package history

import "strings"

// EventKey is the attribute of a log line that makes it an event: its value is the kind.
const EventKey = "event"

// Kind is a kind of events. In its text, a name in braces stands for that attribute of the log line, and {self} for the
// member of the event. A part in brackets is left out if an attribute in it is missing.
type Kind struct{ Name, Text string }

// Kinds are all kinds of events.
var Kinds = []Kind{
	{"started", "{self} started version {version}"},
	{"stopping", "{self} stops"},
	{"failed", "{self} cannot continue: {err}"},

	{"leader-lost", "{self} lost its leader {leader}[ of {instances}]" +
		"[: nothing came from it for {silent}][: {reason}]"},
	{"leader-found", "{self} follows {leader}[ in {instances}], term {term}[ (ballot {ballot})]" +
		"[, after {without} without a leader]"},
	{"leads", "{self} leads[ {instances}] in term {term}[ (ballot {ballot})][, after {without} without a leader]"},
	{"leader-moved", "{leader} leads[ {instances}] in term {term}[ (ballot {ballot})], in place of {former}" +
		"[, after {without} without a leader][: the disk of {former} was stalled for {stalled}]"},
	{"stepped-down", "{self} no longer leads[ {instances}][: its disk was stalled for {stalled}][: {reason}]"},
	{"first-leader", "{leader} is now the leader to clients of etcd's API, which ends leases"},
	{"election", "{self} stands for election[ in {instances}] in term {term}[ (ballot {ballot})]"},
	{"banned", "{member} leads no slots from epoch {epoch} on[, until epoch {until}]: it was suspected"},
	{"unbanned", "{member} leads slots again from epoch {epoch} on"},
	{"drained", "{self} is drained: it hands over what it leads, and leads nothing until that is undone or it " +
		"restarts"},
	{"undrained", "{self} is not drained any more: it may lead again"},

	{"link-up", "{self} has a link to {member}"},
	{"link-down", "{self} has no link to {member}: {err}"},
	{"link-left", "{self} has no link to {member}, which stops"},
	{"connection-refused", "{self} refused a peer connection from {addr}: {err}"},

	{"membership", "{member} {change}"},
	{"format", "{self} writes format {format}, which earlier versions do not know"},
	{"settings", "the settings are profile {profile}: {changed}"},
	{"protocol", "the protocol is {protocol} in place of {former} (profile {profile})"},
	{"instances", "the log is made of {instances} instances, in place of {former}"},
	{"fit", "the fitter: {decision}"},
	{"fitted", "the fitter changed the log to {to}[, led by {leader}]: {reason}"},
	{"fit-failed", "the fitter could not change the log to {to}[, led by {leader}], and tries again later: {err}"},

	{"alarm-raised", "the alarm {alarm} is raised for {member}. {remedy}"},
	{"alarm-ended", "the alarm {alarm} for {member} has ended"},
	{"damage", "damage on the disk of {self}: {err}"},
	{"mended", "damage on the disk of {self} is repaired or no longer matters: places {places}[, left {left} ({err})]"},
	{"state-damaged", "the state of {self} is damaged, and it asks others for theirs: {err}"},
	{"state-replaced", "the damaged state of {self} was replaced[ in {took}]"},
	{"members-differ", "the members' states differ, and no majority agrees: {err}"},

	{"slow-disk", "the disk of {self} is stalled: a write to the log takes more than {for}. {remedy}"},
	{"disk-back", "the disk of {self} writes again, after {after}"},
	{"log-waits", "the log of {self} waits: {err}"},
	{"log-continues", "the log of {self} no longer waits"},

	{"snapshot-sent", "{self} sent {member} a snapshot[ in {took}]"},
	{"snapshot-unsent", "{self} could not send {member} a snapshot: {err}"},
	{"snapshot-installed", "{self} installed a snapshot of another member[ in {took}]"},
	{"snapshot-failed", "{self} could not write a snapshot: {err}"},
	{"defragmented", "{self} defragmented its database: {before} bytes became {after}"},
	{"defragment-failed", "{self} could not defragment its database: {err}"},

	{"login-failed", "{self} refused {count} requests with a wrong user, password or token, the last from {client}"},
	{"tls-refused", "{count} TLS handshakes of clients with {self} failed, the last from {client}: {err}"},
}

// texts are the texts of the kinds.
var texts = func() map[string]string {
	out := map[string]string{}
	for _, k := range Kinds {
		out[k.Name] = k.Text
	}
	return out
}()

// say fills in a text.
func say(text string, value func(name string) string) string {
	var out strings.Builder
	for text != "" {
		i := strings.IndexAny(text, "[{")
		if i < 0 {
			break
		}
		out.WriteString(text[:i])
		if text[i] == '{' {
			name, rest, _ := strings.Cut(text[i+1:], "}")
			out.WriteString(value(name))
			text = rest
			continue
		}
		part, rest, _ := strings.Cut(text[i+1:], "]")
		missing := false
		said := say(part, func(name string) string {
			v := value(name)
			missing = missing || v == ""
			return v
		})
		if !missing {
			out.WriteString(said)
		}
		text = rest
	}
	out.WriteString(text)
	return out.String()
}
