//! What differs between two logs. Times, ports, process numbers and measured values differ in every line of every run:
//! lines are compared without their numbers, and shown with them.

use similar::{Algorithm, DiffOp, capture_diff_slices};

/// Lines of each log that are compared: more would keep the page busy.
pub const MOST_LINES: usize = 3000;
/// Lines around a difference that are shown.
const AROUND: usize = 1;

/// Which log a line stands in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Of {
    /// In both.
    Both,
    /// In the first alone.
    First,
    /// In the second alone.
    Second,
}

/// A line of the comparison, or lines that are left out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Piece {
    /// A line, as it stands in the log; in both, as it stands in the first.
    Line {
        /// Which log it is in.
        of: Of,
        /// Its number there, from 1.
        number: usize,
        /// The line.
        text: String,
    },
    /// So many lines that are alike.
    Alike(usize),
}

/// The comparison of two logs.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct LogDiff {
    /// Its lines.
    pub pieces: Vec<Piece>,
    /// Lines of the first alone, and of the second.
    pub only: (usize, usize),
    /// Whether a log was longer than what is compared.
    pub cut: bool,
}

/// A line without its numbers: digits, decimals, and hexadecimal words that hold a digit, become `0`.
fn normal(line: &str) -> String {
    let mut out = String::with_capacity(line.len());
    let mut word = String::new();
    let end = |word: &mut String, out: &mut String| {
        let digit = word.bytes().any(|b| b.is_ascii_digit());
        let body = word.strip_prefix("0x").unwrap_or(word);
        if digit && body.bytes().all(|b| b.is_ascii_hexdigit()) {
            out.push('0');
        } else {
            let mut last = ' ';
            for c in word.chars() {
                if !c.is_ascii_digit() {
                    out.push(c);
                } else if last != '0' {
                    out.push('0');
                }
                last = if c.is_ascii_digit() { '0' } else { c };
            }
        }
        word.clear();
    };
    for c in line.trim_end().chars() {
        if c.is_ascii_alphanumeric() {
            word.push(c);
        } else {
            end(&mut word, &mut out);
            out.push(c);
        }
    }
    end(&mut word, &mut out);
    // A number with decimals is one number.
    while out.contains("0.0") {
        out = out.replace("0.0", "0");
    }
    out
}

impl LogDiff {
    /// Compares two logs.
    pub fn of(first: &[String], second: &[String]) -> Self {
        let cut = first.len() > MOST_LINES || second.len() > MOST_LINES;
        let (first, second) =
            (&first[..first.len().min(MOST_LINES)], &second[..second.len().min(MOST_LINES)]);
        let plain = |lines: &[String]| lines.iter().map(|l| normal(l)).collect::<Vec<_>>();
        let mut diff = Self { cut, ..Self::default() };
        for op in capture_diff_slices(Algorithm::Patience, &plain(first), &plain(second)) {
            match op {
                DiffOp::Equal { old_index, len, .. } => diff.alike(first, old_index, len),
                other => {
                    diff.take(Of::First, first, other.old_range());
                    diff.take(Of::Second, second, other.new_range());
                }
            }
        }
        diff.trim_ends();
        diff
    }

    fn take(&mut self, of: Of, lines: &[String], range: std::ops::Range<usize>) {
        match of {
            Of::First => self.only.0 += range.len(),
            _ => self.only.1 += range.len(),
        }
        for at in range {
            self.pieces.push(Piece::Line { of, number: at + 1, text: lines[at].clone() });
        }
    }

    /// Alike lines: those next to a difference are shown, the others counted.
    fn alike(&mut self, lines: &[String], from: usize, len: usize) {
        let line = |at: usize| Piece::Line { of: Of::Both, number: at + 1, text: lines[at].clone() };
        if len <= 2 * AROUND + 1 {
            self.pieces.extend((from..from + len).map(line));
            return;
        }
        self.pieces.extend((from..from + AROUND).map(line));
        self.pieces.push(Piece::Alike(len - 2 * AROUND));
        self.pieces.extend((from + len - AROUND..from + len).map(line));
    }

    /// Before the first and after the last difference nothing needs to be shown.
    fn trim_ends(&mut self) {
        if self.only == (0, 0) {
            let alike = self.pieces.iter().map(|p| if let Piece::Alike(n) = p { *n } else { 1 }).sum();
            self.pieces = if alike > 0 { vec![Piece::Alike(alike)] } else { Vec::new() };
        }
    }

    /// Whether the logs are alike but for numbers.
    pub fn is_alike(&self) -> bool {
        self.only == (0, 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn lines(text: &str) -> Vec<String> {
        text.lines().map(str::to_owned).collect()
    }

    #[test]
    fn times_and_numbers_make_no_difference() {
        let a = lines("0.12.824 I slot 1 | task 339 | n_tokens = 210\nloaded in 3.2 s at 0x7f3a");
        let b = lines("9.99.001 I slot 0 | task 7 | n_tokens = 64\nloaded in 14 s at 0xdead1");
        assert!(LogDiff::of(&a, &b).is_alike());
        assert_eq!(normal("a1b2c3d4 layer12 gpu"), "0 layer0 gpu");
    }

    #[test]
    fn a_flag_that_one_run_had_stands_out_with_its_neighbours() {
        let a = lines("start\nload\nwarm up\nready\nserve\nstop");
        let b = lines("start\nload\nflash attention on\nwarm up\nready\nserve\nstop");
        let diff = LogDiff::of(&a, &b);
        assert_eq!(diff.only, (0, 1));
        let line = |of, number, text: &str| Piece::Line { of, number, text: text.into() };
        assert_eq!(
            diff.pieces,
            [
                line(Of::Both, 1, "start"),
                line(Of::Both, 2, "load"),
                line(Of::Second, 3, "flash attention on"),
                line(Of::Both, 3, "warm up"),
                Piece::Alike(2),
                line(Of::Both, 6, "stop"),
            ]
        );
    }

    #[test]
    fn alike_logs_are_one_sentence() {
        let a = lines("one\ntwo\nthree\nfour\nfive\nsix");
        assert_eq!(LogDiff::of(&a, &a).pieces, [Piece::Alike(6)]);
        assert_eq!(LogDiff::of(&[], &[]).pieces, []);
    }

    #[test]
    fn a_log_that_is_too_long_says_so() {
        let long: Vec<String> = (0..MOST_LINES + 5).map(|n| format!("line {n}")).collect();
        assert!(LogDiff::of(&long, &long).cut);
    }

    proptest! {
        /// Every line of both logs is either shown or counted, in order.
        #[test]
        fn no_line_is_lost(a in proptest::collection::vec("[ab]{1,2}", 0..30), b in proptest::collection::vec("[ab]{1,2}", 0..30)) {
            let diff = LogDiff::of(&a, &b);
            let count = |side: Of| diff.pieces.iter().map(|p| match p {
                Piece::Alike(n) => *n,
                Piece::Line { of, .. } if *of == side || *of == Of::Both => 1,
                Piece::Line { .. } => 0,
            }).sum::<usize>();
            prop_assert_eq!((count(Of::First), count(Of::Second)), (a.len(), b.len()));
        }
    }
}
