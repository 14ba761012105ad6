// Package page is the status page of a member: its view of itself, its instances and the other members, as JSON and as
// HTML.
//
// view.go is the view (its fields are the JSON), with its parts in lanes.go, epochs.go, links.go and fit.go; page.go
// and page.html make HTML of it.
//
// May import: the root package.
package page
