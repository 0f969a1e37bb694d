//! E-mail by SMTP.

use std::time::Duration;

use lettre::message::header::{ContentType, HeaderName, HeaderValue};
use lettre::{AsyncSmtpTransport, AsyncTransport as _, Message, Tokio1Executor};
use uuid::Uuid;

use super::SmtpConfig;
use super::deliver::Outcome;
use super::message::Words;

/// How long the mail server may take over each step.
const WITHIN: Duration = Duration::from_secs(15);

/// Checks how e-mail leaves, before the first one does.
///
/// # Errors
/// What is wrong with the address or the sender.
pub fn check(config: &SmtpConfig) -> Result<(), String> {
    transport(config)?;
    config.from.parse::<lettre::message::Mailbox>().map_err(|error| format!("{:?}: {error}", config.from))?;
    Ok(())
}

fn transport(config: &SmtpConfig) -> Result<AsyncSmtpTransport<Tokio1Executor>, String> {
    let builder = AsyncSmtpTransport::<Tokio1Executor>::from_url(config.url.reveal())
        // The error could repeat the address, and with it the password.
        .map_err(|_| {
            "the SMTP address is not understood; write it as smtps://user:password@host".to_owned()
        })?;
    Ok(builder.timeout(Some(WITHIN)).build())
}

/// Sends a message. Its id makes its `Message-ID`, the same at every try: a mail server or reader can tell a second copy.
pub(super) async fn send(config: &SmtpConfig, to: &str, id: Uuid, words: &Words) -> Outcome {
    let message = match message(config, to, id, words) {
        Ok(message) => message,
        Err(why) => return Outcome::Never(why),
    };
    let transport = match transport(config) {
        Ok(transport) => transport,
        Err(why) => return Outcome::Later(why),
    };
    match transport.send(message).await {
        Ok(_) => Outcome::Sent,
        Err(error) if error.is_permanent() => Outcome::Never(said(&error)),
        Err(error) => Outcome::Later(said(&error)),
    }
}

/// What the mail server said, without the address of whom it was for.
fn said(error: &lettre::transport::smtp::Error) -> String {
    match error.status() {
        Some(code) => format!("the mail server answered {code}"),
        None if error.is_timeout() => "the mail server did not answer in time".to_owned(),
        None => "the mail server cannot be reached".to_owned(),
    }
}

fn message(config: &SmtpConfig, to: &str, id: Uuid, words: &Words) -> Result<Message, String> {
    let from: lettre::message::Mailbox =
        config.from.parse().map_err(|_| "the sender is no address".to_owned())?;
    let host = from.email.domain().to_owned();
    // What the address is stays out of what is shown and logged.
    let to = lettre::message::Mailbox::new(
        None,
        to.parse().map_err(|_| "the account's e-mail is no address".to_owned())?,
    );
    let mut message = Message::builder()
        .from(from)
        .to(to)
        .subject(words.subject.as_str())
        .message_id(Some(format!("<{}@{host}>", id.simple())))
        .header(ContentType::TEXT_PLAIN)
        .body(words.text.clone())
        .map_err(|error| error.to_string())?;
    // No out-of-office reply is wanted (RFC 3834).
    let name = HeaderName::new_from_ascii_str("Auto-Submitted");
    message.headers_mut().insert_raw(HeaderValue::new(name, "auto-generated".to_owned()));
    Ok(message)
}
