package main

import (
	"errors"
	"os"
	"strings"

	"github.com/spf13/pflag"
	"go.etcd.io/etcd/pkg/v3/flags"
)

// ctlLogin is the user of a command that asks members. Its flags, and those of the endpoints and of TLS, also come from
// etcdctl's variables.
type ctlLogin struct{ user, password string }

func (l *ctlLogin) flags(f *pflag.FlagSet, about string) {
	f.StringVar(&l.user, "user", "", about)
	f.StringVar(&l.password, "password", "", "password of --user, if that has only the name")
}

// fromCtl are the flags that come from variables as ETCDCTL_ENDPOINTS if they are not given.
var fromCtl = []string{"endpoints", "cacert", "cert", "key", "user", "password"}

// complete sets the flags that were not given, and returns the user as NAME:PASSWORD; "": there is none.
func (l *ctlLogin) complete(f *pflag.FlagSet) (user string, err error) {
	for _, name := range fromCtl {
		flag, text := f.Lookup(name), os.Getenv(flags.FlagToEnv("ETCDCTL", name))
		if flag != nil && !flag.Changed && text != "" {
			err = errors.Join(err, f.Set(name, text))
		}
	}
	switch named := strings.Contains(l.user, ":"); {
	case err != nil || l.user == "" || named:
		return l.user, err
	case l.password == "":
		return "", errors.New("--user: it is NAME:PASSWORD")
	}
	return l.user + ":" + l.password, nil
}
