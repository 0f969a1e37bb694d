//! Points in time, in whole microseconds.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use time::format_description::well_known::Rfc3339;
use time::{Date, OffsetDateTime};

/// A point in time: microseconds since 1970-01-01T00:00:00Z.
///
/// Microseconds, because that is what PostgreSQL keeps: a finer time would be truncated by the database and its
/// hash could never be computed again. Written as RFC 3339 in UTC with exactly six digits of fraction, so that
/// there is one spelling of each time and text order is time order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp(i64);

/// A time that [`Timestamp`] cannot hold.
#[derive(Debug, thiserror::Error, Clone, PartialEq, Eq)]
pub enum TimestampError {
    /// Before the year 1 or after the year 9999, which RFC 3339 cannot write.
    #[error("{0} microseconds since 1970 lie outside the years 1 to 9999")]
    OutOfRange(i64),
    /// Not an RFC 3339 time.
    #[error("{0:?} is not an RFC 3339 time such as 2026-01-31T08:15:30.250000Z")]
    Malformed(String),
}

/// 0001-01-01T00:00:00Z.
const FIRST: i64 = -62_135_596_800_000_000;
/// Microseconds of a day.
const DAY_US: i64 = 86_400_000_000;
/// The Julian day of 1970-01-01.
const EPOCH_JULIAN_DAY: i32 = 2_440_588;
/// 9999-12-31T23:59:59.999999Z.
const LAST: i64 = 253_402_300_799_999_999;

impl Timestamp {
    /// 1970-01-01T00:00:00Z.
    pub const EPOCH: Self = Self(0);

    /// From microseconds since 1970.
    ///
    /// # Errors
    /// Outside the years 1 to 9999.
    pub const fn from_micros(micros: i64) -> Result<Self, TimestampError> {
        if micros < FIRST || micros > LAST {
            return Err(TimestampError::OutOfRange(micros));
        }
        Ok(Self(micros))
    }

    /// Microseconds since 1970.
    pub const fn as_micros(self) -> i64 {
        self.0
    }

    /// Seconds since 1970, for arithmetic on durations (loses microseconds after the year 2242).
    pub fn as_seconds_f64(self) -> f64 {
        self.0 as f64 / 1e6
    }

    /// Microseconds from `earlier` to `self`; negative where `self` is the earlier one.
    pub const fn micros_since(self, earlier: Self) -> i64 {
        self.0 - earlier.0
    }

    /// Its spelling: `2026-01-31T08:15:30.250000Z`. Exports write millions of them, hence without a formatter.
    pub fn text(self) -> [u8; 27] {
        let day = i32::try_from(self.0.div_euclid(DAY_US)).unwrap_or_default();
        let date = Date::from_julian_day(EPOCH_JULIAN_DAY + day)
            .expect("every Timestamp lies inside the years 1 to 9999");
        let (micros, seconds) = (self.0.rem_euclid(1_000_000), self.0.rem_euclid(DAY_US) / 1_000_000);
        let mut text = *b"0000-00-00T00:00:00.000000Z";
        let mut put = |last: usize, digits: usize, number: i64| {
            let mut rest = number;
            for place in (last + 1 - digits..=last).rev() {
                text[place] += (rest % 10) as u8;
                rest /= 10;
            }
        };
        put(3, 4, i64::from(date.year()));
        put(6, 2, i64::from(u8::from(date.month())));
        put(9, 2, i64::from(date.day()));
        put(12, 2, seconds / 3600);
        put(15, 2, seconds / 60 % 60);
        put(18, 2, seconds % 60);
        put(25, 6, micros);
        text
    }

    /// This time moved by `micros`, held inside the years 1 to 9999.
    #[must_use]
    pub fn plus_micros(self, micros: i64) -> Self {
        Self(self.0.saturating_add(micros).clamp(FIRST, LAST))
    }
}

impl TryFrom<OffsetDateTime> for Timestamp {
    type Error = TimestampError;

    /// Truncates to microseconds.
    fn try_from(time: OffsetDateTime) -> Result<Self, TimestampError> {
        let micros = time.unix_timestamp_nanos().div_euclid(1000);
        i64::try_from(micros).map_err(|_| TimestampError::OutOfRange(i64::MAX)).and_then(Self::from_micros)
    }
}

impl From<Timestamp> for OffsetDateTime {
    fn from(timestamp: Timestamp) -> Self {
        OffsetDateTime::from_unix_timestamp_nanos(i128::from(timestamp.0) * 1000)
            .expect("every Timestamp lies inside the years 1 to 9999")
    }
}

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(str::from_utf8(&self.text()).map_err(|_| fmt::Error)?)
    }
}

impl FromStr for Timestamp {
    type Err = TimestampError;

    /// Reads any RFC 3339 time; a fraction finer than microseconds is truncated.
    fn from_str(text: &str) -> Result<Self, TimestampError> {
        let time =
            OffsetDateTime::parse(text, &Rfc3339).map_err(|_| TimestampError::Malformed(text.to_owned()))?;
        Self::try_from(time)
    }
}

impl Serialize for Timestamp {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Timestamp {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = std::borrow::Cow::<'de, str>::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

#[cfg(feature = "schema")]
impl schemars::JsonSchema for Timestamp {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Timestamp".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({"type": "string", "format": "date-time"})
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_timestamp_is_written_with_six_digits_and_z() {
        assert_eq!(
            Timestamp::from_micros(1_769_847_330_250_000).unwrap().to_string(),
            "2026-01-31T08:15:30.250000Z"
        );
        assert_eq!(Timestamp::EPOCH.to_string(), "1970-01-01T00:00:00.000000Z");
    }

    #[test]
    fn a_timestamp_before_1970_rounds_down_not_towards_zero() {
        let t = OffsetDateTime::from_unix_timestamp_nanos(-1).unwrap();
        assert_eq!(Timestamp::try_from(t).unwrap().as_micros(), -1);
    }

    #[test]
    fn an_offset_is_turned_into_utc_and_nanoseconds_are_truncated() {
        let t: Timestamp = "2026-01-31T10:15:30.250000999+02:00".parse().unwrap();
        assert_eq!(t.to_string(), "2026-01-31T08:15:30.250000Z");
    }

    #[test]
    fn the_ends_of_the_range_are_writable_and_beyond_them_is_refused() {
        assert_eq!(Timestamp::from_micros(FIRST).unwrap().to_string(), "0001-01-01T00:00:00.000000Z");
        assert_eq!(Timestamp::from_micros(LAST).unwrap().to_string(), "9999-12-31T23:59:59.999999Z");
        assert!(Timestamp::from_micros(LAST + 1).is_err());
        assert!(Timestamp::from_micros(FIRST - 1).is_err());
    }

    proptest::proptest! {
        #[test]
        fn every_time_is_spelt_as_the_calendar_has_it(micros in FIRST..=LAST) {
            let t = Timestamp::from_micros(micros).unwrap();
            let of = OffsetDateTime::from(t);
            let (year, month, day) = of.to_calendar_date();
            let (hour, minute, second, micro) = of.to_hms_micro();
            let expected = format!(
                "{year:04}-{:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{micro:06}Z",
                u8::from(month)
            );
            proptest::prop_assert_eq!(t.to_string(), expected);
        }

        #[test]
        fn text_and_back_is_the_same_time(micros in FIRST..=LAST) {
            let t = Timestamp::from_micros(micros).unwrap();
            proptest::prop_assert_eq!(t.to_string().parse::<Timestamp>().unwrap(), t);
        }
    }
}
