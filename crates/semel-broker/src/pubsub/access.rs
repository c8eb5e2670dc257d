//! Policies of topics, subscriptions, snapshots and schemas.

use super::errors::bad_name;
use super::registry::Registry;
use crate::policies;
use crate::proto::iam::{
    GetIamPolicyRequest, Policy, SetIamPolicyRequest, TestIamPermissionsRequest,
    TestIamPermissionsResponse,
};
use std::sync::Arc;
use tonic::Status;

// === impl Registry ===

impl Registry {
    pub(super) fn get_iam_policy(&self, request: &GetIamPolicyRequest) -> Result<Policy, Status> {
        self.check_resource(&request.resource)?;
        Ok(self.context.policies.get(&request.resource)?)
    }

    pub(super) async fn set_iam_policy(
        self: Arc<Self>,
        request: SetIamPolicyRequest,
    ) -> Result<Policy, Status> {
        // Nobody deletes the resource meanwhile.
        let _alone = self.topology.write().await;
        self.check_resource(&request.resource)?;
        self.context.policies.set(request).await
    }

    pub(super) fn test_iam_permissions(
        &self,
        request: &TestIamPermissionsRequest,
    ) -> Result<TestIamPermissionsResponse, Status> {
        policies::granted(request.clone(), self.check_resource(&request.resource))
    }

    /// Whether there is such a resource.
    fn check_resource(&self, name: &str) -> Result<(), Status> {
        match name.split('/').nth(2) {
            Some("topics") => self.topic(name).map(drop),
            Some("subscriptions") => self.subscription(name).map(drop),
            Some("snapshots") => self.snapshot(name).map(drop),
            Some("schemas") => self.schema(name).map(drop),
            Some(_) | None => Err(bad_name("resource", name)),
        }
    }
}
