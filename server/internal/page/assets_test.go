package page

import (
	"net/http"
	"net/http/httptest"
	"path"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func get(t *testing.T, from string, header http.Header) *http.Response {
	t.Helper()
	r := httptest.NewRequest(http.MethodGet, from, nil)
	for name, values := range header {
		r.Header[name] = values
	}
	w := httptest.NewRecorder()
	Assets().ServeHTTP(w, r)
	return w.Result()
}

// references are the files of the dashboard that the content of one names.
var references = regexp.MustCompile(`"(/dash/[\w./-]+)"|from "(\./[\w.-]+)"`)

// TestAssets: all that the page loads is there, with types that browsers accept, and is cached until it changes.
func TestAssets(t *testing.T) {
	loaded := map[string]bool{}
	for todo := []string{"/"}; len(todo) > 0; todo = todo[1:] {
		name := todo[0]
		if loaded[name] {
			continue
		}
		loaded[name] = true
		answer := get(t, name, nil)
		require.Equal(t, http.StatusOK, answer.StatusCode, name)
		require.Contains(t, answer.Header.Get("Content-Security-Policy"), "default-src 'self'", name)
		require.NotContains(t, answer.Header.Get("Content-Security-Policy"), "unsafe", name)
		again := get(t, name, http.Header{"If-None-Match": {answer.Header.Get("ETag")}})
		require.Equal(t, http.StatusNotModified, again.StatusCode, name)
		file := strings.TrimPrefix(name, AssetsPath)
		kind := map[string]string{".js": "text/javascript", ".css": "text/css", ".svg": "image/svg+xml"}[path.Ext(file)]
		require.Contains(t, answer.Header.Get("Content-Type"), kind, name)
		if strings.HasPrefix(file, "uplot/") {
			continue // it names nothing
		}
		if name == "/" {
			file = "index.html"
		}
		for _, m := range references.FindAllStringSubmatch(string(assets()[file].content), -1) {
			if m[1] != "" {
				todo = append(todo, m[1])
			} else {
				todo = append(todo, AssetsPath+m[2][2:])
			}
		}
	}
	for name := range assets() {
		file := AssetsPath + name
		require.True(t, loaded[file] || name == "index.html" || path.Dir(name) == "uplot", "%s is not used", name)
	}
	require.Equal(t, http.StatusNotFound, get(t, "/dash/none.js", nil).StatusCode)
	require.Equal(t, http.StatusNotFound, get(t, "/dash/../page.go", nil).StatusCode)
}

// TestAssetsMakeTextOfData: no data of a cluster can become a part of the page that is not text, and nothing in the
// page needs a policy that lets scripts or styles be written into it.
func TestAssetsMakeTextOfData(t *testing.T) {
	dangerous := regexp.MustCompile(`innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function`)
	inline := regexp.MustCompile(`<script(>|[^>]*>[^<])|<style|\son\w+="|\sstyle="`)
	for name, a := range assets() {
		if path.Dir(name) == "uplot" {
			continue
		}
		require.Empty(t, dangerous.FindString(string(a.content)), name)
		if path.Ext(name) == ".html" {
			require.Empty(t, inline.FindString(string(a.content)), name)
		}
	}
}
