package cluster

import (
	"slices"
	"time"

	"github.com/braidlog/braid/internal/fit"
	"github.com/braidlog/braid/internal/member"
	"github.com/braidlog/braid/protocol"
	"github.com/braidlog/braid/protocol/common"
)

// FitView is what a member knows of the cluster when it leads the global log and its fitter decides. Members report
// every span. changing: this member carries out an operation. The caller fills in Wall and Protocol.
func FitView(v *MemberView, self protocol.MemberID, reports *fit.Heard, span time.Duration, changing bool) *fit.View {
	at, configs := v.Applied.At()
	config := &configs[0]
	w := &fit.View{Now: v.Now, Mode: common.Fit.In(config.Profile.Values), Profile: config.Profile,
		Instances: len(at.Points), Changing: changing || v.Changing()}
	for _, p := range at.Points {
		leader := protocol.MemberID(0)
		i := slices.IndexFunc(v.Instances, func(st *protocol.Status) bool { return st.Instance == p.Instance })
		if i >= 0 {
			leader = v.Instances[i].Leader
		}
		w.Leaders = append(w.Leaders, leader)
		w.Changing = w.Changing || leader == 0
	}
	for i := range config.Members {
		m := &config.Members[i]
		r, ok := reports.Fresh(m.ID, v.Now, span)
		if ok {
			w.Reports = append(w.Reports, r)
		}
		if config.Voter(m.ID) {
			w.Members = append(w.Members, fit.Member{ID: m.ID, Name: m.Name, Zone: m.Zone,
				Present: m.ID == self || ok && v.keepsUp(m.ID), Drained: slices.Contains(v.Drained, m.ID)})
		}
	}
	return w
}

// keepsUp reports whether a member has a link and, as far as this member knows, nearly all of each instance.
func (v *MemberView) keepsUp(id protocol.MemberID) bool {
	if v.Up != nil && !v.Up(id) {
		return false
	}
	for _, st := range v.Instances {
		for i := range st.Peers {
			if p := &st.Peers[i]; p.ID == id && !member.KeepsUp(p, st.Commit) {
				return false
			}
		}
	}
	return true
}
