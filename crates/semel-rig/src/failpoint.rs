//! Named points in a program, where a test may end or stop the process.

use std::sync::OnceLock;

type Listener = Box<dyn Fn(&'static str) + Send + Sync>;

static LISTENER: OnceLock<Listener> = OnceLock::new();

/// From now on `listener` is told of every point that is passed, on the task that passes it. The first one stays.
pub fn listen(listener: impl Fn(&'static str) + Send + Sync + 'static) {
    LISTENER.get_or_init(|| Box::new(listener));
}

/// Tells whoever listens.
pub fn pass(point: &'static str) {
    if let Some(listener) = LISTENER.get() {
        listener(point);
    }
}
