//! The images of an answer: decoded, checked, described, and kept where images are kept.

use std::path::{Path, PathBuf};

use base64::Engine;
use serde_json::Value;

use crate::extra::{Artifact, ImagesExtra};
use crate::failure::{Failure, FailureKind};
use crate::http::simple;
use crate::links;
use crate::openai::error_message;

/// Where images are kept, if anywhere.
pub(super) struct Folder {
    pub(super) path: Option<PathBuf>,
    pub(super) save_raw: bool,
}

/// A link fit to be shown: what signs it is left out.
pub(super) fn shown(link: &str) -> String {
    match url::Url::parse(link) {
        Ok(url) => simple::without_credentials(&url),
        Err(_) => link.split(['?', '#']).next().unwrap_or_default().to_owned(),
    }
}

impl Folder {
    /// Saves an image, where there is a folder for it.
    pub(super) fn keep(&self, name: &str, bytes: &[u8], artifact: &mut Artifact) -> Result<(), Failure> {
        let Some(path) = &self.path else { return Ok(()) };
        let extension = artifact.mime_type.as_deref().and_then(|mime| mime.rsplit('/').next());
        let file = path.join(format!("{name}-{}.{}", artifact.index, extension.unwrap_or("bin")));
        save(&file, bytes)?;
        artifact.path = Some(file.display().to_string());
        Ok(())
    }
}

/// Reads an answer, decodes and checks each image, and saves it.
pub(super) fn inspect_answer(
    body: &[u8],
    folder: &Folder,
    name: &str,
    images: &mut ImagesExtra,
) -> Result<(), Failure> {
    let schema = |message: String| Failure::new(FailureKind::Decode, None, message);
    if let (Some(path), true) = (&folder.path, folder.save_raw) {
        let raw = path.join(format!("{name}.json"));
        save(&raw, body)?;
        images.raw_path = Some(raw.display().to_string());
    }
    let answer: Value = serde_json::from_slice(body).map_err(|error| schema(format!("not JSON: {error}")))?;
    if answer.get("error").is_some_and(|error| !error.is_null()) {
        return Err(Failure::new(FailureKind::InBandError, None, error_message(body)));
    }
    let items = answer["data"].as_array().ok_or_else(|| schema("the answer has no data array".into()))?;
    images.returned = items.len() as u64;
    if items.is_empty() {
        return Err(schema("the answer holds no image".into()));
    }
    for (index, item) in items.iter().enumerate() {
        let mut artifact = Artifact { index: index as u64, ..Artifact::default() };
        // A link may hold the image itself.
        let link = item["url"].as_str();
        let inline = link.filter(|link| link.starts_with("data:")).or(item["b64_json"].as_str());
        match (inline, link) {
            (Some(text), _) => {
                let text = text.rsplit_once("base64,").map_or(text, |(_, data)| data);
                let bytes =
                    base64::engine::general_purpose::STANDARD.decode(text.trim()).map_err(|error| {
                        Failure::new(FailureKind::ImageData, None, format!("image {index}: {error}"))
                    })?;
                check_image(&bytes, &mut artifact)?;
                folder.keep(name, &bytes, &mut artifact)?;
            }
            (None, Some(link)) => artifact.url = Some(link.to_owned()),
            (None, None) => return Err(schema(format!("image {index} has neither b64_json nor url"))),
        }
        images.artifacts.push(artifact);
    }
    Ok(())
}

/// Describes an image that is in the answer itself: one that breaks off makes the request a failure.
fn check_image(bytes: &[u8], artifact: &mut Artifact) -> Result<(), Failure> {
    links::describe(bytes, artifact);
    match artifact.unknown_reason.take() {
        None => Ok(()),
        Some(reason) => {
            let message = format!("image {}: {reason}", artifact.index);
            Err(Failure::new(FailureKind::ImageData, None, message))
        }
    }
}

fn save(path: &Path, bytes: &[u8]) -> Result<(), Failure> {
    std::fs::write(path, bytes)
        .map_err(|error| Failure::new(FailureKind::Artifact, None, format!("{}: {error}", path.display())))
}
