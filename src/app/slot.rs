//! A value that is made once: at once, or in the background while somebody watches.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, LazyLock, OnceLock};

use rayon::{ThreadPool, ThreadPoolBuilder};
use thread_priority::ThreadPriority;

/// Threads of what nobody waits for: one less than there are, so that the next frame, and what is read for it at once on
/// all cores, waits for none of it.
static BACKGROUND: LazyLock<Option<ThreadPool>> = LazyLock::new(|| {
    let threads = rayon::current_num_threads().saturating_sub(1).max(1);
    let name = |i: usize| format!("background {i}");
    let yields = |_| {
        if YIELDS.load(Ordering::Relaxed) {
            lower_priority();
        }
    };
    ThreadPoolBuilder::new().num_threads(threads).thread_name(name).start_handler(yields).build().ok()
});

/// Whether a terminal shows frames: then what is in the background runs when nothing else does.
static YIELDS: AtomicBool = AtomicBool::new(false);

/// Frames go before all that is done in the background from now on. A script waits for it, so there it runs as all else.
pub fn yield_to_frames() {
    YIELDS.store(true, Ordering::Relaxed);
}

/// Where the system does not allow it, the thread goes on as it is.
fn lower_priority() {
    #[cfg(any(target_os = "linux", target_os = "android"))]
    {
        use thread_priority::{
            NormalThreadSchedulePolicy, ThreadSchedulePolicy, set_thread_priority_and_policy, thread_native_id,
        };
        let idle = ThreadSchedulePolicy::Normal(NormalThreadSchedulePolicy::Idle);
        let _ = set_thread_priority_and_policy(thread_native_id(), ThreadPriority::Min, idle);
    }
    #[cfg(not(any(target_os = "linux", target_os = "android")))]
    let _ = thread_priority::set_current_thread_priority(ThreadPriority::Min);
}

/// Does a job in the background.
pub(in crate::app) fn in_background(job: impl FnOnce() + Send + 'static) {
    match &*BACKGROUND {
        Some(pool) => pool.spawn(job),
        None => rayon::spawn(job),
    }
}

/// The place of a value.
#[derive(Debug)]
pub enum Slot<T> {
    /// It is there.
    Ready(Arc<T>),
    /// A thread makes it; `None` where there turned out to be none.
    Coming(Arc<OnceLock<Option<Arc<T>>>>),
}

/// What is in a slot now.
#[derive(Debug)]
pub enum Seen<T> {
    /// The value.
    Made(Arc<T>),
    /// Nothing yet.
    Coming,
    /// There is no such value.
    Nothing,
}

impl<T> Seen<T> {
    /// The value, where it is there.
    pub fn made(self) -> Option<Arc<T>> {
        match self {
            Seen::Made(value) => Some(value),
            Seen::Coming | Seen::Nothing => None,
        }
    }
}

impl<T> Clone for Slot<T> {
    fn clone(&self) -> Self {
        match self {
            Slot::Ready(value) => Slot::Ready(Arc::clone(value)),
            Slot::Coming(cell) => Slot::Coming(Arc::clone(cell)),
        }
    }
}

impl<T: Send + Sync + 'static> Slot<T> {
    /// Makes a value, in the background or at once; `None` where there is none.
    pub fn new(background: bool, make: impl FnOnce() -> Option<T> + Send + 'static) -> Option<Self> {
        if !background {
            return make().map(|value| Slot::Ready(Arc::new(value)));
        }
        let cell = Arc::new(OnceLock::new());
        let own = Arc::clone(&cell);
        in_background(move || {
            let _ = own.set(make().map(Arc::new));
        });
        Some(Slot::Coming(cell))
    }

    /// What is in it now.
    pub fn look(&self) -> Seen<T> {
        match self {
            Slot::Ready(value) => Seen::Made(Arc::clone(value)),
            Slot::Coming(cell) => match cell.get() {
                Some(Some(value)) => Seen::Made(Arc::clone(value)),
                Some(None) => Seen::Nothing,
                None => Seen::Coming,
            },
        }
    }
}
