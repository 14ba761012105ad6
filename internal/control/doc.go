// Package control serves the dashboard of a cluster that runs on this machine, with controls for its members.
//
// It is the HTTP side alone: the operations are those of a [Cluster], which the caller provides. control.go has the
// paths below /up and their JSON, guard.go refuses requests of other sites, proxy.go passes the requests of
// the page on to a member that answers, choice.go finds one.
//
// It imports nothing of braid.
package control
