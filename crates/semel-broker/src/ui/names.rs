//! Names of resources, in words and in addresses.

use url::form_urlencoded::byte_serialize;

/// What people call it: the last part.
pub(super) fn short(name: &str) -> &str {
    name.rsplit('/').next().unwrap_or(name)
}

/// The project of a name: `projects/demo/topics/orders` is of `demo`.
pub(super) fn project(name: &str) -> &str {
    name.split('/').nth(1).unwrap_or_default()
}

/// The location of a queue's name.
pub(super) fn location(name: &str) -> &str {
    name.split('/').nth(3).unwrap_or_default()
}

/// The queue of a task's name.
pub(super) fn queue_of(task: &str) -> &str {
    task.split_once("/tasks/").map_or(task, |(queue, _)| queue)
}

/// As it stands in an address: what has a meaning there is encoded, the slashes stay.
pub(super) fn encoded(name: &str) -> String {
    let parts = name
        .split('/')
        .map(|part| byte_serialize(part.as_bytes()).collect::<String>());
    parts.collect::<Vec<_>>().join("/")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_the_same_after_its_way_through_an_address() {
        assert_eq!(
            encoded("projects/p/topics/a%2Fb+c~d"),
            "projects/p/topics/a%252Fb%2Bc%7Ed"
        );
        let task = "projects/p/locations/l/queues/q/tasks/t";
        assert_eq!(
            (queue_of(task), short(task)),
            ("projects/p/locations/l/queues/q", "t")
        );
        assert_eq!((project(task), location(task)), ("p", "l"));
    }
}
