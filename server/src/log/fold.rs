//! The state that a stream's events fold to, remembered: only what was appended since is read again.

use std::any::{Any, TypeId};
use std::collections::HashMap;
use std::num::NonZeroUsize;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use events::envelope::Recorded;
use events::keys::StreamKey;
use lru::LruCache;

use super::LogError;
use super::read::Reader;

/// Most streams whose state is remembered; beyond it the one that was not asked for longest is forgotten. A job under way has
/// four: its own, and those of its telemetry, progress and logs.
const MOST_STREAMS: NonZeroUsize = NonZeroUsize::new(40_000).expect("not zero");
/// Events read at once.
const PAGE: i64 = 500;

/// A state, and the version of the last event in it.
#[derive(Clone)]
struct Folded {
    version: i64,
    state: Arc<dyn Any + Send + Sync>,
}

/// What streams fold to, by the state's type. Events never change and versions have no gaps, so that a state stays true of
/// the events it was made of.
pub(super) struct Folds(Mutex<LruCache<StreamKey, HashMap<TypeId, Folded>>>);

impl Default for Folds {
    fn default() -> Self {
        Self(Mutex::new(LruCache::new(MOST_STREAMS)))
    }
}

impl std::fmt::Debug for Folds {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Folds").finish_non_exhaustive()
    }
}

impl Folds {
    /// The state after the last event of a stream; `None` where it has none.
    pub async fn fold<S, F, E>(
        &self,
        reader: &Reader,
        stream: &StreamKey,
        step: impl Fn(Option<S>, &Recorded) -> Result<S, F>,
    ) -> Result<Option<S>, E>
    where
        S: Clone + Send + Sync + 'static,
        E: From<LogError> + From<F>,
    {
        let of = TypeId::of::<S>();
        let known = self.states().get(stream).and_then(|states| states.get(&of)).cloned();
        let mut version = known.as_ref().map_or(0, |known| known.version);
        let before = known.and_then(|known| known.state.downcast::<S>().ok());
        let mut state: Option<S> = None;
        loop {
            let page = reader.read_stream(stream, version + 1, PAGE).await?;
            let full = page.len() as i64 == PAGE;
            for event in &page {
                let last = state.take().or_else(|| before.as_deref().cloned());
                state = Some(step(last, event)?);
                version = event.version;
            }
            if !full {
                break;
            }
        }
        let Some(state) = state else { return Ok(before.map(Arc::unwrap_or_clone)) };
        self.remember(stream, version, state.clone());
        Ok(Some(state))
    }

    /// What is remembered of a stream, with the version of the last event in it. There may be later events.
    pub fn known<S: Clone + Send + Sync + 'static>(&self, stream: &StreamKey) -> Option<(i64, S)> {
        let known = self.states().get(stream)?.get(&TypeId::of::<S>())?.clone();
        Some((known.version, known.state.downcast_ref::<S>()?.clone()))
    }

    /// Remembers what a stream folds to, its event of this version included.
    pub fn remember<S: Send + Sync + 'static>(&self, stream: &StreamKey, version: i64, state: S) {
        let mut states = self.states();
        let states = states.get_or_insert_mut(stream.clone(), HashMap::new);
        // Whoever read further meanwhile knows more.
        if states.get(&TypeId::of::<S>()).is_none_or(|there| there.version < version) {
            states.insert(TypeId::of::<S>(), Folded { version, state: Arc::new(state) });
        }
    }

    /// Forgets what a stream folds to.
    pub fn forget(&self, stream: &StreamKey) {
        self.states().pop(stream);
    }

    fn states(&self) -> MutexGuard<'_, LruCache<StreamKey, HashMap<TypeId, Folded>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
