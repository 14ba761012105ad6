package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"
)

// The places where the controller manager works.
const (
	workNamespace   = "work"
	deploymentsPath = "/apis/apps/v1/namespaces/%s/deployments"
	replicaSetsPath = "/apis/apps/v1/namespaces/%s/replicasets"
	podsPath        = "/api/v1/namespaces/%s/pods"
	namespacesPath  = "/api/v1/namespaces"
	electionPath    = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/kube-controller-manager"
)

// amounts are the amounts of work.
type amounts struct {
	deployments int // the second half is deleted
	replicas    int // at first; those that stay are scaled to twice as many
	namespaces  int // that are deleted
}

// remaining is the number of Deployments that stay.
func (a *amounts) remaining() int { return a.deployments - a.deployments/2 }

// controllers is work for the controller manager: Deployments are created, scaled and deleted, and namespaces with a
// Deployment and ConfigMaps are deleted.
type controllers struct {
	*client
	amounts
	failures failures
}

// Work is the work of the controller manager, done and left.
type Work struct {
	PodsWanted       int `json:"pods_wanted"` // of the Deployments that stay
	Pods             int `json:"pods"`
	ReplicaSetsOwned int `json:"replica_sets"` // of them
	DependentsLeft   int `json:"dependents_left"`
	// Dependents are the ReplicaSets and Pods that had to be deleted with their Deployments.
	Dependents int `json:"dependents"`
	// Namespaces were deleted, and NamespacesLeft of them still exist.
	Namespaces     int     `json:"namespaces"`
	NamespacesLeft int     `json:"namespaces_left"`
	SettledS       float64 `json:"settled_s"` // from the end of the load until all was done
}

// done reports whether all has been done.
func (w *Work) done() bool {
	return w.Pods == w.PodsWanted && w.DependentsLeft == 0 && w.NamespacesLeft == 0
}

// named is an object of JSON.
type named map[string]any

func deployment(name string, replicas int) named {
	labels := named{"app": name}
	return named{
		"metadata": named{"name": name},
		"spec": named{"replicas": replicas, "selector": named{"matchLabels": labels}, "template": named{
			"metadata": named{"labels": labels},
			"spec":     named{"containers": []named{{"name": "c", "image": "registry.k8s.io/pause:3.10"}}},
		}},
	}
}

func deploymentName(i int) string   { return fmt.Sprintf("d-%02d", i) }
func deletedNamespace(i int) string { return fmt.Sprintf("deleted-%02d", i) }

// create creates an object unless it exists.
func (c *controllers) create(ctx context.Context, path string, object any) error {
	return c.until(ctx, &c.failures, http.MethodPost, path, object, http.StatusConflict)
}

// remove deletes an object, which may be gone.
func (c *controllers) remove(ctx context.Context, path string) error {
	return c.until(ctx, &c.failures, http.MethodDelete, path, named{"propagationPolicy": "Background"},
		http.StatusNotFound)
}

// prepare creates the namespaces.
func (c *controllers) prepare(ctx context.Context) error {
	names := []string{workNamespace, loadNamespace}
	for i := range c.namespaces {
		names = append(names, deletedNamespace(i))
	}
	for _, name := range names {
		if err := c.create(ctx, namespacesPath, named{"metadata": named{"name": name}}); err != nil {
			return err
		}
	}
	return nil
}

// run creates work while the load runs: in its first third all objects are created, in the second Deployments are
// scaled, and in the last Deployments and namespaces are deleted.
func (c *controllers) run(ctx context.Context, third time.Duration) error {
	began := time.Now()
	for part, step := range []func(context.Context) error{c.fill, c.scale, c.delete} {
		if !sleep(ctx, time.Until(began.Add(time.Duration(part)*third))) {
			return ctx.Err()
		}
		if err := step(ctx); err != nil {
			return err
		}
	}
	return nil
}

// fill creates Deployments, and objects in the namespaces that are deleted later.
func (c *controllers) fill(ctx context.Context) error {
	const configMapsEach = 10
	for i := range c.deployments {
		path := fmt.Sprintf(deploymentsPath, workNamespace)
		if err := c.create(ctx, path, deployment(deploymentName(i), c.replicas)); err != nil {
			return err
		}
	}
	for i := range c.namespaces {
		name := deletedNamespace(i)
		err := c.create(ctx, fmt.Sprintf(deploymentsPath, name), deployment(deploymentName(0), c.replicas))
		for n := 0; n < configMapsEach && err == nil; n++ {
			err = c.create(ctx, namespacesPath+"/"+name+"/configmaps", configMap(fmt.Sprintf("c-%d", n), ""))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// scale doubles the replicas of the Deployments that stay.
func (c *controllers) scale(ctx context.Context) error {
	for i := range c.remaining() {
		path := fmt.Sprintf(deploymentsPath, workNamespace) + "/" + deploymentName(i)
		to := named{"spec": named{"replicas": 2 * c.replicas}}
		if err := c.until(ctx, &c.failures, http.MethodPatch, path, to, 0); err != nil {
			return err
		}
	}
	return nil
}

// delete deletes the other Deployments, and the namespaces.
func (c *controllers) delete(ctx context.Context) error {
	for i := c.remaining(); i < c.deployments; i++ {
		if err := c.remove(ctx, fmt.Sprintf(deploymentsPath, workNamespace)+"/"+deploymentName(i)); err != nil {
			return err
		}
	}
	for i := range c.namespaces {
		if err := c.remove(ctx, namespacesPath+"/"+deletedNamespace(i)); err != nil {
			return err
		}
	}
	return nil
}

// settle waits until the controller manager has done all its work, at most for a time. The error is that of the last
// request, if none has shown the state of the work.
func (c *controllers) settle(ctx context.Context, limit time.Duration) (w *Work, err error) {
	const pause = 500 * time.Millisecond
	began := time.Now()
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	for {
		now, failed := c.progress(ctx)
		if failed == nil {
			w, err = now, nil
			w.SettledS = time.Since(began).Seconds()
		} else if w == nil {
			err = failed
		}
		if w != nil && w.done() || !sleep(ctx, pause) {
			return w, err
		}
	}
}

// progress counts the objects that exist.
func (c *controllers) progress(ctx context.Context) (*Work, error) {
	w := &Work{
		PodsWanted: c.remaining() * 2 * c.replicas, Namespaces: c.namespaces,
		Dependents: (c.deployments - c.remaining()) * (1 + c.replicas),
	}
	stays := map[string]bool{}
	for i := range c.remaining() {
		stays[deploymentName(i)] = true
	}
	for path, count := range map[string]*int{podsPath: &w.Pods, replicaSetsPath: &w.ReplicaSetsOwned} {
		var all list
		if err := c.do(ctx, http.MethodGet, fmt.Sprintf(path, workNamespace), nil, &all); err != nil {
			return nil, err
		}
		for _, o := range all.Items {
			if stays[o.Metadata.Labels["app"]] {
				*count++
			} else {
				w.DependentsLeft++
			}
		}
	}
	for i := range c.namespaces {
		err := c.do(ctx, http.MethodGet, namespacesPath+"/"+deletedNamespace(i), nil, nil)
		if err == nil {
			w.NamespacesLeft++
		} else if codeOf(err) != http.StatusNotFound {
			return nil, err
		}
	}
	return w, nil
}

// transitions returns how often the leadership of the controller manager has changed. It waits until there is a leader.
func (c *controllers) transitions(ctx context.Context) (int, error) {
	const pause = 200 * time.Millisecond
	for {
		var lease object
		err := c.do(ctx, http.MethodGet, electionPath, nil, &lease)
		if err == nil && lease.Spec.HolderIdentity != "" {
			return lease.Spec.LeaseTransitions, nil
		}
		if !sleep(ctx, pause) {
			return 0, fmt.Errorf("the controller manager has no leader: %w", errors.Join(err, ctx.Err()))
		}
	}
}
