// Package common declares the settings that all protocols have, each once: those of timing, of the placement of large
// commands, and of the instances that are merged into the log. A protocol declares its own settings in its own
// package. Package setting derives everything else from a declaration.
//
// How to read: settings.go (the declarations and their table), tune.go (what a profile means to a core),
// milliseconds.go (the flags of durations).
//
// May import: protocol, protocol/setting.
package common
