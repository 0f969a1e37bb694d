//! A stored blob: what it belongs to, and so who may read it.

use std::collections::BTreeMap;

use events::Event;
use events::envelope::Recorded;
use events::keys::{ImportKey, JobKey, ProjectKey};
use events::system::{BlobStored, UPLOAD};

use super::{Aggregate, LoadError, decode};

/// What a blob with the rows of a prompt source is for.
pub const PROMPT_SOURCE: &str = "prompt_source";

/// A blob as its stream's events made it. The same bytes may be a file of any number of jobs.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Blob {
    /// The projects that it is a file of, each with the media type its first sender there gave; `None` for one that is the
    /// organisation's.
    belongs: BTreeMap<Option<ProjectKey>, String>,
    prompt_source: bool,
}

impl Blob {
    /// What it belongs to, with the media type: a project, or the organisation. Nothing for an upload that no command named
    /// yet, and for what was erased.
    pub fn belongs(&self) -> impl Iterator<Item = (Option<&ProjectKey>, &str)> {
        self.belongs.iter().map(|(project, media_type)| (project.as_ref(), media_type.as_str()))
    }

    /// Whether it is the rows of a prompt source, which agents of the organisation read.
    pub fn is_prompt_source(&self) -> bool {
        self.prompt_source
    }

    fn evolve(&mut self, event: Event) {
        match event {
            Event::BlobStored(BlobStored { purpose, job, media_type, .. }) if purpose != UPLOAD => {
                self.prompt_source |= purpose == PROMPT_SOURCE;
                self.belongs.entry(job.as_deref().and_then(project_of)).or_insert(media_type);
            }
            Event::BlobErased(_) => *self = Self::default(),
            _ => {}
        }
    }
}

impl Aggregate for Blob {
    fn begin(first: &Recorded) -> Result<Self, LoadError> {
        let mut blob = Self::default();
        blob.follow(first)?;
        Ok(blob)
    }

    fn follow(&mut self, recorded: &Recorded) -> Result<(), LoadError> {
        self.evolve(decode(recorded)?);
        Ok(())
    }
}

/// The project of a job or of an imported result, by its stream's key.
fn project_of(stream: &str) -> Option<ProjectKey> {
    let stream: events::StreamKey = stream.parse().ok()?;
    match stream.kind() {
        "job" => Some(JobKey::from_stream(&stream).ok()?.run_key().workload_key().project_key()),
        "import" => Some(ImportKey::from_stream(&stream).ok()?.project_key()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stored(purpose: &str, job: Option<&str>, media_type: &str) -> Event {
        Event::BlobStored(BlobStored {
            sha256: "ab".repeat(32),
            size: 1,
            media_type: media_type.into(),
            purpose: purpose.into(),
            job: job.map(str::to_owned),
        })
    }

    fn of(events: impl IntoIterator<Item = Event>) -> Blob {
        let mut blob = Blob::default();
        events.into_iter().for_each(|event| blob.evolve(event));
        blob
    }

    fn projects(blob: &Blob) -> Vec<(Option<&str>, &str)> {
        blob.belongs().map(|(project, media)| (project.map(|key| key.project.as_str()), media)).collect()
    }

    #[test]
    fn a_blob_belongs_to_every_project_that_it_is_a_file_of() {
        let job = |nth: u32| stored("log", Some(&format!("job/acme/p{}/w/{nth}/c1", nth % 2)), "text/plain");
        let blob = of((1..3000).map(job).chain([stored("result_file", Some("import/acme/q/i/1/c1"), "x")]));
        assert_eq!(
            projects(&blob),
            [(Some("p0"), "text/plain"), (Some("p1"), "text/plain"), (Some("q"), "x")]
        );
    }

    #[test]
    fn an_upload_belongs_to_nothing_until_it_is_named_and_what_was_erased_to_nothing_any_more() {
        assert_eq!(projects(&of([stored(UPLOAD, None, "x")])), []);
        let named = of([stored(UPLOAD, None, "x"), stored(PROMPT_SOURCE, None, "y")]);
        assert!(named.is_prompt_source());
        assert_eq!(projects(&named), [(None, "y")]);
        let erased = Event::BlobErased(events::system::BlobErased { reason: "asked for".into(), size: None });
        let mut gone = named;
        gone.evolve(erased);
        assert_eq!(gone, Blob::default());
    }
}
