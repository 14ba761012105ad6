// Package deploy has the files that run braid on machines, in the folders docker, systemd and kubernetes, and those
// that monitor it, in prometheus and grafana. docs/using/deploy.md describes their use. The package itself is empty;
// its tests try the files:
//
//   - dashboard_test.go writes the dashboard of Grafana from panels_test.go, which lists its panels.
//   - rules_test.go reads the alert rules.
//   - prometheus_linux_test.go has Prometheus scrape a cluster, and runs all queries of dashboard and rules.
//   - systemd_linux_test.go runs the unit, as braid's own user, with a systemd of its own.
//   - container_linux_test.go builds and runs the image.
//   - statefulset_linux_test.go runs members as the StatefulSet does, and adds and replaces one as the page says.
//   - run_linux_test.go builds braid and runs programs.
//
// All but the first two are the campaign "deploy", which needs Debian's packages prometheus, systemd, podman and runc,
// and root.
package deploy
