//! Policies of queues, and where queues can be.

use super::{Tasks, errors, names, paging};
use crate::methods::Methods;
use crate::policies;
use crate::proto::iam::{
    GetIamPolicyRequest, Policy, SetIamPolicyRequest, TestIamPermissionsRequest,
    TestIamPermissionsResponse,
};
use crate::proto::location::{
    GetLocationRequest, ListLocationsRequest, ListLocationsResponse, Location,
};
use std::collections::BTreeSet;
use std::sync::Arc;
use tonic::Status;

/// Listed even where there is no queue yet: who makes a first one looks for a place.
const LOCATION: &str = "us-central1";

/// More than there are regions.
const LOCATIONS_PAGE_MAX: usize = 100;

// === impl Tasks ===

impl Tasks {
    /// The methods of the service that knows the places.
    pub(crate) fn locations(self: &Arc<Self>) -> Methods<Self> {
        let refusals = &self.shared.context.refusals;
        Methods::new("google.cloud.location.Locations", self, refusals)
            .immediate("GetLocation", Self::get_location)
            .immediate("ListLocations", Self::list_locations)
    }

    pub(super) fn get_iam_policy(&self, request: &GetIamPolicyRequest) -> Result<Policy, Status> {
        let queue = self.queue_of_policy(&request.resource)?;
        Ok(self.shared.context.policies.get(queue)?)
    }

    pub(super) async fn set_iam_policy(
        self: Arc<Self>,
        request: SetIamPolicyRequest,
    ) -> Result<Policy, Status> {
        // Nobody deletes the queue meanwhile, or sets its policy by the same tag.
        let _alone = self.queue_changes.lock().await;
        self.queue_of_policy(&request.resource)?;
        self.shared.context.policies.set(request).await
    }

    pub(super) fn test_iam_permissions(
        &self,
        request: &TestIamPermissionsRequest,
    ) -> Result<TestIamPermissionsResponse, Status> {
        let queue = self.queue_of_policy(&request.resource).map(drop);
        policies::granted(request.clone(), queue)
    }

    fn queue_of_policy<'a>(&self, name: &'a str) -> Result<&'a str, Status> {
        names::queue(name, "GetQueue")?;
        self.runner(name)?;
        Ok(name)
    }

    /// Every place is as good as another.
    fn get_location(&self, request: &GetLocationRequest) -> Result<Location, Status> {
        names::location(&request.name, "GetLocation")?;
        let (project, location) = request.name.split_once("/locations/").unwrap_or_default();
        Ok(place(project, location))
    }

    /// Those with queues, and one more.
    fn list_locations(
        &self,
        request: &ListLocationsRequest,
    ) -> Result<ListLocationsResponse, Status> {
        let project = request.name.as_str();
        let is_project = project.split('/').count() == 2 && project.starts_with("projects/");
        if !is_project {
            return Err(errors::no_project(project));
        }
        let size = paging::size(
            request.page_size,
            LOCATIONS_PAGE_MAX,
            "ListLocationsRequest",
        )?;
        let list = format!("locations {project}");
        let after = paging::after(&request.page_token, &list, self.now())?;
        let prefix = format!("{project}/locations/");
        let queues = self.all();
        let queues = queues.iter().filter_map(|it| it.name.strip_prefix(&prefix));
        let found = queues.filter_map(|rest| rest.split('/').next());
        let found: BTreeSet<_> = found.chain([LOCATION]).collect();
        let after = after.as_deref().unwrap_or_default();
        let mut rest = found.into_iter().filter(|id| *id > after).peekable();
        let page: Vec<_> = rest.by_ref().take(size).collect();
        let last = page.last().filter(|_| rest.peek().is_some());
        let next_page_token = last.map(|id| paging::token(&list, id, self.now()));
        Ok(ListLocationsResponse {
            locations: page.iter().map(|id| place(project, id)).collect(),
            next_page_token: next_page_token.unwrap_or_default(),
        })
    }
}

fn place(project: &str, id: &str) -> Location {
    Location {
        name: format!("{project}/locations/{id}"),
        labels: [("cloud.googleapis.com/region".into(), id.into())].into(),
        location_id: id.into(),
        display_name: id.into(),
    }
}
