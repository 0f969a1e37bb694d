//! Images for requests: loaded, made smaller where asked, encoded, and kept while they are needed.

use std::collections::HashMap;
use std::io::Cursor;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard};

use base64::Engine;
use image::ImageFormat;
use image::codecs::jpeg::JpegEncoder;
use lru::LruCache;
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};

/// Images kept ready.
const CACHE_ENTRIES: NonZeroUsize = NonZeroUsize::new(256).unwrap();

/// The quality of JPEG images made here.
const JPEG_QUALITY: u8 = 90;

/// Where an image comes from.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Source {
    /// A file.
    File(PathBuf),
    /// An address; fetched before the run.
    Remote(String),
    /// Made up: a size and a number that makes it different from others.
    Synthetic {
        /// Pixels across.
        width: u32,
        /// Pixels down.
        height: u32,
        /// Which one.
        number: u64,
    },
}

impl Source {
    /// What a prompt's reference means: an address, a path, or a `file://` address.
    pub fn of_reference(text: &str) -> Self {
        if text.starts_with("http://") || text.starts_with("https://") {
            return Self::Remote(text.to_owned());
        }
        match url::Url::parse(text)
            .ok()
            .filter(|url| url.scheme() == "file")
            .and_then(|url| url.to_file_path().ok())
        {
            Some(path) => Self::File(path),
            None => Self::File(text.into()),
        }
    }
}

/// An image as it is sent.
#[derive(Debug, PartialEq, Eq)]
pub struct Encoded {
    /// `data:image/…;base64,…`.
    pub data_url: String,
    /// Bytes before base64.
    pub bytes: u64,
    /// Pixels across.
    pub width: u32,
    /// Pixels down.
    pub height: u32,
}

/// Prepares images, and keeps the least recently used ones no longer than there is room.
#[derive(Debug)]
pub struct Store {
    max_dimension: Option<u32>,
    remote: HashMap<String, Vec<u8>>,
    cache: Mutex<LruCache<Source, Arc<Encoded>>>,
}

impl Store {
    /// A store that makes images no larger than `max_dimension` either way. `remote` holds what was fetched.
    pub fn new(max_dimension: Option<u32>, remote: HashMap<String, Vec<u8>>) -> Self {
        Self { max_dimension, remote, cache: Mutex::new(LruCache::new(CACHE_ENTRIES)) }
    }

    fn cache(&self) -> MutexGuard<'_, LruCache<Source, Arc<Encoded>>> {
        self.cache.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    /// The image if it is ready.
    pub fn ready(&self, source: &Source) -> Option<Arc<Encoded>> {
        self.cache().get(source).map(Arc::clone)
    }

    /// The image, prepared now if it is not ready. Takes processor time: not for the event loop.
    pub fn prepare(&self, source: &Source) -> Result<Arc<Encoded>, String> {
        if let Some(image) = self.ready(source) {
            return Ok(image);
        }
        let image = Arc::new(self.encode(source)?);
        self.cache().put(source.clone(), Arc::clone(&image));
        Ok(image)
    }

    fn encode(&self, source: &Source) -> Result<Encoded, String> {
        let bytes = match source {
            Source::File(path) => {
                std::fs::read(path).map_err(|error| format!("{}: {error}", path.display()))?
            }
            Source::Remote(url) => {
                self.remote.get(url).cloned().ok_or_else(|| "the image was not fetched".to_owned())?
            }
            Source::Synthetic { width, height, number } => synthetic(*width, *height, *number)?,
        };
        let format =
            image::guess_format(&bytes).map_err(|error| format!("no known image format: {error}"))?;
        let reader = image::ImageReader::with_format(Cursor::new(&bytes), format);
        let (width, height) = reader.into_dimensions().map_err(|error| error.to_string())?;
        let Some(limit) = self.max_dimension.filter(|limit| width.max(height) > *limit) else {
            return Ok(encoded(&bytes, format.to_mime_type(), width, height));
        };
        let decoded =
            image::load_from_memory_with_format(&bytes, format).map_err(|error| error.to_string())?;
        let smaller = decoded.resize(limit, limit, image::imageops::FilterType::CatmullRom);
        let mut out = Vec::new();
        // Transparency needs PNG; photographs are a tenth of the size as JPEG.
        let mime = if smaller.color().has_alpha() {
            smaller
                .write_to(&mut Cursor::new(&mut out), ImageFormat::Png)
                .map_err(|error| error.to_string())?;
            "image/png"
        } else {
            let encoder = JpegEncoder::new_with_quality(&mut out, JPEG_QUALITY);
            smaller.to_rgb8().write_with_encoder(encoder).map_err(|error| error.to_string())?;
            "image/jpeg"
        };
        Ok(encoded(&out, mime, smaller.width(), smaller.height()))
    }
}

fn encoded(bytes: &[u8], mime: &str, width: u32, height: u32) -> Encoded {
    let base64 = base64::engine::general_purpose::STANDARD.encode(bytes);
    Encoded { data_url: format!("data:{mime};base64,{base64}"), bytes: bytes.len() as u64, width, height }
}

/// An image that was decoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Checked {
    /// Pixels across.
    pub width: u32,
    /// Pixels down.
    pub height: u32,
    /// `image/png`, …
    pub mime_type: &'static str,
}

/// Decodes all of an image: one that breaks off has a proper head. The error says what is wrong with it.
pub fn check(bytes: &[u8]) -> Result<Checked, String> {
    let format = image::guess_format(bytes).map_err(|error| error.to_string())?;
    let decoded = image::load_from_memory_with_format(bytes, format).map_err(|error| error.to_string())?;
    // The decoder of JPEG fills up what is missing; its end is marked.
    let end = bytes.iter().rposition(|byte| *byte != 0).map_or(0, |at| at + 1);
    if format == ImageFormat::Jpeg && !bytes[..end].ends_with(&[0xFF, 0xD9]) {
        return Err("the JPEG breaks off: it has no end".to_owned());
    }
    Ok(Checked { width: decoded.width(), height: decoded.height(), mime_type: format.to_mime_type() })
}

/// Width and height, from the head of an image alone.
pub fn dimensions(bytes: &[u8]) -> Result<(u32, u32), String> {
    let format = image::guess_format(bytes).map_err(|error| format!("no known image format: {error}"))?;
    let reader = image::ImageReader::with_format(Cursor::new(bytes), format);
    reader.into_dimensions().map_err(|error| error.to_string())
}

/// A coloured slope with noise, different for each number, as JPEG.
pub fn synthetic(width: u32, height: u32, number: u64) -> Result<Vec<u8>, String> {
    let mut random = SmallRng::seed_from_u64(number ^ 0x1AA6E);
    let base: [u8; 3] = random.random();
    let picture = image::RgbImage::from_fn(width.max(1), height.max(1), |x, y| {
        let slope = |along: u32, length: u32| (u64::from(along) * 255 / u64::from(length.max(1))) as u8;
        let noise: u8 = random.random_range(0..24);
        image::Rgb([
            base[0].wrapping_add(slope(x, width)).saturating_add(noise),
            base[1].wrapping_add(slope(y, height)).saturating_add(noise),
            base[2].wrapping_add(slope(x + y, width + height)).saturating_add(noise),
        ])
    });
    let mut out = Vec::new();
    picture
        .write_with_encoder(JpegEncoder::new_with_quality(&mut out, JPEG_QUALITY))
        .map_err(|error| error.to_string())?;
    Ok(out)
}

/// Reads `WIDTHxHEIGHT`.
pub fn parse_size(text: &str) -> Result<(u32, u32), String> {
    let (width, height) = text.split_once(['x', 'X']).ok_or("must be WIDTHxHEIGHT")?;
    let side = |text: &str| text.trim().parse::<u32>().ok().filter(|side| (1..=16_384).contains(side));
    side(width).zip(side(height)).ok_or_else(|| format!("{text:?}: each side must be from 1 to 16384"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_large_image_is_made_smaller_in_proportion() {
        let store = Store::new(Some(100), HashMap::new());
        let image = store.prepare(&Source::Synthetic { width: 400, height: 200, number: 1 }).unwrap();
        assert_eq!((image.width, image.height), (100, 50));
        assert!(image.data_url.starts_with("data:image/jpeg;base64,"));
    }

    #[test]
    fn a_small_image_is_sent_as_it_is() {
        let bytes = synthetic(40, 30, 2).unwrap();
        let store = Store::new(Some(100), HashMap::from([("http://x".to_owned(), bytes.clone())]));
        let image = store.prepare(&Source::Remote("http://x".into())).unwrap();
        assert_eq!((image.bytes, image.width), (bytes.len() as u64, 40));
    }

    #[test]
    fn the_cache_does_not_grow_beyond_its_room() {
        let store = Store::new(None, HashMap::new());
        for number in 0..CACHE_ENTRIES.get() as u64 + 5 {
            store.prepare(&Source::Synthetic { width: 1, height: 1, number }).unwrap();
        }
        assert!(store.ready(&Source::Synthetic { width: 1, height: 1, number: 0 }).is_none());
        assert!(store.ready(&Source::Synthetic { width: 1, height: 1, number: 100 }).is_some());
    }

    #[test]
    fn an_image_that_breaks_off_is_none() {
        let picture = image::RgbImage::from_fn(40, 30, |x, y| image::Rgb([x as u8, y as u8, (x * y) as u8]));
        let mut png = Cursor::new(Vec::new());
        picture.write_to(&mut png, ImageFormat::Png).unwrap();
        for (whole, mime_type) in
            [(png.into_inner(), "image/png"), (synthetic(40, 30, 1).unwrap(), "image/jpeg")]
        {
            assert_eq!(check(&whole), Ok(Checked { width: 40, height: 30, mime_type }));
            assert!(check(&whole[..whole.len() / 2]).is_err(), "{mime_type}");
        }
    }

    #[test]
    fn what_is_no_image_is_refused() {
        let store = Store::new(None, HashMap::from([("http://x".to_owned(), b"<html>".to_vec())]));
        assert!(store.prepare(&Source::Remote("http://x".into())).is_err());
    }
}
