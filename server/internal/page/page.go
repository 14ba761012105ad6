package page

import (
	_ "embed" // of page.html
	"html/template"
	"io"
)

//go:embed page.html
var text string

var page = template.Must(template.New("status").Parse(text))

// Write writes the page of a view as HTML.
func Write(w io.Writer, v *View) error { return page.Execute(w, v) }
