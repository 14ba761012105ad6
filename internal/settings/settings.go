package settings

import (
	"time"

	"github.com/spf13/pflag"

	"github.com/braidlog/braid/protocol/common"
)

// defaultTokenTTL is the lifetime of a simple token in seconds.
const defaultTokenTTL = 300

// States of --initial-cluster-state.
const (
	StateNew      = "new"
	StateExisting = "existing"
)

// Settings are those of one member. Sizes are in bytes.
type Settings struct {
	Name    string
	DataDir string
	WALDir  string // of the log; "": in DataDir
	Zone    string // where this member is; "": as the membership has it

	ListenClient, AdvertiseClient []string // URLs
	ListenPeer, AdvertisePeer     []string // URLs
	ListenMetrics                 []string // URLs
	// ListenHTTP are further URLs for clients. What is served is the same as on ListenClient.
	ListenHTTP []string
	ReusePort  bool // other processes may listen on the same ports

	InitialCluster string   // name=URL,name=URL…
	InitialName    string   // of this member there
	InitialZones   []string // name=zone of each member in InitialCluster, or nil
	InitialState   string   // StateNew or StateExisting
	Token          string
	ForceNew       bool     // begin a new cluster of this member alone, with its data
	Join           []string // peer URLs of a running cluster, or URLs for clients, for StateExisting

	ClientTLS, PeerTLS TLS
	PeerTLSByURL       bool
	PeerTLSBinds       bool
	Log
	Access
	Limits
	Monitor
	Database
	Output
	Discovery

	SnapshotBytes           int
	KeepLogBytes            int
	QuotaBytes              int64
	MaxTxnOps               uint
	MaxConcurrentStreams    uint32
	WatchProgressInterval   time.Duration
	CompactHashCheckTime    time.Duration // 0: never
	CorruptCheckTime        time.Duration // 0: never
	AutoCompactionMode      string        // periodic or revision
	AutoCompactionRetention string        // hours or a duration; a number of revisions; "0": off
	AuthToken               string
	AuthTokenTTL            uint // seconds
	BcryptCost              uint
	EnableGRPCGateway       bool
	GCPercent               int
	MemoryLimit             int64 // 0: half of the machine's
	LockMemory              bool  // keep it from being swapped out
	UnsafeNoFsync           bool  // sync nothing to the disk
	MaxLearners             int
	StrictReconfig          bool // demand what etcd does before a change of members
	gates                   string
	advertises              bool // AdvertiseClient was given
	clusterGiven            bool // InitialCluster was given
	protocolGiven           bool // --protocol, its variable or its key
	foreign                 []*foreign
	noted                   []string // what loading found to have no effect
	configFile              string
}

// TLS is one side's certificates, and the certificates that it accepts.
type TLS struct {
	// Auto: without a certificate the member makes a self-signed one: see [Settings.MakeCertificates].
	Auto                             bool
	CertFile, KeyFile, TrustedCAFile string
	// DialCertFile and DialKeyFile are used for connections that this member opens; "": CertFile and KeyFile.
	DialCertFile, DialKeyFile string
	// CRLFile lists revoked certificates; it is read again for every connection.
	CRLFile        string
	ClientCertAuth bool
	// AllowedNames are common names, AllowedHosts are host names; a certificate must have one of them; nil: any.
	AllowedNames, AllowedHosts []string
	*TLSVersions
}

// TLSVersions are the settings that both sides' TLS shares.
type TLSVersions struct {
	Years    uint     // until a certificate ends that the member made
	Min, Max string   // TLS1.2, TLS1.3, or "" for Go's own
	Ciphers  []string // names of crypto/tls; nil: Go's own
}

// Enabled reports whether there is a certificate, or will be one.
func (t TLS) Enabled() bool { return t.Auto || t.hasFiles() }

func (t TLS) hasFiles() bool { return t.CertFile != "" || t.KeyFile != "" }

// Flags registers the settings' flags; parsing them fills in s.
func (s *Settings) Flags(f *pflag.FlagSet) {
	s.memberFlags(f)
	s.tlsFlags(f)
	s.limitFlags(f)
	s.Log.Flags(f)
	s.Access.flags(f)
	s.Limits.flags(f)
	s.Monitor.flags(f)
	s.Database.flags(f)
	s.Output.flags(f)
	s.Discovery.flags(f)
	s.processFlags(f)
	s.foreignFlags(f)
	takeExperimental(f)
}

func (s *Settings) memberFlags(f *pflag.FlagSet) {
	f.StringVar(&s.Name, "name", "default", "name of this member, as in --initial-cluster")
	f.StringVar(&s.Zone, "zone", "", "zone of this member, as in eu-west-1 (default as in --initial-cluster-zones, and "+
		"later as it is); another one changes the membership")
	f.StringVar(&s.DataDir, "data-dir", "", "directory of this member's data (default NAME.braid)")
	f.StringVar(&s.WALDir, "wal-dir", "", "directory of this member's log, with its snapshots and large values, as on a "+
		"disk of its own (default in --data-dir)")
	f.StringSliceVar(&s.ListenClient, "listen-client-urls", []string{"http://localhost:2379"},
		"URLs to serve clients on; one port may be of http and https, and unix:///FILE or unixs:///FILE is a socket")
	f.StringSliceVar(&s.AdvertiseClient, "advertise-client-urls", nil,
		"URLs where clients reach this member (default --listen-client-urls; required if that is of all interfaces)")
	f.StringSliceVar(&s.ListenHTTP, "listen-client-http-urls", nil,
		"further URLs to serve clients on, which are not advertised; like the others they have gRPC and HTTP")
	f.StringSliceVar(&s.ListenPeer, "listen-peer-urls", []string{"http://localhost:2380"},
		"URLs to accept other members on, one per network card")
	f.StringSliceVar(&s.AdvertisePeer, "initial-advertise-peer-urls", nil,
		"URLs where other members reach this one (default --listen-peer-urls)")
	f.StringSliceVar(&s.ListenMetrics, "listen-metrics-urls", nil,
		"further URLs for /metrics, /health, /livez and /readyz alone; https has the certificate for clients")
	f.BoolVar(&s.ReusePort, "socket-reuse-port", false, "listen on ports on which other processes listen with this "+
		"option (SO_REUSEPORT); the system distributes connections among them")
	f.StringVar(&s.InitialCluster, "initial-cluster", "", "all members as NAME=PEER-URL,… (default this one alone)")
	f.StringSliceVar(&s.InitialZones, "initial-cluster-zones", nil, "zones of all members of --initial-cluster as "+
		"NAME=ZONE,…, equal on all: quorums may depend on them")
	f.StringVar(&s.InitialState, "initial-cluster-state", StateNew,
		"new: found the cluster; existing: join a running one, with its members in --initial-cluster or --join")
	f.StringVar(&s.Token, "initial-cluster-token", "etcd-cluster", "equal on all members, different for every cluster")
	f.BoolVar(&s.ForceNew, "force-new-cluster", false, "begin a new cluster of this member alone with its data, once: "+
		"for a cluster that has lost its majority permanently, see braid salvage")
	f.StringSliceVar(&s.Join, "join", nil, "peer URLs of members of the running cluster to join; or, while auth is "+
		"off, URLs for clients")
	f.StringVar(&s.gates, "feature-gates", "", "etcd's features as NAME=true,NAME=false,…; all are as they are, and a "+
		"warning tells which differ")
	f.StringVar(&s.configFile, "config-file", "", "YAML file with these flags' names as keys")
}

func (s *Settings) tlsFlags(f *pflag.FlagSet) {
	versions := &TLSVersions{}
	s.ClientTLS.TLSVersions, s.PeerTLS.TLSVersions = versions, versions
	for _, side := range []struct {
		tls                     *TLS
		prefix, restricts, what string
	}{{&s.ClientTLS, "", "client-", "clients"}, {&s.PeerTLS, "peer-", "peer-", "other members"}} {
		f.BoolVar(&side.tls.Auto, side.prefix+"auto-tls", false, "make a self-signed certificate, unless one is given: "+
			"connections of "+side.what+" are encrypted, and no certificate is verified")
		f.StringVar(&side.tls.CertFile, side.prefix+"cert-file", "", "certificate to present to "+side.what)
		f.StringVar(&side.tls.KeyFile, side.prefix+"key-file", "", "its key")
		f.StringVar(&side.tls.TrustedCAFile, side.prefix+"trusted-ca-file", "",
			"CA that signs the certificates of "+side.what)
		f.BoolVar(&side.tls.ClientCertAuth, side.prefix+"client-cert-auth", false, "require a certificate of "+side.what)
		f.StringVar(&side.tls.CRLFile, side.restricts+"crl-file", "", "list of revoked certificates of "+side.what+
			" (DER), read again for every connection")
		f.StringSliceVar(&side.tls.AllowedHosts, side.restricts+"cert-allowed-hostname", nil,
			"host names; the certificates of "+side.what+" must have one of them")
	}
	f.StringSliceVar(&s.PeerTLS.AllowedNames, "peer-cert-allowed-cn", nil,
		"common names; the certificates of other members must have one of them")
	f.StringVar(&s.PeerTLS.DialCertFile, "peer-client-cert-file", "",
		"certificate to present when connecting to other members (default --peer-cert-file)")
	f.StringVar(&s.PeerTLS.DialKeyFile, "peer-client-key-file", "", "its key")
	f.BoolVar(&s.PeerTLSBinds, "peer-cert-names-host", false, "require that the certificate of a connecting member "+
		"names the host of one of its peer URLs, so that no member can impersonate another")
	f.BoolVar(&s.PeerTLSByURL, "peer-tls-by-url", false, "for a change from plain links between members to TLS, "+
		"or back: dial members by http or https according to their peer URLs, and accept both")
	f.StringVar(&versions.Min, "tls-min-version", "TLS1.2", "lowest version of TLS: TLS1.2 or TLS1.3")
	f.StringVar(&versions.Max, "tls-max-version", "",
		"highest version of TLS: TLS1.2 or TLS1.3 (default the highest)")
	f.UintVar(&versions.Years, "self-signed-cert-validity", 1, "years until a certificate ends that the member made")
	f.StringSliceVar(&versions.Ciphers, "cipher-suites", nil,
		"cipher suites of TLS 1.2, by the names of Go's crypto/tls (default Go's)")
}

func (s *Settings) limitFlags(f *pflag.FlagSet) {
	CommonFlags(f, common.Time, &s.Values)
	f.IntVar(&s.KeepLogBytes, "keep-log-bytes", 0, "bytes of log that are kept for members that catch up, even during "+
		"a snapshot transfer (0: four times --snapshot-bytes)")
	f.IntVar(&s.SnapshotBytes, "snapshot-bytes", 256<<20, "bytes of log between snapshots")
	f.Int64Var(&s.QuotaBytes, "quota-backend-bytes", 0,
		"size of the database above which writes are refused (0: 2 GiB, negative: no limit)")
	f.UintVar(&s.MaxTxnOps, "max-txn-ops", 128, "maximal number of operations of a transaction")
	f.IntVar(&s.MaxLearners, "max-learners", 1, "maximal number of learners at a time")
	f.BoolVar(&s.StrictReconfig, "strict-reconfig-check", true, "refuse changes of members as etcd does; without it only "+
		"those after which no majority would decide")
	f.Uint32Var(&s.MaxConcurrentStreams, "max-concurrent-streams", 4096,
		"maximal number of concurrent calls on a client's connection; further ones wait in the client")
	f.DurationVar(&s.CompactHashCheckTime, "compact-hash-check-time", time.Minute,
		"interval of comparing the hashes that members computed at compactions (0: never)")
	f.DurationVar(&s.CorruptCheckTime, "corrupt-check-time", 0,
		"interval of comparing new hashes of the whole history; a member does not write meanwhile (0: never)")
	f.DurationVar(&s.WatchProgressInterval, "watch-progress-notify-interval", 10*time.Minute,
		"interval of progress notifications of an idle watch")
	f.StringVar(&s.AutoCompactionMode, "auto-compaction-mode", "periodic", "periodic or revision")
	f.StringVar(&s.AutoCompactionRetention, "auto-compaction-retention", "0",
		"history that is kept: hours or a duration such as 30m (periodic), a number of revisions (revision); 0: all")
	f.StringVar(&s.AuthToken, "auth-token", "simple", "simple, or jwt,pub-key=…,priv-key=…,sign-method=…")
	f.UintVar(&s.AuthTokenTTL, "auth-token-ttl", defaultTokenTTL, "seconds until an unused simple token expires")
	f.UintVar(&s.BcryptCost, "bcrypt-cost", 10, "cost of hashing passwords, 4 to 31")
	f.BoolVar(&s.EnableGRPCGateway, "enable-grpc-gateway", true, "serve the API as JSON under /v3/ too")
}

func (s *Settings) processFlags(f *pflag.FlagSet) {
	f.IntVar(&s.GCPercent, "gc-percent", 400, "growth of the heap between garbage collections, in percent, up to 16 "+
		"MiB or, if that is more, half of the live heap or its part with pointers; the variable GOGC wins")
	f.BoolVar(&s.UnsafeNoFsync, "unsafe-no-fsync", false, "do not wait for disks: if the machine or its power fails, "+
		"acknowledged writes are lost, and this member's data may be damaged (tests only)")
	f.BoolVar(&s.LockMemory, "memory-mlock", false, "keep the database's pages in memory from being swapped out")
	f.Int64Var(&s.MemoryLimit, "memory-limit-bytes", 0,
		"heap above which garbage is collected more often (0: half of the machine's memory); GOMEMLIMIT wins")
}
