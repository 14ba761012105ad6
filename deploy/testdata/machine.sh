#!/bin/sh
# Starts a machine in namespaces of its own: the root is this machine's, and changes to it are dropped afterwards; the
# network has loopback alone; process 1 is systemd, without the units that are enabled on this machine. For
# unshare --mount --pid --cgroup --ipc --uts --net --fork.
set -e
ip link set lo up
mount --make-rprivate /
mount -t tmpfs tmpfs /mnt
mkdir /mnt/written /mnt/work /mnt/root
mount -t overlay overlay -o lowerdir=/,upperdir=/mnt/written,workdir=/mnt/work /mnt/root
cd /mnt/root
mount -t proc proc proc
mount -t tmpfs tmpfs run
mount --rbind /dev dev
mount --rbind /sys sys
mount -t tmpfs tmpfs sys/fs/cgroup
mount -t cgroup2 cgroup2 sys/fs/cgroup
rm -rf etc/systemd/system/*.wants lib/systemd/system/*.wants
mkdir old
pivot_root . old
umount -l old
exec env -i container=test PATH="$PATH" /lib/systemd/systemd --system --unit=basic.target
