// Package lint has the repository's own rules as tests: what a package may import, what the pure packages may not do,
// how long a function may be, which phrases comments do not use, and that comments and pages cite only what exists.
// Its tests read the source and fail with the file and the line; the package itself is empty.
package lint
