// Package settings turns flags, environment variables and a configuration file into the
// settings of one member, and says clearly what is wrong with them.
//
// Names are etcd's where etcd has one, so that its manifests and habits carry over.
// settings.go holds the fields and their flags, log.go those that the members of a cluster
// share, sources.go the file and the variables, check.go what makes sense together, tls.go the
// certificates, own.go the flags of what only some protocols have, etcd.go the flags of etcd that have no meaning here.
//
// It imports nothing of braid: what the settings mean to a server is wired in cmd/braid.
package settings
