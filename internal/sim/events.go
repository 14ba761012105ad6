package sim

import (
	"fmt"
	"strings"
)

// Events counts what happened in runs. Where something never happens, the simulator does not test
// it.
type Events struct {
	Starts       int `json:"starts"`
	HalfStarts   int `json:"power_lost_while_starting"`
	Crashes      int `json:"crashes"`
	Stops        int `json:"planned_stops"`
	Given        int `json:"leaderships_handed_over_before_a_stop"`
	HalfWrites   int `json:"power_lost_while_writing"`
	DeadDisks    int `json:"failed_syncs"`
	IOErrors     int `json:"members_stopped_by_io_errors"`
	Frozen       int `json:"frozen_in_a_turn"`
	Garbled      int `json:"nonsense_proposed"`
	Wiped        int `json:"disks_lost"`
	OldDisks     int `json:"old_disks_put_back"`
	HotCopies    int `json:"copies_of_running_disks_put_back"`
	Strangers    int `json:"links_refused"`
	Unlinked     int `json:"messages_without_link"`
	Guests       int `json:"links_to_unknown"`
	Relocated    int `json:"moves"`
	Forgotten    int `json:"members_stopped_that_lost_their_disk"`
	FullStarts   int `json:"starts_on_full_disks"`
	Newborn      int `json:"members_that_heard_others_first"`
	Away         int `json:"members_back_after_the_logs_were_cut"`
	FullDisks    int `json:"full_disks"`
	LowDisks     int `json:"low_disks"`
	Elections    int `json:"elections"`
	CutShort     int `json:"leaders_cut_short"`
	Straggled    int `json:"changes_of_members_while_somebody_is_behind,omitempty"`
	Promised     int `json:"members_about_to_vote_that_hear_of_the_leader_again,omitempty"`
	Lost         int `json:"messages_lost"`
	Damaged      int `json:"messages_damaged"`
	Snapshots    int `json:"snapshots"`
	Streams      int `json:"snapshot_streams"`
	BrokenStream int `json:"snapshot_streams_broken"`
	Installs     int `json:"snapshots_installed"`
	Joint        int `json:"joint_configurations"`
	Changes      int `json:"configurations"`
	Retired      int `json:"members_removed"`
	Departed     int `json:"removed_members_stopped"`
	Spoilt       int `json:"states_damaged"`
	Replaced     int `json:"damaged_states_replaced"`
	HeldUp       int `json:"messages_held_up"`
	FullFrames   int `json:"appends_at_the_limit_of_a_frame"`
	FullFlights  int `json:"times_that_bytes_in_flight_were_at_their_limit"`
	Uncommitted  int `json:"proposals_beyond_the_uncommitted_bytes"`
	Waits        int `json:"snapshots_that_waited_for_another_one"`
	Reads        int `json:"reads"`
	Stranded     int `json:"reads_asked_of_a_replaced_leader"`
	Refused      int `json:"writes_refused"`
	Unknown      int `json:"writes_unknown"`
	Failovers    int `json:"writes_acknowledged_after_a_change_of_leader"`

	Accepted   int `json:"writes_answered_before_they_are_applied"`
	LaneBodies int `json:"bodies_by_lanes,omitempty"`
	TokenReads int `json:"reads_with_a_token,omitempty"`
	Follows    int `json:"writes_after_those_of_tokens,omitempty"`
	Barriers   int `json:"barrier_reads,omitempty"`
	Expired    int `json:"tokens_that_did_not_come,omitempty"`

	Bodies       int `json:"writes_with_a_body"`
	Coded        int `json:"coded_entries_decided"`
	Upgrades     int `json:"bodies_upgraded"`
	Wanted       int `json:"bodies_wanted_by_new_leaders"`
	Deleted      int `json:"logs_cut_by_new_leaders"`
	Gathered     int `json:"bodies_made_whole"`
	GatherFailed int `json:"bodies_not_made_whole"`
	Unheard      int `json:"questions_and_fragments_without_room"`
	Backfilled   int `json:"bodies_restored"`
	Released     int `json:"bodies_released"`
	Damages      int `json:"bodies_damaged"`
	Trimmed      int `json:"whole_copies_trimmed"`
	Restriped    int `json:"bodies_made_whole_for_fewer_members"`
	DamageFound  int `json:"damaged_bodies_found"`

	Rotten     int `json:"records_and_snapshots_damaged"`
	RotFound   int `json:"damaged_snapshots_found"`
	Unreadable int `json:"entries_that_could_not_be_sent"`

	Gathers    int `json:"turns_over_several_inputs"`
	Groups     int `json:"reads_answered_together"`
	Aside      int `json:"messages_aside_of_large_ones"`
	Overflowed int `json:"messages_that_found_no_room"`
	Overloads  int `json:"writes_that_found_no_room"`
	Operations int `json:"operations_asked_for"`
	Operated   int `json:"operations_answered_as_done"`
	Piped      int `json:"writes_proposed_without_waiting"`
	Unproposed int `json:"writes_not_proposed_after_a_failure"`
	Withdrawn  int `json:"writes_withdrawn"`
	Astray     int `json:"states_of_another_log_found,omitempty"`
	Apart      int `json:"links_tried_with_members_founded_apart,omitempty"`
	Mistaken   int `json:"links_tried_with_members_of_a_cluster_of_the_same_names,omitempty"`
	BornApart  int `json:"links_refused_between_members_that_began_with_different_states,omitempty"`
	Adopted    int `json:"members_that_joined_a_restored_cluster,omitempty"`

	Skips int `json:"skips"`
	Moved int `json:"leaders_moved"`

	Reshaped int `json:"members_reshaped"`
	Planned  int `json:"reshaped_ahead_of_the_state,omitempty"`
	Early    int `json:"early_messages"`
}

// fields lists the counters with their names. The order matters for the constants below.
func (e *Events) fields() []eventField {
	return []eventField{
		{"entries that could not be sent", &e.Unreadable}, {"writes answered early", &e.Accepted}, {"bodies by lanes", &e.LaneBodies},
		{"reads with a token", &e.TokenReads}, {"writes after those of tokens", &e.Follows}, {"tokens that did not come", &e.Expired}, {"barrier reads", &e.Barriers}, {"changes of members while somebody is behind", &e.Straggled}, {"members about to vote that hear of the leader again", &e.Promised},
		{"turns over several inputs", &e.Gathers}, {"groups of reads", &e.Groups}, {"messages aside", &e.Aside},
		{"messages without room", &e.Overflowed}, {"writes without room", &e.Overloads},
		{"operations asked for", &e.Operations}, {"operations done", &e.Operated},
		{"writes proposed without waiting", &e.Piped}, {"writes not proposed after a failure", &e.Unproposed}, {"writes withdrawn", &e.Withdrawn}, {"states of another log found", &e.Astray},
		{"links tried with members founded apart", &e.Apart}, {"links tried with members of a cluster of the same names", &e.Mistaken}, {"links refused between members that began with different states", &e.BornApart}, {"members that joined a restored cluster", &e.Adopted},
		{"starts", &e.Starts}, {"half starts", &e.HalfStarts}, {"crashes", &e.Crashes}, {"planned stops", &e.Stops}, {"leaders handed over before one", &e.Given}, {"half writes", &e.HalfWrites}, {"stopped by I/O errors", &e.IOErrors},
		{"dead disks", &e.DeadDisks}, {"frozen in a turn", &e.Frozen}, {"writes that found no room", &e.FullDisks}, {"disks nearly full", &e.LowDisks}, {"nonsense proposed", &e.Garbled}, {"away for longer than the log", &e.Away}, {"disks lost", &e.Wiped}, {"old disks put back", &e.OldDisks},
		{"links refused", &e.Strangers}, {"messages without a link", &e.Unlinked}, {"links to unknown members", &e.Guests}, {"members that moved", &e.Relocated}, {"members stopped that lost their disk", &e.Forgotten}, {"members that heard others first", &e.Newborn}, {"starts on full disks", &e.FullStarts}, {"elections", &e.Elections}, {"lost messages", &e.Lost}, {"damaged messages", &e.Damaged},
		{"leaders cut short", &e.CutShort}, {"copies of running disks put back", &e.HotCopies},
		{"snapshots", &e.Snapshots}, {"streams", &e.Streams}, {"broken streams", &e.BrokenStream}, {"installs", &e.Installs},
		{"joint configurations", &e.Joint}, {"configurations", &e.Changes}, {"members removed", &e.Retired}, {"removed members stopped", &e.Departed}, {"messages held up", &e.HeldUp},
		{"full frames", &e.FullFrames}, {"bytes in flight at their limit", &e.FullFlights}, {"proposals beyond the uncommitted bytes", &e.Uncommitted}, {"reads", &e.Reads}, {"reads asked of a replaced leader", &e.Stranded},
		{"records and snapshots damaged", &e.Rotten}, {"states damaged", &e.Spoilt}, {"damaged states replaced", &e.Replaced}, {"damaged snapshots found", &e.RotFound},
		{"writes refused", &e.Refused}, {"writes unknown", &e.Unknown}, {"failovers of a write", &e.Failovers},
		{"writes with a body", &e.Bodies}, {"bodies made whole", &e.Gathered}, {"bodies restored", &e.Backfilled},
		{"bodies released", &e.Released}, {"bodies damaged", &e.Damages}, {"damaged bodies found", &e.DamageFound},
		{"bodies not made whole", &e.GatherFailed}, {"questions and fragments without room", &e.Unheard}, {"whole copies trimmed", &e.Trimmed}, {"coded entries", &e.Coded}, {"bodies upgraded", &e.Upgrades},
		{"bodies wanted by new leaders", &e.Wanted}, {"logs cut by new leaders", &e.Deleted},
		{"bodies made whole for fewer members", &e.Restriped},
		{"snapshots that waited for another", &e.Waits}, {"skips", &e.Skips}, {"leaders moved", &e.Moved}, {"members reshaped", &e.Reshaped}, {"ahead of their state", &e.Planned},
		{"messages that waited for their instance", &e.Early},
	}
}

// codedFields is how many fields before the last ones need a protocol that codes bodies.
// wovenFields is how many of the last ones need a protocol that weaves instances. stagedFields is
// how many of the first ones chance brings about too seldom, where scenarios play those
// (TestLeaderCannotRead), or that other protocols have (TestWritesAreAnsweredEarly, TestBodiesTakeLanes).
const (
	stagedFields = 9
	codedFields  = 8
	wovenFields  = 5
)

type eventField struct {
	name  string
	count *int
}

func (e *Events) add(o *Events) {
	from := o.fields()
	for i, f := range e.fields() {
		*f.count += *from[i].count
	}
}

func (e Events) String() string {
	var b strings.Builder
	for i, f := range e.fields() {
		fmt.Fprintf(&b, "%s%d %s", mark(i > 0, ", "), *f.count, f.name)
	}
	return b.String()
}
