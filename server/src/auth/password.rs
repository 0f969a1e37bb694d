//! Passwords: argon2id, rehashed when the parameters have grown, and the same work for accounts that do not exist.
//! A new one has to be long enough and hard to guess, by `zxcvbn`'s lists of common passwords, names and patterns.

use std::sync::LazyLock;

use argon2::password_hash::rand_core::OsRng;
use argon2::password_hash::{PasswordHash, PasswordHasher, PasswordVerifier, SaltString};
use argon2::{Algorithm, Argon2, Params, Version};
use tokio::sync::Semaphore;
use zxcvbn::Score;

use super::AuthError;

/// The shortest password accepted for a new account.
pub const SHORTEST: usize = 10;
/// The longest, so that nobody hands us megabytes to hash.
pub const LONGEST: usize = 256;

/// Whether a new password may be used. `known` is what a guesser knows of its owner: e-mail, name, organisation.
///
/// # Errors
/// `bad_password` says what is wrong with it.
pub fn check(password: &str, known: &[&str]) -> Result<(), AuthError> {
    let invalid = |message: String, hint| Err(AuthError::Invalid { code: "bad_password", message, hint });
    const CURE: &str = "use a long phrase, or let a password manager make one";
    let length = password.chars().count();
    if length < SHORTEST || password.len() > LONGEST {
        return invalid(
            format!("the password has {length} characters; it needs {SHORTEST} to {LONGEST}"),
            CURE,
        );
    }
    let mut words: Vec<&str> = known.to_vec();
    words.extend(
        known.iter().flat_map(|text| text.split(|c: char| !c.is_alphanumeric())).filter(|w| w.len() > 2),
    );
    words.push("benchtrail");
    let estimate = zxcvbn::zxcvbn(password, &words);
    if estimate.score() < Score::Three {
        let why = estimate.feedback().and_then(|feedback| feedback.warning());
        let why = why.map_or_else(|| "it follows a common pattern".to_owned(), |warning| warning.to_string());
        return invalid(format!("the password is easily guessed: {why}"), CURE);
    }
    Ok(())
}

/// Each takes 19 MiB and tens of milliseconds of a core: more than two at once would starve everything else.
static AT_WORK: Semaphore = Semaphore::const_new(2);

/// What is verified when there is no such account.
static DUMMY: LazyLock<String> = LazyLock::new(|| hash_now("there is no such account"));

fn argon2id() -> Argon2<'static> {
    // OWASP's first choice: 19 MiB, two passes, one lane.
    Argon2::new(Algorithm::Argon2id, Version::V0x13, Params::default())
}

fn hash_now(password: &str) -> String {
    let salt = SaltString::generate(&mut OsRng);
    argon2id()
        .hash_password(password.as_bytes(), &salt)
        .expect("the parameters and the salt are our own")
        .to_string()
}

/// The PHC string to store for a password.
pub async fn hash(password: String) -> String {
    let _permit = AT_WORK.acquire().await.expect("never closed");
    tokio::task::spawn_blocking(move || hash_now(&password)).await.expect("hashing does not panic")
}

/// What came of checking a password.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// It is wrong, or there is no such account or no password on it.
    Wrong,
    /// It is right.
    Right,
    /// It is right, and this is to be stored in the place of the old hash.
    RightWithNewHash(String),
}

/// Checks a password; `None` stands for an account that does not exist and takes as long.
pub async fn verify(password: String, stored: Option<String>) -> Verdict {
    let _permit = AT_WORK.acquire().await.expect("never closed");
    tokio::task::spawn_blocking(move || verify_now(&password, stored.as_deref()))
        .await
        .expect("verifying does not panic")
}

fn verify_now(password: &str, stored: Option<&str>) -> Verdict {
    let text = stored.unwrap_or(&DUMMY);
    let Ok(parsed) = PasswordHash::new(text) else { return Verdict::Wrong };
    let right = argon2id().verify_password(password.as_bytes(), &parsed).is_ok();
    if !right || stored.is_none() {
        return Verdict::Wrong;
    }
    let current = Params::try_from(&parsed).is_ok_and(|params| {
        let wanted = Params::default();
        parsed.algorithm == Algorithm::Argon2id.ident()
            && (params.m_cost(), params.t_cost(), params.p_cost())
                == (wanted.m_cost(), wanted.t_cost(), wanted.p_cost())
    });
    if current { Verdict::Right } else { Verdict::RightWithNewHash(hash_now(password)) }
}

/// A password for a first sign-in: 20 characters that are hard to mistake for one another, about 100 bits.
pub fn generate() -> String {
    const LETTERS: &[u8; 32] = b"abcdefghjkmnpqrstuvwxyz23456789A";
    let random: [u8; 20] = rand::random();
    let mut text = String::with_capacity(24);
    for (at, byte) in random.iter().enumerate() {
        if at > 0 && at % 5 == 0 {
            text.push('-');
        }
        text.push(char::from(LETTERS[usize::from(byte & 31)]));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_right_password_is_right_and_another_is_not() {
        let stored = hash_now("correct horse");
        assert_eq!(verify_now("correct horse", Some(&stored)), Verdict::Right);
        assert_eq!(verify_now("correct horsf", Some(&stored)), Verdict::Wrong);
    }

    #[test]
    fn no_password_opens_an_account_that_does_not_exist() {
        assert_eq!(verify_now("there is no such account", None), Verdict::Wrong);
    }

    #[test]
    fn a_hash_of_weaker_parameters_is_replaced() {
        let weak = Argon2::new(Algorithm::Argon2id, Version::V0x13, Params::new(8, 1, 1, None).unwrap());
        let salt = SaltString::generate(&mut OsRng);
        let stored = weak.hash_password(b"correct horse", &salt).unwrap().to_string();
        let Verdict::RightWithNewHash(new) = verify_now("correct horse", Some(&stored)) else {
            panic!("expected a new hash")
        };
        assert_eq!(verify_now("correct horse", Some(&new)), Verdict::Right);
    }

    #[test]
    fn a_common_password_and_one_made_of_the_owners_name_are_refused() {
        let known = ["ada.lovelace@example.org", "Ada Lovelace"];
        for bad in ["short", "password1234", "qwertyuiop", "1234567890123", "lovelace1815", "adalovelace"] {
            assert!(check(bad, &known).is_err(), "{bad}");
        }
        assert!(check(&"x".repeat(LONGEST + 1), &[]).is_err());
        for good in ["a long enough password", "correct horse battery staple", &generate()] {
            check(good, &known).unwrap();
        }
    }

    #[test]
    fn an_unreadable_hash_opens_nothing() {
        assert_eq!(verify_now("x", Some("plain")), Verdict::Wrong);
    }
}
