// Package netspec reads specifications of emulated links.
//
// May import: nothing of braid.
package netspec
