//! Policies of access: kept and shown. Nobody is asked who they are here, so everybody may do everything.

use crate::field_mask::{self, Parents};
use crate::proto::iam::{
    Policy, SetIamPolicyRequest, TestIamPermissionsRequest, TestIamPermissionsResponse,
};
use crate::storage::{Batch, Storage, StorageError, Table};
use prost::Message;
use prost_types::FieldMask;
use sha2::{Digest, Sha256};
use tonic::{Code, Status};

/// How much of a policy's digest stands for it.
const ETAG_BYTES: usize = 8;

const POLICY: &str = "google.iam.v1.Policy";

/// The policies of all resources.
#[derive(Debug)]
pub(crate) struct Policies {
    storage: Storage,
}

// === impl Policies ===

impl Policies {
    pub(crate) fn new(storage: Storage) -> Self {
        Self { storage }
    }

    /// The policy of a resource that is there; an empty one if none was set.
    pub(crate) fn get(&self, resource: &str) -> Result<Policy, StorageError> {
        let row = self.storage.get(Table::Policies, resource.as_bytes())?;
        let policy = row.map_or_else(|| Ok(Policy::default()), Policy::decode);
        let policy = policy.map_err(|error| StorageError(format!("a row is damaged: {error}")))?;
        Ok(with_etag(policy))
    }

    /// Sets the policy of a resource that is there, unless it was changed since the caller looked.
    pub(crate) async fn set(&self, request: SetIamPolicyRequest) -> Result<Policy, Status> {
        let resource = &request.resource;
        let mut policy = request.policy.unwrap_or_default();
        let old = self.get(resource)?;
        if let Some(mask) = &request.update_mask {
            let etag = std::mem::take(&mut policy.etag);
            policy = masked(&old, &policy, mask)?;
            policy.etag = etag;
        }
        if !policy.etag.is_empty() && policy.etag != old.etag {
            return Err(Status::aborted(
                "There were concurrent policy changes. Please retry the whole read-modify-write with exponential \
                 backoff.",
            ));
        }
        let policy = with_etag(policy);
        let mut batch = Batch::default();
        batch.put(Table::Policies, resource.as_bytes(), policy.encode_to_vec());
        self.storage.commit(batch).await?;
        Ok(policy)
    }

    /// Takes the policy away, with its resource.
    pub(crate) fn delete(batch: &mut Batch, resource: &str) {
        batch.delete(Table::Policies, resource.as_bytes());
    }
}

/// The old policy, with what a mask names of the new one. The tag is compared whether it is named or not.
fn masked(old: &Policy, new: &Policy, mask: &FieldMask) -> Result<Policy, Status> {
    for path in &mask.paths {
        field_mask::check_served(POLICY, path)?;
        if !["bindings", "etag", "version"].contains(&path.as_str()) {
            return Err(Status::invalid_argument(format!("Invalid mask: {path}")));
        }
    }
    Ok(field_mask::merged(
        POLICY,
        old,
        new,
        &mask.paths,
        Parents::Kept,
    ))
}

/// All of them are granted; none, if the resource is not there: clients ask so whether they may make it.
pub(crate) fn granted(
    request: TestIamPermissionsRequest,
    resource: Result<(), Status>,
) -> Result<TestIamPermissionsResponse, Status> {
    if let Some(several) = request.permissions.iter().find(|it| it.contains('*')) {
        return Err(Status::invalid_argument(format!(
            "Permission {several} is not valid: wildcards are not allowed."
        )));
    }
    match resource {
        Ok(()) => Ok(TestIamPermissionsResponse {
            permissions: request.permissions,
        }),
        Err(missing) if missing.code() == Code::NotFound => {
            Ok(TestIamPermissionsResponse::default())
        }
        Err(refused) => Err(refused),
    }
}

fn with_etag(mut policy: Policy) -> Policy {
    policy.etag = bytes::Bytes::new();
    let digest = Sha256::digest(policy.encode_to_vec());
    policy.etag = digest.iter().take(ETAG_BYTES).copied().collect();
    policy
}
