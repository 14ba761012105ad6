// Package lint holds the repository's own rules as tests: what a room may import, what the pure
// rooms may not do, how long a function may be, and that comments and pages cite what exists. Its
// tests read the source and fail with the file and the line; the package itself is empty.
package lint
