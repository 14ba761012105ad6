// Command browser opens the dashboard of clusters in headless Chromium. Its tests start clusters with braid up, and
// look at what the page shows and whether its controls work; -screenshots makes the pictures of the documentation,
// and -cost measures the cost of open pages.
//
// page.go is a page in a browser, cluster.go a cluster that braid up runs, pictures.go the pictures, cost.go
// the cost, main.go the command.
//
// It is a module of its own, so that the library's needs no browser.
package main
