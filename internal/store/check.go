package store

import (
	"fmt"

	"github.com/coreos/go-semver/semver"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
)

// check refuses requests at which etcd's code would stop, on every member and again after each restart. Package server
// refuses other invalid requests of clients.
func check(r *pb.InternalRaftRequest) error {
	if r.ClusterMemberAttrSet != nil || r.DowngradeInfoSet != nil || r.DowngradeVersionTest != nil {
		return fmt.Errorf("%w: members and downgrades are not the store's", ErrBadCommand)
	}
	if r.Range != nil {
		if err := checkRange(r.Range); err != nil {
			return err
		}
	}
	if r.Txn != nil {
		if err := checkTxn(r.Txn); err != nil {
			return err
		}
	}
	if v := r.ClusterVersionSet; v != nil {
		if _, err := semver.NewVersion(v.Ver); err != nil {
			return fmt.Errorf("%w: cluster version %q: %w", ErrBadCommand, v.Ver, err)
		}
	}
	if !asksSomething(r) {
		return fmt.Errorf("%w: the request asks nothing", ErrBadCommand)
	}
	return nil
}

// checkOrdered also checks what must hold once a request is ordered: it must have no password,
// because each member would hash it with a salt of its own.
func checkOrdered(r *pb.InternalRaftRequest) error {
	if err := checkPasswords(r); err != nil {
		return err
	}
	return check(r)
}

// checkPasswords refuses passwords in plain text. They must not get into the log.
func checkPasswords(r *pb.InternalRaftRequest) error {
	if r.AuthUserAdd != nil && r.AuthUserAdd.Password != "" ||
		r.AuthUserChangePassword != nil && r.AuthUserChangePassword.Password != "" {
		return fmt.Errorf("%w: a password that is not hashed", ErrBadCommand)
	}
	return nil
}

func asksSomething(r *pb.InternalRaftRequest) bool {
	return r.Put != nil || r.Range != nil || r.DeleteRange != nil || r.Txn != nil || r.Compaction != nil ||
		r.LeaseGrant != nil || r.LeaseRevoke != nil || r.LeaseCheckpoint != nil ||
		r.Alarm != nil || r.ClusterVersionSet != nil ||
		r.Authenticate != nil || r.AuthEnable != nil || r.AuthDisable != nil || r.AuthStatus != nil ||
		r.AuthUserAdd != nil || r.AuthUserDelete != nil || r.AuthUserGet != nil || r.AuthUserList != nil ||
		r.AuthUserChangePassword != nil || r.AuthUserGrantRole != nil || r.AuthUserRevokeRole != nil ||
		r.AuthRoleAdd != nil || r.AuthRoleDelete != nil || r.AuthRoleGet != nil || r.AuthRoleList != nil ||
		r.AuthRoleGrantPermission != nil || r.AuthRoleRevokePermission != nil
}

func checkRange(r *pb.RangeRequest) error {
	if _, ok := pb.RangeRequest_SortTarget_name[int32(r.SortTarget)]; !ok {
		return fmt.Errorf("%w: sort target %d", ErrBadCommand, r.SortTarget)
	}
	if _, ok := pb.RangeRequest_SortOrder_name[int32(r.SortOrder)]; !ok {
		return fmt.Errorf("%w: sort order %d", ErrBadCommand, r.SortOrder)
	}
	return nil
}

func checkTxn(r *pb.TxnRequest) error {
	for _, ops := range [][]*pb.RequestOp{r.Success, r.Failure} {
		for _, op := range ops {
			if err := checkOp(op); err != nil {
				return err
			}
		}
	}
	return nil
}

func checkOp(op *pb.RequestOp) error {
	switch {
	case op.GetRequestRange() != nil:
		return checkRange(op.GetRequestRange())
	case op.GetRequestTxn() != nil:
		return checkTxn(op.GetRequestTxn())
	case op.GetRequestPut() != nil, op.GetRequestDeleteRange() != nil:
		return nil
	}
	return fmt.Errorf("%w: an operation of a transaction asks nothing", ErrBadCommand)
}
