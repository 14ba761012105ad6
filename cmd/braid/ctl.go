package main

import (
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"go.etcd.io/etcd/etcdctl/v3/ctlv3/command"
	"go.etcd.io/etcd/etcdutl/v3/etcdutl"
)

func init() { commands = append(commands, newCtlCommand, newUtlCommand) }

// newCtlCommand returns etcdctl under another name: its commands read their flags by name.
func newCtlCommand() *cobra.Command {
	ctl := &cobra.Command{
		Use:   "ctl",
		Short: "etcdctl, built in: keys, watches, leases, members, snapshots, users",
		Long: `ctl has the commands of etcdctl, with its flags, ETCDCTL_… variables, output and exit
codes. They work on every endpoint that speaks etcd v3.`,
		Example: `  braid ctl put greeting hello
  braid ctl get --prefix "" --keys-only
  braid ctl watch --prefix jobs/
  braid ctl --endpoints 127.0.0.1:2379,127.0.0.1:2389 endpoint status -w table`,
	}
	ctl.AddGroup(command.NewKVGroup(), command.NewClusterMaintenanceGroup(), command.NewConcurrencyGroup(),
		command.NewAuthenticationGroup(), command.NewUtilityGroup())
	ctl.AddCommand(
		command.NewGetCommand(), command.NewPutCommand(), command.NewDelCommand(), command.NewTxnCommand(),
		command.NewCompactionCommand(), command.NewWatchCommand(), command.NewLeaseCommand(),
		command.NewMemberCommand(), command.NewEndpointCommand(), command.NewMoveLeaderCommand(),
		command.NewAlarmCommand(), command.NewDefragCommand(), command.NewSnapshotCommand(),
		command.NewMakeMirrorCommand(), command.NewDowngradeCommand(),
		command.NewLockCommand(), command.NewElectCommand(),
		command.NewAuthCommand(), command.NewUserCommand(), command.NewRoleCommand(),
		command.NewCheckCommand(), command.NewVersionCommand(), command.NewOptionsCommand(ctl),
	)
	ctlFlags(ctl.PersistentFlags())
	rename(ctl, "etcdctl", "braid ctl")
	return ctl
}

// ctlFlags are the flags that every command of etcdctl reads; `braid ctl options` lists them.
func ctlFlags(f *pflag.FlagSet) {
	f.StringSlice("endpoints", []string{"127.0.0.1:2379"}, "members' client addresses")
	f.StringP("write-out", "w", "simple", "output format: fields, json, protobuf, simple or table")
	f.Bool("hex", false, "print byte strings as hexadecimal")
	f.Bool("debug", false, "log what the client does")

	f.Duration("dial-timeout", 2*time.Second, "time to connect")
	f.Duration("command-timeout", 5*time.Second, "time for a short command, without connecting")
	f.Duration("keepalive-time", 2*time.Second, "time between keep-alive pings")
	f.Duration("keepalive-timeout", 6*time.Second, "time to wait for the answer to a ping")
	f.Int("max-request-bytes", 33<<20, "largest request to send, in bytes")
	f.Int("max-recv-bytes", 0, "largest answer to accept (0: 2 GiB)")

	f.Bool("insecure-transport", true, "no TLS unless a certificate is given")
	f.Bool("insecure-skip-tls-verify", false, "do not verify the server's certificate (tests only)")
	f.String("cacert", "", "file of the certificate authority that signed the server's certificate")
	f.String("cert", "", "file of the client's certificate")
	f.String("key", "", "file of the client's key")
	f.String("user", "", "user[:password] (asks for the password if it is not given)")
	f.String("password", "", "password of --user")
	f.String("auth-jwt-token", "", "JWT to authenticate with, instead of --user")
	f.StringP("discovery-srv", "d", "", "domain whose SRV records name the endpoints")
	f.String("discovery-srv-name", "", "service name of those SRV records")
	f.Bool("insecure-discovery", true, "accept SRV records that name endpoints without TLS")

	f.VisitAll(func(flag *pflag.Flag) { flag.Hidden = flag.Name != "endpoints" && flag.Name != "write-out" })
}

// newUtlCommand returns etcdutl under another name, for snapshot files.
func newUtlCommand() *cobra.Command {
	utl := &cobra.Command{
		Use:   "utl",
		Short: "etcdutl, built in: status and restore of snapshot files, offline",
		Example: `  braid ctl snapshot save backup.db
  braid utl snapshot status backup.db -w table`,
	}
	utl.PersistentFlags().DurationVar(&etcdutl.FlockTimeout, "timeout", 10*time.Second,
		"time to wait for the lock of a database file, 0: no limit")
	utl.PersistentFlags().StringVarP(&etcdutl.OutputFormat, "write-out", "w", "simple",
		"output format: fields, json, protobuf, simple or table")
	utl.AddCommand(etcdutl.NewSnapshotCommand(), etcdutl.NewHashKVCommand(), etcdutl.NewDefragCommand(),
		etcdutl.NewVersionCommand())
	rename(utl, "etcdutl", "braid utl")
	return utl
}

// refuseUnknown makes it an error to name a command that there is not, also in groups that etcd and cobra define: they
// print their help instead, and succeed.
func refuseUnknown(cmd *cobra.Command) {
	if cmd.HasParent() && cmd.HasSubCommands() && !cmd.Runnable() {
		cmd.RunE, cmd.Args, cmd.SuggestionsMinimumDistance = runGroup, cobra.ArbitraryArgs, 2
	}
	for _, sub := range cmd.Commands() {
		refuseUnknown(sub)
	}
}

// rename replaces a program's name in the help of its commands.
func rename(cmd *cobra.Command, from, to string) {
	for _, text := range []*string{&cmd.Short, &cmd.Long, &cmd.Example, &cmd.Deprecated} {
		if cmd.HasParent() && cmd.Parent().Name() != "braid" {
			*text = strings.ReplaceAll(*text, from, to)
		}
	}
	for _, sub := range cmd.Commands() {
		rename(sub, from, to)
	}
}
