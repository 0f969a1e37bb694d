//! How long to wait before a stream is tried again.

/// The first try is quick: the control plane ends a stream now and then, to judge again who may see what.
const FIRST_MS: f64 = 60.0;
const STEP_MS: f64 = 250.0;
const LONGEST_MS: f64 = 15_000.0;

/// Milliseconds before the nth try, from 1; `chance` of 0 to 1 spreads the tries of many pages over half a wait.
pub fn wait_ms(tries: u32, chance: f64) -> f64 {
    let base = if tries <= 1 { FIRST_MS } else { STEP_MS };
    (base * 2f64.powi(tries.min(6) as i32)).min(LONGEST_MS) * (0.75 + chance / 2.0)
}

/// The seconds that an answer's `Retry-After` asks for; a date is none that is understood.
pub fn retry_after(header: Option<&str>) -> Option<f64> {
    header?.trim().parse::<f64>().ok().filter(|s| s.is_finite() && *s >= 0.0).map(|s| s.min(600.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_try_is_quick_and_later_ones_wait_longer_up_to_a_bound() {
        let waits: Vec<f64> = (1..12).map(|tries| wait_ms(tries, 0.5)).collect();
        assert_eq!((waits[0], waits[1], waits[2]), (120.0, 1000.0, 2000.0));
        assert!(waits.windows(2).all(|w| w[0] <= w[1]), "{waits:?}");
        assert!(waits.iter().all(|w| *w <= LONGEST_MS), "{waits:?}");
        assert!(wait_ms(20, 1.0) <= LONGEST_MS * 1.25 && wait_ms(20, 0.0) >= LONGEST_MS * 0.75);
    }

    #[test]
    fn what_the_control_plane_asks_for_is_read() {
        assert_eq!(retry_after(Some("30")), Some(30.0));
        assert_eq!(retry_after(Some("Wed, 21 Oct 2026 07:28:00 GMT")), None);
        assert_eq!((retry_after(Some("-1")), retry_after(None)), (None, None));
        assert_eq!(retry_after(Some("86400")), Some(600.0));
    }
}
