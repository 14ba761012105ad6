// Package settings turns flags, environment variables and a configuration file into the settings of one member, with
// clear errors.
//
// Names are etcd's where etcd has one, so that its manifests and habits carry over. settings.go holds the fields and
// their flags, log.go those that the members of a cluster share, access.go how clients may connect, limits.go how much
// they may ask for, monitor.go what the member measures and warns of, database.go how its database is written,
// output.go where it logs, sources.go the file and the variables, check.go the validation, urls.go the URLs to listen
// on and to dial, advertise.go those that are given to others, discovery.go how members are found that found a
// cluster, zones.go the zones of members, tls.go the certificates, selfsigned.go those that the member makes, own.go
// the flags of settings that only some protocols have, gates.go etcd's features, etcd.go the flags of etcd that have
// no meaning here.
//
// cmd/braid passes the settings to the server.
package settings
