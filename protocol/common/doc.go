// Package common declares the settings that all protocols have, each once: those of a cluster's time, of what members
// keep of large commands, and of the instances of which the log is made. A protocol declares its own settings in its
// own package. See package setting for what follows from a declaration.
//
// How to read: settings.go (the declarations and their table), milliseconds.go (the flags of durations).
//
// May import: protocol, protocol/setting.
package common
