package settings

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/pflag"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// Discovery is how a member that founds a cluster finds the others, where --initial-cluster does not name them.
type Discovery struct {
	// SRVDomain has SRV records of the members, of the services etcd-server-ssl and etcd-server; SRVName follows the
	// services' names.
	SRVDomain, SRVName string
	// Registry is a cluster of etcd or braid in which the members of DiscoveryToken register, until there are as many as
	// is written there.
	Registry       clientv3.ConfigSpec
	DiscoveryToken string

	secure   clientv3.SecureConfig
	user     string
	password string
}

// Discovers reports whether the initial cluster is to be found.
func (d *Discovery) Discovers() bool { return d.SRVDomain != "" || len(d.Registry.Endpoints) > 0 }

func (d *Discovery) flags(f *pflag.FlagSet) {
	f.StringVar(&d.SRVDomain, "discovery-srv", "", "domain with SRV records of the members that found the cluster, in "+
		"place of --initial-cluster")
	f.StringVar(&d.SRVName, "discovery-srv-name", "", "end of the service's name in these records, as NAME in "+
		"_etcd-server-NAME._tcp")
	f.StringSliceVar(&d.Registry.Endpoints, "discovery-endpoints", nil, "endpoints of another cluster in which the "+
		"members that found this one register, in place of --initial-cluster")
	f.StringVar(&d.DiscoveryToken, "discovery-token", "", "name under which they register there; it takes the place of "+
		"--initial-cluster-token")
	f.DurationVar(&d.Registry.DialTimeout, "discovery-dial-timeout", 2*time.Second, "time to connect to that cluster")
	f.DurationVar(&d.Registry.RequestTimeout, "discovery-request-timeout", 5*time.Second, "time for its answer")
	f.DurationVar(&d.Registry.KeepAliveTime, "discovery-keepalive-time", 2*time.Second, "time between pings to it")
	f.DurationVar(&d.Registry.KeepAliveTimeout, "discovery-keepalive-timeout", 6*time.Second, "time for its answer to one")
	f.BoolVar(&d.secure.InsecureTransport, "discovery-insecure-transport", true, "connect to it without TLS unless a "+
		"certificate or an authority is given")
	f.BoolVar(&d.secure.InsecureSkipVerify, "discovery-insecure-skip-tls-verify", false, "do not verify its certificate "+
		"(tests only)")
	f.StringVar(&d.secure.Cert, "discovery-cert", "", "certificate to present to it")
	f.StringVar(&d.secure.Key, "discovery-key", "", "its key")
	f.StringVar(&d.secure.Cacert, "discovery-cacert", "", "CA that signs its certificates")
	f.StringVar(&d.user, "discovery-user", "", "user there, as NAME or NAME:PASSWORD")
	f.StringVar(&d.password, "discovery-password", "", "password of that user")
}

// complete puts the parts together that have flags of their own.
func (d *Discovery) complete() {
	d.Registry.Secure = &d.secure
	if d.user == "" {
		return
	}
	name, password, both := strings.Cut(d.user, ":")
	if !both {
		password = d.password
	}
	d.Registry.Auth = &clientv3.AuthConfig{Username: name, Password: password}
}

// checkDiscovery demands what etcd does.
func (s *Settings) checkDiscovery() error {
	var errs []error
	ways := 0
	for _, given := range []bool{s.clusterGiven, s.SRVDomain != "", len(s.Registry.Endpoints) > 0} {
		if given {
			ways++
		}
	}
	if ways > 1 {
		errs = append(errs, errors.New("--initial-cluster, --discovery-srv and --discovery-endpoints exclude each other"))
	}
	if (s.DiscoveryToken == "") != (len(s.Registry.Endpoints) == 0) {
		errs = append(errs, errors.New("--discovery-token and --discovery-endpoints go together"))
	}
	for _, endpoint := range s.Registry.Endpoints {
		if strings.TrimSpace(endpoint) == "" {
			errs = append(errs, errors.New("--discovery-endpoints: an endpoint is empty"))
		}
	}
	if (s.secure.Cert == "") != (s.secure.Key == "") {
		errs = append(errs, errors.New("--discovery-cert and --discovery-key go together"))
	}
	if s.Discovers() && len(s.InitialZones) > 0 {
		errs = append(errs, errors.New("--initial-cluster-zones needs --initial-cluster: a member that discovers the others "+
			"does not know their zones, give each its own with --zone"))
	}
	return errors.Join(errs...)
}

// Discovered sets the initial cluster that was found, in which this member may have another name, and checks it.
func (s *Settings) Discovered(cluster, name string) error {
	s.InitialCluster, s.InitialName = cluster, name
	if s.SRVDomain == "" {
		s.Token = s.DiscoveryToken
	} else if peers, err := s.Peers(); err == nil {
		for _, p := range peers {
			if p.Name == name {
				s.AdvertisePeer = p.URLs // the same address, by the name that the others have
			}
		}
	}
	if err := s.checkCluster(); err != nil {
		return fmt.Errorf("the cluster that was discovered, %s: %w", cluster, err)
	}
	return nil
}
