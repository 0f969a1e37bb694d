//! The audio of a run: read from a manifest, remote files fetched and kept before anything is measured.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};

use serde::Deserialize;
use sha2::Digest;

use crate::cli::Common;
use crate::jsonl;
use crate::setup::{Refusal, fetch};

/// A line of the manifest.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct Sample {
    /// Names it; there only once.
    pub id: String,
    /// A file on this machine.
    #[serde(default)]
    pub path: Option<PathBuf>,
    /// Where to fetch it.
    #[serde(default)]
    pub url: Option<String>,
    /// `flac`, `wav`, …; otherwise what the file's name says.
    #[serde(default)]
    pub format: Option<String>,
    /// Its length in seconds.
    #[serde(default)]
    pub duration: Option<f64>,
}

/// A line of the reference transcripts.
#[derive(Deserialize)]
struct Reference {
    id: String,
    transcript: String,
}

/// One audio file, on this machine.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Audio {
    /// Its id in the manifest.
    pub id: String,
    /// Where it is.
    pub path: PathBuf,
    /// `flac`, `wav`, …
    pub format: String,
    /// Its length in seconds, where the manifest tells.
    pub duration: Option<f64>,
    /// What is said in it, where somebody wrote it down.
    pub reference: Option<String>,
}

/// Where audio comes from.
pub(super) struct Places<'a> {
    /// The manifest.
    pub manifest: &'a Path,
    /// The reference transcripts.
    pub ground_truth: Option<&'a Path>,
    /// Where remote audio is kept.
    pub cache: Option<&'a Path>,
}

impl Places<'_> {
    /// Reads the manifest and the transcripts, and fetches what is remote.
    pub(super) async fn audio(&self, common: &Common) -> Result<Vec<Audio>, Refusal> {
        let refuse = |reason: String| Refusal::usage(format!("{}: {reason}", self.manifest.display()));
        let samples = parse_manifest(&read(self.manifest)?).map_err(refuse)?;
        let mut references = match self.ground_truth {
            None => HashMap::new(),
            Some(path) => parse_references(&read(path)?)
                .map_err(|reason| Refusal::usage(format!("{}: {reason}", path.display())))?,
        };
        let mut audio = Vec::new();
        for sample in samples {
            let path = match (&sample.path, &sample.url) {
                (Some(path), _) => self.find(path),
                (None, url) => self.download(url.as_deref().unwrap_or_default(), &sample, common).await?,
            };
            let of_name = path.extension().map(|extension| extension.to_string_lossy().to_lowercase());
            let format =
                sample.format.map(|format| format.to_lowercase()).or(of_name).unwrap_or_else(|| "wav".into());
            let reference = references.remove(&sample.id);
            audio.push(Audio { id: sample.id, path, format, duration: sample.duration, reference });
        }
        if let Some(path) = self.ground_truth.filter(|_| audio.iter().all(|one| one.reference.is_none())) {
            return Err(Refusal::usage(format!(
                "{}: none of its ids is in {}; the same id must name a sample and its transcript",
                path.display(),
                self.manifest.display()
            )));
        }
        Ok(audio)
    }

    /// A path as given, or relative to the manifest.
    fn find(&self, path: &Path) -> PathBuf {
        match self.manifest.parent() {
            Some(folder) if path.is_relative() && !path.exists() => folder.join(path),
            _ => path.to_owned(),
        }
    }

    /// Fetches remote audio once, for this run and later ones: its name is a hash of its address.
    async fn download(&self, url: &str, sample: &Sample, common: &Common) -> Result<PathBuf, Refusal> {
        let folder =
            self.cache.map_or_else(|| std::env::temp_dir().join("metrumbench-audio"), Path::to_owned);
        let extension = sample.format.clone().unwrap_or_else(|| "bin".into());
        let name: String =
            sha2::Sha256::digest(url.as_bytes()).iter().map(|byte| format!("{byte:02x}")).collect();
        let path = folder.join(format!("{name}.{}", extension.replace(['/', '\\', '.'], "_")));
        if path.exists() {
            return Ok(path);
        }
        let body = fetch("audio", url, common).await?;
        let partial = path.with_extension(format!("part{}", std::process::id()));
        std::fs::create_dir_all(&folder)
            .and_then(|()| std::fs::write(&partial, &body))
            .and_then(|()| std::fs::rename(&partial, &path))
            .map_err(|error| Refusal::usage(format!("--cache-dir {}: {error}", folder.display())))?;
        Ok(path)
    }
}

fn read(path: &Path) -> Result<String, Refusal> {
    std::fs::read_to_string(path).map_err(|error| Refusal::usage(format!("{}: {error}", path.display())))
}

/// Reads a manifest. The error says which line or sample is wrong.
pub fn parse_manifest(text: &str) -> Result<Vec<Sample>, String> {
    let wanted = "an id, a path or url, and, if known, format and duration";
    let samples: Vec<Sample> = jsonl::rows(text, wanted).map_err(|error| error.to_string())?;
    let mut seen = HashSet::new();
    for sample in &samples {
        if !seen.insert(&sample.id) {
            return Err(format!("id {:?} is there twice; each sample needs its own", sample.id));
        }
        if sample.path.is_none() && sample.url.is_none() {
            return Err(format!("{:?} has neither path nor url; give one of them", sample.id));
        }
        if sample.duration.is_some_and(|duration| duration.is_nan() || duration < 0.0) {
            return Err(format!("{:?} has a duration below 0", sample.id));
        }
    }
    Ok(samples)
}

/// Reads reference transcripts, by sample id.
pub fn parse_references(text: &str) -> Result<HashMap<String, String>, String> {
    let rows: Vec<Reference> =
        jsonl::rows(text, "an id and a transcript").map_err(|error| error.to_string())?;
    Ok(rows.into_iter().map(|row| (row.id, row.transcript)).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn an_id_may_be_there_only_once() {
        let line = "{\"id\": \"a\", \"path\": \"a.wav\"}\n";
        assert!(parse_manifest(line).is_ok());
        assert!(parse_manifest(&line.repeat(2)).unwrap_err().contains("twice"));
    }

    #[test]
    fn a_sample_needs_a_path_or_an_address() {
        assert!(parse_manifest("{\"id\": \"a\"}").unwrap_err().contains("neither"));
    }

    proptest! {
        #[test]
        fn no_manifest_panics(text in "(\\PC|\n|\\{\"id\":\"a\",\"(path|url|duration)\":(\"x\"|-1|1e999)\\}\n)*") {
            let _ = parse_manifest(&text);
            let _ = parse_references(&text);
        }
    }
}
