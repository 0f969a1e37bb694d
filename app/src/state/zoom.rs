//! The part of a chart that a reader looks at, as it stands in the address: `zoom=12.5,40` or `zoom=12.5,40,0,300`.

/// A stretch of an axis.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Stretch {
    /// Its lower end.
    pub from: f64,
    /// Its upper end.
    pub to: f64,
}

impl Stretch {
    fn of(from: f64, to: f64) -> Option<Self> {
        (from.is_finite() && to.is_finite() && from < to).then_some(Self { from, to })
    }
}

/// What is looked at: a stretch across, and where the chart lets one choose it, a stretch upwards.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Zoom {
    /// Across.
    pub x: Stretch,
    /// Upwards.
    pub y: Option<Stretch>,
}

impl Zoom {
    /// Reads an address' value, or what Plotly says; nothing where it is no zoom.
    pub fn read(text: &str) -> Option<Self> {
        let numbers: Vec<f64> = text.split(',').map(str::parse).collect::<Result<_, _>>().ok()?;
        match numbers.as_slice() {
            [from, to] => Some(Self { x: Stretch::of(*from, *to)?, y: None }),
            [from, to, low, high] => {
                Some(Self { x: Stretch::of(*from, *to)?, y: Some(Stretch::of(*low, *high)?) })
            }
            _ => None,
        }
    }

    /// Writes it: every digit, so that the same view opens again.
    pub fn write(&self) -> String {
        let mut text = format!("{},{}", self.x.from, self.x.to);
        if let Some(y) = self.y {
            text.push_str(&format!(",{},{}", y.from, y.to));
        }
        text
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use proptest::prelude::*;

    fn stretches() -> impl Strategy<Value = Stretch> {
        (-1e12f64..1e12, 1e-3f64..1e12).prop_map(|(from, more)| Stretch { from, to: from + more })
    }

    pub(crate) fn zooms() -> impl Strategy<Value = Zoom> {
        (stretches(), proptest::option::of(stretches()))
            .prop_filter("a stretch has two ends", |(x, y)| x.from < x.to && y.is_none_or(|y| y.from < y.to))
            .prop_map(|(x, y)| Zoom { x, y })
    }

    #[test]
    fn what_is_no_zoom_is_none() {
        for text in ["", "1", "2,1", "1,1", "a,b", "1,2,3", "1,2,4,3", "NaN,2", "1,inf"] {
            assert_eq!(Zoom::read(text), None, "{text}");
        }
    }

    proptest! {
        #[test]
        fn every_zoom_survives_its_address(zoom in zooms()) {
            prop_assert_eq!(Zoom::read(&zoom.write()), Some(zoom));
        }
    }
}
