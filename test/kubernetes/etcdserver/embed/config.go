package embed

import (
	"errors"
	"fmt"
	"net/url"
	"time"

	"go.etcd.io/etcd/client/pkg/v3/transport"
	"go.uber.org/zap"
)

// Config is what Kubernetes' tests set. Names, addresses and loggers have no effect: `braid up` chooses its own.
type Config struct {
	Name, Dir, InitialCluster                                                string
	ListenPeerUrls, AdvertisePeerUrls, ListenClientUrls, AdvertiseClientUrls []url.URL
	UnsafeNoFsync                                                            bool // every acknowledged write is synced
	ZapLoggerBuilder                                                         func(*Config) error
	ClientTLSInfo                                                            transport.TLSInfo
	WatchProgressNotifyInterval                                              time.Duration
	QuotaBackendBytes                                                        int64
}

// NewConfig returns a configuration without settings.
func NewConfig() *Config { return &Config{Name: "default"} }

// NewZapLoggerBuilder returns nothing that is used.
func NewZapLoggerBuilder(*zap.Logger) func(*Config) error { return nil }

// InitialClusterFromName returns nothing that is used.
func (c *Config) InitialClusterFromName(name string) string { return name }

// environment are the settings as variables that members read.
func (c *Config) environment() ([]string, error) {
	if !c.ClientTLSInfo.Empty() {
		return nil, errors.New("braid up serves clients without TLS")
	}
	var all []string
	if c.WatchProgressNotifyInterval > 0 {
		all = append(all, "ETCD_WATCH_PROGRESS_NOTIFY_INTERVAL="+c.WatchProgressNotifyInterval.String())
	}
	if c.QuotaBackendBytes != 0 {
		all = append(all, fmt.Sprintf("ETCD_QUOTA_BACKEND_BYTES=%d", c.QuotaBackendBytes))
	}
	return all, nil
}
