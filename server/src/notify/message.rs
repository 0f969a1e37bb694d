//! What a message is about, and its words.

use events::keys::RunKey;
use events::quota::QuotaLevelChanged;
use events::run::RunFinished;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use url::Url;

/// The kinds of message, as preferences and webhooks name them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// A run ended and every job of it has a result.
    RunCompleted,
    /// A run ended and a job of it failed or was lost.
    RunFailed,
    /// The week's doings.
    WeeklySummary,
    /// A quota is nearly used up.
    Quota,
    /// Somebody tries whether messages arrive.
    Test,
}

impl Kind {
    /// The word.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::RunCompleted => "run_completed",
            Self::RunFailed => "run_failed",
            Self::WeeklySummary => "weekly_summary",
            Self::Quota => "quota",
            Self::Test => "test",
        }
    }

    /// What the word stands for.
    pub fn of(word: &str) -> Option<Self> {
        [Self::RunCompleted, Self::RunFailed, Self::WeeklySummary, Self::Quota, Self::Test]
            .into_iter()
            .find(|kind| kind.as_str() == word)
    }
}

/// The facts of a message. Words are made of them when it is sent; names and addresses are not among them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "about", rename_all = "snake_case")]
pub enum Content {
    /// A run that ended.
    Run {
        /// Which.
        run: RunKey,
        /// How.
        finished: RunFinished,
        /// The position of the event.
        position: i64,
    },
    /// A week.
    Week {
        /// Its first day, `2026-11-23`.
        from: String,
        /// Its last day.
        to: String,
        /// What happened in it.
        activity: Activity,
    },
    /// A quota that is nearly used up.
    Quota {
        /// The organisation.
        org: String,
        /// What happened.
        changed: QuotaLevelChanged,
        /// The position of the event.
        position: i64,
    },
    /// Nothing but a try.
    Test,
}

/// What a person did in a week.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Activity {
    /// Runs that were started.
    pub runs_started: i64,
    /// Runs that ended with every result.
    pub runs_completed: i64,
    /// Runs that ended without some.
    pub runs_failed: i64,
    /// Runs that were cancelled.
    pub runs_cancelled: i64,
    /// Jobs that gave a result.
    pub jobs_completed: i64,
    /// Jobs that failed or were lost.
    pub jobs_failed: i64,
}

/// The words of an e-mail.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Words {
    /// The subject, one line.
    pub subject: String,
    /// The text.
    pub text: String,
}

fn page_of(base: &Url, run: &RunKey) -> String {
    let mut url = base.clone();
    if let Ok(mut path) = url.path_segments_mut() {
        path.pop_if_empty();
        path.extend(["projects", &run.org, &run.project, &run.workload, &run.run.to_string()]);
    }
    url.into()
}

fn count(n: u32, one: &str, many: &str) -> String {
    format!("{n} {}", if n == 1 { one } else { many })
}

impl Content {
    /// As an e-mail. `base` is the page's address.
    pub fn words(&self, kind: Kind, base: &Url) -> Words {
        let profile = format!("{}profile", base.as_str().trim_end_matches('/').to_owned() + "/");
        let (subject, text) = match self {
            Self::Run { run, finished, .. } => {
                let name = format!("{}/{} #{}", run.project, run.workload, run.run);
                let word = if kind == Kind::RunCompleted { "completed" } else { "failed" };
                let mut text = format!(
                    "Run {} of workload {} in project {} {word}: {} completed",
                    run.run,
                    run.workload,
                    run.project,
                    count(finished.completed, "job", "jobs")
                );
                if finished.failed > 0 {
                    text.push_str(&format!(", {} failed", finished.failed));
                }
                if finished.cancelled > 0 {
                    text.push_str(&format!(", {} cancelled", finished.cancelled));
                }
                text.push_str(&format!(".\n\n{}", page_of(base, run)));
                (format!("Benchtrail: {name} {word}"), text)
            }
            Self::Week { from, to, activity } => {
                let text = format!(
                    "Your week from {from} to {to}:\n\n\
                     runs started     {}\nruns completed   {}\nruns failed      {}\nruns cancelled   {}\n\
                     jobs completed   {}\njobs failed      {}\n\n{base}",
                    activity.runs_started,
                    activity.runs_completed,
                    activity.runs_failed,
                    activity.runs_cancelled,
                    activity.jobs_completed,
                    activity.jobs_failed,
                );
                (format!("Benchtrail: your week from {from} to {to}"), text)
            }
            Self::Quota { org, changed, .. } => {
                let what = changed.resource.words();
                let text = format!(
                    "The organisation {org} uses {} of the {} {what} that its quota allows: {} % or more. Once it is used up \
                     nothing new is begun; what runs is finished and kept.",
                    changed.used, changed.limit, changed.percent
                );
                (format!("Benchtrail: {org} uses {} % of its {what}", changed.percent), text)
            }
            Self::Test => (
                "Benchtrail: a test".to_owned(),
                "This message was asked for under Profile. Messages of Benchtrail reach you.".to_owned(),
            ),
        };
        let text = format!("{text}\n\nWhich messages you get is set at {profile}\n");
        Words { subject, text }
    }

    /// As a webhook's body.
    pub fn body(&self, kind: Kind, base: &Url, timestamp: events::Timestamp) -> Value {
        let data = match self {
            Self::Run { run, finished, position } => json!({
                "org": run.org, "project_code": run.project, "workload_code": run.workload, "run_number": run.run,
                "run": run.stream(), "outcome": finished.outcome.as_str(), "jobs_completed": finished.completed,
                "jobs_failed": finished.failed, "jobs_cancelled": finished.cancelled, "position": position,
                "url": page_of(base, run),
            }),
            Self::Week { from, to, activity } => json!({"from": from, "to": to, "activity": activity}),
            Self::Quota { org, changed, position } => json!({
                "org": org, "resource": changed.resource, "percent": changed.percent, "used": changed.used,
                "limit": changed.limit, "position": position,
            }),
            Self::Test => json!({}),
        };
        json!({"type": kind.as_str(), "timestamp": timestamp, "data": data})
    }
}

#[cfg(test)]
mod tests {
    use events::run::RunOutcome;

    use super::*;

    fn run(failed: u32) -> Content {
        Content::Run {
            run: RunKey { org: "acme".into(), project: "p".into(), workload: "w".into(), run: 3 },
            finished: RunFinished { outcome: RunOutcome::Completed, completed: 1, failed, cancelled: 0 },
            position: 42,
        }
    }

    #[test]
    fn a_run_is_told_with_its_counts_and_its_page() {
        let base: Url = "https://bench.example/base".parse().unwrap();
        let words = run(0).words(Kind::RunCompleted, &base);
        assert_eq!(words.subject, "Benchtrail: p/w #3 completed");
        assert!(
            words
                .text
                .contains("completed: 1 job completed.\n\nhttps://bench.example/base/projects/acme/p/w/3")
        );
        assert!(words.text.contains("https://bench.example/base/profile"), "{}", words.text);
        let words = run(2).words(Kind::RunFailed, &base);
        assert!(words.subject.ends_with("failed") && words.text.contains("1 job completed, 2 failed."));
    }

    #[test]
    fn a_quota_is_told_with_its_numbers() {
        let changed = QuotaLevelChanged {
            resource: events::quota::Resource::OpenJobs,
            percent: 80,
            previous_percent: 0,
            used: 41,
            limit: 50,
        };
        let content = Content::Quota { org: "acme".into(), changed, position: 7 };
        let base: Url = "https://bench.example/".parse().unwrap();
        let words = content.words(Kind::Quota, &base);
        assert_eq!(words.subject, "Benchtrail: acme uses 80 % of its open jobs");
        assert!(words.text.contains("41 of the 50 open jobs"), "{}", words.text);
        let body = content.body(Kind::Quota, &base, events::Timestamp::from_micros(0).unwrap());
        assert_eq!((&body["type"], &body["data"]["resource"]), (&json!("quota"), &json!("open_jobs")));
    }

    #[test]
    fn a_webhook_says_the_same_in_fields() {
        let base: Url = "https://bench.example/".parse().unwrap();
        let at = events::Timestamp::from_micros(0).unwrap();
        let body = run(0).body(Kind::RunCompleted, &base, at);
        assert_eq!(
            (&body["type"], &body["data"]["run"]),
            (&json!("run_completed"), &json!("run/acme/p/w/3"))
        );
        assert_eq!(body["data"]["url"], "https://bench.example/projects/acme/p/w/3");
    }

    #[test]
    fn every_kind_is_read_back_from_its_word() {
        for kind in [Kind::RunCompleted, Kind::RunFailed, Kind::WeeklySummary, Kind::Quota, Kind::Test] {
            assert_eq!(Kind::of(kind.as_str()), Some(kind));
        }
    }
}
