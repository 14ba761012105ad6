package page

import (
	"bytes"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"io/fs"
	"mime"
	"net/http"
	"path"
	"strings"
	"time"
)

//go:embed assets
var files embed.FS

// policy lets the dashboard load and ask nothing but what this member serves.
const policy = "default-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; object-src 'none'"

// AssetsPath is where the files of the dashboard are.
const AssetsPath = "/dash/"

// asset is a file of the dashboard.
type asset struct {
	content   []byte
	kind, tag string
}

// Assets serves the dashboard at / and AssetsPath, and its files below that. They have no data of a cluster, so
// strangers may have them. The handler is safe for concurrent use.
func Assets() http.Handler {
	all := assets()
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		name := strings.TrimPrefix(r.URL.Path, AssetsPath)
		if name == "/" || name == "" {
			name = "index.html"
		}
		a, ok := all[name]
		if !ok {
			http.NotFound(w, r)
			return
		}
		head := w.Header()
		head.Set("Content-Type", a.kind)
		head.Set("ETag", a.tag)
		head.Set("Cache-Control", "no-cache") // ask whether it has changed: a member may be upgraded
		head.Set("Content-Security-Policy", policy)
		head.Set("X-Content-Type-Options", "nosniff")
		head.Set("Referrer-Policy", "no-referrer")
		http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(a.content))
	})
}

// kinds are the types of files, which do not depend on the machine.
var kinds = map[string]string{".js": "text/javascript; charset=utf-8", ".css": "text/css; charset=utf-8"}

// assets are the files by their names below AssetsPath.
func assets() map[string]asset {
	const root = "assets"
	all := map[string]asset{}
	err := fs.WalkDir(files, root, func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		content, err := files.ReadFile(name)
		if err != nil {
			return err
		}
		kind, sum := kinds[path.Ext(name)], sha256.Sum256(content)
		if kind == "" {
			if kind = mime.TypeByExtension(path.Ext(name)); kind == "" {
				kind = "text/plain; charset=utf-8"
			}
		}
		all[strings.TrimPrefix(name, root+"/")] = asset{content, kind, `"` + hex.EncodeToString(sum[:12]) + `"`}
		return nil
	})
	if err != nil {
		panic("page: the embedded files: " + err.Error()) // they are part of the program
	}
	return all
}
