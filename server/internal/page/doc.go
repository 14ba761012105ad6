// Package page is what a member shows of itself: its view of itself, its instances and the other members, as JSON, and
// the dashboard, a page that draws this.
//
// view.go is the view (its fields are the JSON), with its parts in lanes.go, epochs.go, links.go and fit.go; serving.go
// says which requests are answered, and what to do about alarms. assets.go serves the dashboard, which are the files of
// the folder assets.
//
// May import: the root package.
package page
