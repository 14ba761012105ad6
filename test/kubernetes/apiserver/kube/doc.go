// Package kube is a module of requirements alone: go.mod names the programs of Kubernetes that are built
// here, kube-apiserver and kube-controller-manager, as tools. It replaces modules that Kubernetes keeps in its own
// repository by the published ones of the same version.
package kube
