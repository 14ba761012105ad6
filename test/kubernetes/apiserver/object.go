package main

import "strconv"

// loadNamespace is where the objects of the load are.
const loadNamespace = "load"

// configMaps is the path of the objects of the load.
const configMaps = "/api/v1/namespaces/" + loadNamespace + "/configmaps"

// object has the fields of an object of Kubernetes that are used here.
type object struct {
	Metadata metadata          `json:"metadata"`
	Data     map[string]string `json:"data,omitempty"`
	Spec     struct {
		HolderIdentity   string `json:"holderIdentity,omitempty"`   // of a Lease
		LeaseTransitions int    `json:"leaseTransitions,omitempty"` // of a Lease
	} `json:"spec,omitzero"`
}

type metadata struct {
	Name            string            `json:"name"`
	ResourceVersion string            `json:"resourceVersion,omitempty"`
	Labels          map[string]string `json:"labels,omitempty"`
}

// list has the fields of a list that are used here.
type list struct {
	Metadata metadata `json:"metadata"`
	Items    []object `json:"items"`
}

// valueKey is the key of the value in an object of the load.
const valueKey = "value"

// configMap returns an object of the load.
func configMap(name, value string) *object {
	return &object{Metadata: metadata{Name: name}, Data: map[string]string{valueKey: value}}
}

// version is the resource version, 0 if there is none.
func (m *metadata) version() int64 {
	v, err := strconv.ParseInt(m.ResourceVersion, 10, 64)
	if err != nil {
		return 0
	}
	return v
}
