package embed

// Etcd is a running cluster.
type Etcd struct {
	Server *Server
	up     *up
}

// StartEtcd starts a cluster of braid and waits until all members are ready.
func StartEtcd(config *Config) (*Etcd, error) {
	u, err := start(config)
	if err != nil {
		return nil, err
	}
	return &Etcd{Server: &Server{u}, up: u}, nil
}

// Close stops the cluster and waits for its end.
func (e *Etcd) Close() { e.up.stop() }

// Err returns a channel with the fault of a cluster that was not closed. It is closed when the cluster has ended.
func (e *Etcd) Err() <-chan error { return e.up.faults }

// Server is the cluster as the tests look at it.
type Server struct{ up *up }

// ReadyNotify returns a closed channel: [StartEtcd] waits until all members are ready.
func (s *Server) ReadyNotify() <-chan struct{} { return s.up.ready }

// Stop stops the cluster.
func (s *Server) Stop() { s.up.stop() }

// Cluster returns what has the addresses.
func (s *Server) Cluster() Cluster { return Cluster{s.up.urls} }

// Cluster has the addresses of the members.
type Cluster struct{ urls []string }

// ClientURLs returns where members serve clients.
func (c Cluster) ClientURLs() []string { return c.urls }
